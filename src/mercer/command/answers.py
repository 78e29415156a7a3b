"""What a model says of new rows, whatever kind of model it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from mercer.array_types import Array
from mercer.command.models import is_libsvm_model
from mercer.command.streams import standard_input
from mercer.command.tables import GROUP, TARGET

if TYPE_CHECKING:
    from mercer.data import Schema, Table

# models whose answers are coordinates: the attribute that has as many, and what one is called
_COORDINATES = {
    "ProjectionModel": ("coordinates", "component"),
    "TopicModel": ("weights", "topic"),
}


def open_model(path: str) -> Opened:
    """Load a model: a `.mercer` file, or one of LIBSVM; the content says which."""
    if is_libsvm_model(path):
        from mercer.files.libsvm import read_libsvm_model  # noqa: PLC0415

        return Opened(path, read_libsvm_model(path), None)
    from mercer.files import load  # noqa: PLC0415

    model = load(path)
    return Opened(path, model, getattr(model, "schema", None))


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
        return iter(read_blocks(stream, self.schema.without_identifiers(), **reader))

    def names(self, proba: bool) -> list[str]:
        """Return the names of what `answers` returns."""
        kind = type(self.model).__name__
        if kind in _COORDINATES:
            if proba:
                raise self._no_probabilities()
            attribute, name = _COORDINATES[kind]
            return [f"{name} {j + 1}" for j in range(getattr(self.model, attribute).shape[1])]
        plain = "cluster" if kind == "ClusterModel" else "prediction"
        found = [str(getattr(self.model, "target", None) or plain)]
        if proba:
            found += [f"probability {one}" for one in self.classes()]
        return found

    def classes(self) -> list[Any]:
        """Return the labels in the order of probabilities; refuse models that have none."""
        for name in ("classes", "classes_", "labels"):  # of tables, machines and LIBSVM
            found = getattr(self.model, name, None)
            if found is not None and len(found) and hasattr(self.model, "predict_proba"):
                return list(np.asarray(found).tolist())
        raise self._no_probabilities()

    def answers(self, rows: Table, proba: bool) -> list[Array]:
        """Predict rows: labels or numbers, and the probability of each class."""
        kind = type(self.model).__name__
        if kind in _COORDINATES:
            X: Any = rows
            if kind == "TopicModel":
                X = [text or "" for text in rows[rows.columns[0]].tolist()]
            return list(np.asarray(self.model.pipeline.transform(X)).T)
        if kind == "ClusterModel":
            if not hasattr(self.model.pipeline, "predict"):
                raise ValueError(f"{self.path}: spectral clusters have no place for new rows")
            return [np.asarray(self.model.pipeline.predict(rows))]
        model, X = (self.model, rows) if self.schema is not None else self._fitting(rows)
        found = [np.asarray(model.predict(X))]
        if proba:
            found += list(np.asarray(model.predict_proba(X)).T)
        return found

    def _no_probabilities(self) -> click.UsageError:
        return click.UsageError(f"{self.path!r} gives no probabilities; leave --proba out")

    def _fitting(self, rows: Table) -> tuple[Any, Any]:
        """Return a machine and rows of numbers of the same width.

        Files of LIBSVM name no columns that are zero in all rows.
        """
        of_libsvm = rows.schema.format == "libsvm"
        beside = [name for name in (TARGET, GROUP) if of_libsvm and name in rows]
        X = rows.drop(*beside).matrix()
        if not of_libsvm:
            return self.model, X
        if is_libsvm_model(self.path) and X.shape[1] > self.model.n_features:
            from mercer.files.libsvm import read_libsvm_model  # noqa: PLC0415

            return read_libsvm_model(self.path, n_features=X.shape[1]), X
        width = getattr(self.model, "n_features_in_", getattr(self.model, "n_features", 0))
        return self.model, widened(X, width)


def widened(X: Any, width: int) -> Any:
    """Return rows with columns of zeros behind, if they have fewer than that."""
    if X.shape[1] >= width:
        return X
    from scipy import sparse  # noqa: PLC0415

    rest = sparse.csr_array((X.shape[0], width - X.shape[1]))
    return sparse.hstack([sparse.csr_array(X), rest], format="csr")
