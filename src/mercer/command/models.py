"""Model files as commands see them: what they are, and what they say of new rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from mercer.array_types import Array
from mercer.command.streams import standard_input

if TYPE_CHECKING:
    from mercer.data import Schema, Table

MODEL = click.argument("model", type=click.Path())

_LIBSVM = b"svm_type "  # how a model file of LIBSVM begins


def open_model(path: str) -> Opened:
    """Load a model: a `.mercer` file, or one of LIBSVM; the content says which."""
    if is_libsvm_model(path):
        from mercer.files.libsvm import load_libsvm  # noqa: PLC0415

        return Opened(path, load_libsvm(path), None)
    from mercer.files import load  # noqa: PLC0415

    model = load(path)
    return Opened(path, model, getattr(model, "schema", None))


def is_libsvm_model(path: str) -> bool:
    """Return whether a file begins as LIBSVM's models do."""
    with open(path, "rb") as file:
        return file.read(len(_LIBSVM)) == _LIBSVM


@dataclass(frozen=True)
class Opened:
    """A model and the columns that it asks for.

    Attributes
    ----------
    path : str
        Where it was.
    model : object
        A table model, or a machine.
    schema : Schema or None
        Columns of new rows; None for a machine of numbers.
    """

    path: str
    model: Any
    schema: Schema | None

    def blocks(self, source: str, **reader: Any) -> Iterator[Table]:
        """Read new rows block by block; machines without a schema get all at once."""
        from mercer.data import read, read_blocks  # noqa: PLC0415

        stream = standard_input() if source == "-" else source
        if self.schema is None:
            return iter([read(stream, **reader)])
        return iter(read_blocks(stream, self.schema, **reader))

    def names(self, proba: bool) -> list[str]:
        """Return the names of what `answers` returns."""
        found = [str(getattr(self.model, "target", None) or "prediction")]
        if proba:
            found += [f"probability {one}" for one in self.classes()]
        return found

    def classes(self) -> Iterable[Any]:
        """Return the labels in the order of probabilities; refuse models that have none."""
        found = getattr(self.model, "classes", None)
        if found is None:
            found = getattr(self.model, "classes_", None)
        if found is None or len(found) == 0 or not hasattr(self.model, "predict_proba"):
            raise click.UsageError(f"{self.path!r} gives no probabilities; leave --proba out")
        return np.asarray(found).tolist()

    def answers(self, rows: Table, proba: bool) -> list[Array]:
        """Predict rows: labels or numbers, and the probability of each class."""
        X = rows if self.schema is not None else self.numbers(rows)
        found = [np.asarray(self.model.predict(X))]
        if proba:
            found += list(np.asarray(self.model.predict_proba(X)).T)
        return found

    def numbers(self, rows: Table) -> Any:
        """Return rows as a machine of numbers takes them."""
        csr = getattr(rows, "csr", None)
        return np.asarray(rows) if csr is None else csr
