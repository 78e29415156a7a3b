"""Model files as commands see them: what they hold, and the tables they were made of."""

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

_LIBSVM = b"svm_type "  # how a model file of LIBSVM begins


def loaded_as(path: str, kind: type[T], words: str) -> T:
    """Load a model that has to be of one class."""
    from mercer.files import load  # noqa: PLC0415

    found = load(path)
    if not isinstance(found, kind):
        raise ValueError(f"{path} holds a {type(found).__name__}, not {words}")
    return found


def table_model(path: str) -> TableModel:
    """Load a model of a column of a table."""
    from mercer.fitting import TableModel  # noqa: PLC0415

    return loaded_as(path, TableModel, "a model of a table, as `mercer fit` makes it")


def is_libsvm_model(path: str) -> bool:
    """Return whether a file begins as LIBSVM's models do."""
    with open(path, "rb") as file:
        return file.read(len(_LIBSVM)) == _LIBSVM


def is_mercer_model(path: str) -> bool:
    """Return whether a file begins as a `.mercer` file does: a length, and then JSON."""
    with open(path, "rb") as file:
        begin = file.read(9)
    return len(begin) == 9 and begin[6:] == b"\0\0{"


def training_table(model: Any, data: str, **reader: Any) -> tuple[Table, list[str]]:
    """Return the table of a model, read as it was then, and what there is to say.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel or TopicModel
        From a file, which leaves the table out.
    data : str
        The file of the table.
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
    return found, [f"{data} is not the table of the fit: its digest is another"]


def training_rows(model: TableModel, data: str, **reader: Any) -> tuple[Table, Any, list[str]]:
    """Return the rows that a model was fitted to, their targets, and what there is to say.

    The split is that of the fit: it depends on the rows and the seed alone.

    Parameters
    ----------
    model : TableModel
        From a file, which leaves the table out.
    data : str
        The file of the table.
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
    """Return the share of rows that was held out; 0.2 is the default of `mercer.fit`."""
    return float(options.get("test", "0.2"))
