"""Write predictions as CSV for the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from mercer.array_types import Array
from mercer.command.models import is_libsvm_model
from mercer.command.tables import GROUP, TARGET
from mercer.command.terminal import standard_input
from mercer.data.kinds import number_of

if TYPE_CHECKING:
    from mercer.data import Schema, Table


# --- csv text ------------------------------------------------------------------------------------
#
# Columns as CSV text, block by block.
#
# Numbers are written with `repr`: the shortest text that reads back as the same number.
# Measured for 5e5 rows: labels 0.03 us a row, a column of float64 0.6 us (repr itself takes 0.5).

_QUOTED = (",", '"', "\n", "\r")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of spreadsheet formulas


def csv_field(value: Any, spreadsheet: bool = False) -> str:
    """Write one entry, quoted if necessary. A missing value is empty.

    With `spreadsheet`, an apostrophe precedes text that a spreadsheet would run as a formula.

    Examples
    --------
    >>> csv_field('a "b", c')
    '"a ""b"", c"'
    >>> csv_field("=1+1", spreadsheet=True), csv_field("-1", spreadsheet=True)
    ("'=1+1", '-1')
    """
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    if text == "nan":
        return ""
    if spreadsheet and isinstance(value, str) and _is_formula(text):
        text = "'" + text
    quoted = any(sign in text for sign in _QUOTED) or text != text.strip()
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet would run a text as a formula."""
    return text.startswith(_FORMULA) and text not in "+-@" and number_of(text) is None


def csv_header(names: Sequence[str], spreadsheet: bool = False) -> bytes:
    """Write the header line."""
    fields = (csv_field(name, spreadsheet) for name in names)
    return (",".join(fields) + "\n").encode("utf-8", "surrogateescape")


def csv_block(columns: Sequence[Array], spreadsheet: bool = False) -> bytes:
    r"""Write columns of equal length as CSV rows.

    Examples
    --------
    >>> csv_block([np.array(["a", "b"], object), np.array([0.1, 1e300])])
    b'a,0.1\nb,1e+300\n'
    """
    texts = [_texts(np.asarray(column), spreadsheet) for column in columns]
    rows = texts[0] if len(texts) == 1 else map(",".join, zip(*texts, strict=True))
    body = "\n".join(rows)
    return (body + "\n").encode("utf-8", "surrogateescape") if len(columns[0]) else b""


def _texts(column: Array, spreadsheet: bool) -> list[str]:
    """Return the entries of one column as fields."""
    values = column.tolist()
    if column.dtype.kind == "f":
        found = list(map(repr, values))
        if np.isnan(column).any():
            found = ["" if text == "nan" else text for text in found]
        return found
    if column.dtype.kind in "iu":
        return list(map(str, values))
    if column.dtype.kind == "M":
        return ["" if text == "NaT" else text for text in np.datetime_as_string(column).tolist()]
    fields = {
        value: csv_field(value, spreadsheet) for value in set(values)
    }  # labels: few, often repeated
    return list(map(fields.__getitem__, values))


# --- predictions ---------------------------------------------------------------------------------

# models that predict coordinates: the attribute that has them, and the name of one coordinate
_COORDINATES = {
    "ProjectionModel": ("coordinates", "component"),
    "TopicModel": ("weights", "topic"),
}


def open_model(path: str) -> Opened:
    """Load a `.mercer` or a LIBSVM model file; the content determines the format."""
    if is_libsvm_model(path):
        from mercer.files.libsvm import read_libsvm_model  # noqa: PLC0415

        return Opened(path, read_libsvm_model(path), None)
    from mercer.files import load  # noqa: PLC0415

    model = load(path)
    return Opened(path, model, getattr(model, "schema", None))


@dataclass(frozen=True)
class Opened:
    """A model and the columns that it requires.

    Attributes
    ----------
    path : str
        Path of the model file.
    model : object
        A table model or an estimator.
    schema : Schema or None
        Columns of new rows. None for an estimator that was fitted to an array.
    """

    path: str
    model: Any
    schema: Schema | None

    def blocks(self, source: str, **reader: Any) -> Iterator[Table]:
        """Read new rows block by block, or all at once for an estimator without a schema."""
        from mercer.data import read, read_blocks  # noqa: PLC0415

        stream = standard_input() if source == "-" else source
        if self.schema is None:
            return iter([read(stream, **reader)])
        return iter(read_blocks(stream, self.schema.without_identifiers(), **reader))

    def names(self, proba: bool) -> list[str]:
        """Return the names of the columns that `answers` returns."""
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
        """Return the classes in the order of `predict_proba`. Raise if there are none."""
        for name in ("classes", "classes_", "labels"):  # table models, estimators, LIBSVM
            found = getattr(self.model, name, None)
            if found is not None and len(found) and hasattr(self.model, "predict_proba"):
                return list(np.asarray(found).tolist())
        raise self._no_probabilities()

    def answers(self, rows: Table, proba: bool) -> list[Array]:
        """Predict rows: labels or numbers and, with `proba`, the probability of each class."""
        kind = type(self.model).__name__
        if kind in _COORDINATES:
            X: Any = rows
            if kind == "TopicModel":
                X = [text or "" for text in rows[rows.columns[0]].tolist()]
            return list(np.asarray(self.model.pipeline.transform(X)).T)
        if kind == "ClusterModel":
            if not hasattr(self.model.pipeline, "predict"):
                raise ValueError(
                    f"{self.path}: spectral clustering cannot assign new rows; use --method kmeans"
                )
            return [np.asarray(self.model.pipeline.predict(rows))]
        model, X = (self.model, rows) if self.schema is not None else self._fitting(rows)
        found = [np.asarray(model.predict(X))]
        if proba:
            found += list(np.asarray(model.predict_proba(X)).T)
        return found

    def _no_probabilities(self) -> click.UsageError:
        return click.UsageError(f"{self.path!r} has no probabilities; remove --proba")

    def _fitting(self, rows: Table) -> tuple[Any, Any]:
        """Return an estimator and numeric rows with the same number of features.

        LIBSVM files omit columns that are zero in all rows.
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
    """Append columns of zeros up to a width."""
    if X.shape[1] >= width:
        return X
    from scipy import sparse  # noqa: PLC0415

    rest = sparse.csr_array((X.shape[0], width - X.shape[1]))
    return sparse.hstack([sparse.csr_array(X), rest], format="csr")
