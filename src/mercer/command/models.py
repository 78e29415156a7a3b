"""Load model files and their training tables for the commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mercer.command.tables import column_of, read_table

if TYPE_CHECKING:
    from mercer.data import Table
    from mercer.fitting import TableModel

T = TypeVar("T")
MODEL = click.argument("model", type=click.Path())

_LIBSVM = b"svm_type "  # first bytes of a LIBSVM model file


def loaded_as(path: str, kind: type[T], words: str) -> T:
    """Load a model. Raise if it is not an instance of `kind`."""
    from mercer.files import load  # noqa: PLC0415

    found = load(path)
    if not isinstance(found, kind):
        raise ValueError(f"{path} holds a {type(found).__name__}, not {words}")
    return found


def table_model(path: str) -> TableModel:
    """Load a table model."""
    from mercer.fitting import TableModel  # noqa: PLC0415

    return loaded_as(path, TableModel, "a table model; create one with `mercer fit`")


def is_libsvm_model(path: str) -> bool:
    """Return whether a file is a LIBSVM model."""
    with open(path, "rb") as file:
        return file.read(len(_LIBSVM)) == _LIBSVM


def is_mercer_model(path: str) -> bool:
    """Return whether a file starts like a `.mercer` file: a length, then JSON."""
    with open(path, "rb") as file:
        begin = file.read(9)
    return len(begin) == 9 and begin[6:] == b"\0\0{"


def training_table(model: Any, data: str, **reader: Any) -> tuple[Table, list[str]]:
    """Return the training table of a model, read as for the fit, and notes.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel or TopicModel
        Loaded from a file, without its table.
    data : str
        File of the table.
    **reader : object
        Arguments of `mercer.data.read`.
    """
    known = model.schema
    as_then = {"missing": known.missing, "decimal": known.decimal, "kinds": known.kinds}
    table = read_table(data, **(as_then | reader))
    names = set(known.names)
    target = getattr(model, "target", None)
    if target is not None:
        names.add(column_of(table.columns, target, "the target"))
    found = table[[name for name in table.columns if name in names]]
    if found.digest == model.settings.digest:
        return found, []
    return found, [f"{data} is not the training table: its SHA-256 digest differs"]


def training_rows(model: TableModel, data: str, **reader: Any) -> tuple[Table, Any, list[str]]:
    """Return the training rows of a model, their targets, and notes.

    The split equals that of the fit: it depends only on the rows and the seed.

    Parameters
    ----------
    model : TableModel
        Loaded from a file, without its table.
    data : str
        File of the table.
    **reader : object
        Arguments of `mercer.data.read`.
    """
    from mercer.fitting import rows_with_target, split  # noqa: PLC0415  help needs none of it

    table, notes = training_table(model, data, **reader)
    settings = model.settings
    whole = rows_with_target(table, model.target, task=model.task)
    share = 0.0 if settings.trained_rows == settings.rows else _held_out(settings.options)
    parts = split(
        whole, model.target, task=model.task, test=share, random_state=settings.random_state
    )
    return parts.train, parts.train_target, notes


def _held_out(options: Mapping[str, str]) -> float:
    """Return the held-out fraction of the rows; 0.2 is the default of `mercer.fit`."""
    return float(options.get("test", "0.2"))
