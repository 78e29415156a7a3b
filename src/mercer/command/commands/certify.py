"""`mercer certify`: is a saved model the answer to its training data?"""

from __future__ import annotations

from typing import Any

import click

from mercer.command.models import MODEL, is_libsvm_model
from mercer.command.results import certificate_row, certificate_values, refuse_uncertified
from mercer.command.session import Session
from mercer.command.tables import DATA, column_of, read_arguments, read_table, reading
from mercer.command.text import aligned
from mercer.command.work import Work, python


@click.command(
    cls=Work,
    examples=[
        "certify income.mercer people.csv",
        "certify heart.model heart_scale --cost 1",
    ],
    help="Judge a saved model against its training data.\n\nThe certificate is computed anew from "
    "the data and the model alone, for models of Mercer and of LIBSVM (svm-train); of the latter "
    "the file does not hold the options -c, -n and -p: give them here. Exits with 3 if the model "
    "is not certified.",
)
@MODEL
@DATA
@click.option("--target", "-t", metavar="COLUMN", help="Where the model does not name it.")
@click.option("--cost", type=float, help="Of a LIBSVM model: its -c.")
@click.option("--nu", type=float, help="Of a LIBSVM model: its -n.")
@click.option("--epsilon", type=float, help="Of a LIBSVM model: its -p.")
@click.option("--tol", type=float, help="How far from optimal it may be.")
@reading
@python
@click.pass_obj
def certify(session: Session, model: str, data: str, **options: Any) -> None:
    """Print the verdict."""
