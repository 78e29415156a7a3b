"""Read LIBSVM model files. Nothing of a file is believed: every count is checked against lines."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array
from mercer.files.libsvm.errors import LibsvmFormatError
from mercer.files.libsvm.model import LibsvmModel
from mercer.files.libsvm.model_header import LARGEST, Header, number_of, read_header, words_of

MOST_BYTES = 1 << 32  # of a file; a model of 10^6 rows and 100 columns has a third of it
_DENSE_FROM = 0.2  # of entries that are there: above, sparse rows take more room than dense ones
_BODY = b"0123456789+-.eE: \t\r\n"  # all that the lines of support vectors are made of


def read_libsvm_model(
    path: str | os.PathLike[str], *, n_features: int | None = None
) -> LibsvmModel:
    r"""Read a model file of LIBSVM's `svm-train`.

    Parameters
    ----------
    path : str or path
        The file.
    n_features : int, optional
        The number of columns of the data, if there are columns after the last that any support
        vector has an entry in: files do not say. Not for precomputed kernels.

    Returns
    -------
    LibsvmModel
        What the file says. `machine_of` makes a machine of the library of it.

    Raises
    ------
    LibsvmFormatError
        Where the file is not such a model, with line and column.

    Examples
    --------
    >>> import tempfile
    >>> name = Path(tempfile.mkdtemp()) / "tiny.model"
    >>> _ = name.write_text(
    ...     "svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho -1\nSV\n2 1:3 \n"
    ... )
    >>> read_libsvm_model(name).predict([[1.0]]).tolist()
    [7.0]
    """
    place = Path(path)
    size = place.stat().st_size
    if size > MOST_BYTES:
        raise LibsvmFormatError(f"{size} bytes are more than {MOST_BYTES}", str(place))
    return parse_model(place.read_bytes(), str(place), n_features)


def parse_model(text: bytes, source: str = "", n_features: int | None = None) -> LibsvmModel:
    """Read a model from the bytes of a file.

    Parameters
    ----------
    text : bytes
        The file.
    source : str
        Its name, for messages.
    n_features : int, optional
        The number of columns of the data.
    """
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    header = read_header(lines, source)
    return _Body(header, lines, source).model(n_features)


# --- the support vectors: coefficients, then column:value in ascending columns -------------------


class _Body:
    """The lines after "SV"."""

    def __init__(self, header: Header, lines: list[bytes], source: str) -> None:
        self.header, self.source = header, source
        self.lines = lines[header.end :]
        self.given = header.values["kernel_type"] == "precomputed"
        expected = header.values["total_sv"]
        if len(self.lines) != expected:
            raise LibsvmFormatError(
                f"total_sv is {expected}, but {len(self.lines)} lines follow SV", source, header.end
            )

    def model(self, n_features: int | None) -> LibsvmModel:
        """Return the model."""
        coef = np.empty((len(self.lines), self.header.columns))
        columns: list[int] = []
        entries: list[float] = []
        starts = [0]
        for i, line in enumerate(self.lines):
            try:
                index, values = self._fast(line, coef[i])
            except ValueError:
                index, values = self._slowly(i, line, coef[i])
            columns += index
            entries += values
            starts.append(len(columns))
        if not np.isfinite(coef).all() or not np.isfinite(entries).all():
            self._refuse_infinite()
        data, place = np.array(entries, dtype=np.float64), np.array(columns, dtype=np.int64)
        vectors = data.astype(np.int64) if self.given else _rows(data, place, starts, n_features)
        values_of = self.header.values
        return LibsvmModel(
            values_of["svm_type"],
            values_of["kernel_type"],
            vectors,
            coef,
            values_of["rho"],
            values_of.get("label"),
            values_of.get("nr_sv"),
            values_of.get("degree", 3),
            values_of.get("gamma", 0.0),
            values_of.get("coef0", 0.0),
            values_of.get("probA"),
            values_of.get("probB"),
            values_of.get("prob_density_marks"),
        )

    def _fast(self, line: bytes, coef: Array) -> tuple[list[int], list[float]]:
        """Read a line that is as it should be; a ValueError says that it is not."""
        if line.translate(None, _BODY):
            raise ValueError
        words = line.split()
        m = len(coef)
        coef[:] = [float(word) for word in words[:m]]
        halves = [word.split(b":") for word in words[m:]]
        index = [int(a) for a, _ in halves]
        values = [float(b) for _, b in halves]
        if self.given:
            if index != [0] or not 1 <= values[0] <= LARGEST or values[0] != int(values[0]):
                raise ValueError
            return index, values
        if index and not (0 < index[0] and index[-1] <= LARGEST):
            raise ValueError
        if any(a >= b for a, b in pairwise(index)):
            raise ValueError
        return index, values

    def _slowly(self, i: int, line: bytes, coef: Array) -> tuple[list[int], list[float]]:
        """Read a line word by word, to say what is wrong with it."""
        number, m = self.header.end + 1 + i, len(coef)
        words = list(words_of(line))
        if len(words) < m:
            raise LibsvmFormatError(
                f"{len(words)} values, but a support vector has {m} coefficients",
                self.source,
                number,
            )
        coef[:] = [number_of(word, self.source, number, at, False) for at, word in words[:m]]
        index: list[int] = []
        values: list[float] = []
        for at, word in words[m:]:
            column, value = self._entry(word, number, at)
            if index and column <= index[-1]:
                self._refuse(f"column {column} comes after column {index[-1]}", number, at)
            index.append(column)
            values.append(value)
        if self.given and len(index) != 1:
            self._refuse("a precomputed kernel needs one entry, 0:row", number, None)
        return index, values

    def _entry(self, word: bytes, line: int, at: int) -> tuple[int, float]:
        left, colon, right = word.partition(b":")
        if not colon:
            self._refuse(f"{word[:40].decode('latin-1')!r} is not column:value", line, at)
        column = number_of(left, self.source, line, at, True)
        value = number_of(right, self.source, line, at + len(left) + 1, self.given)
        if self.given and (column != 0 or value < 1):
            self._refuse("a precomputed kernel needs 0:row, rows counted from 1", line, at)
        if not self.given and column < 1:
            self._refuse(f"column {column}: columns are counted from 1", line, at)
        return int(column), float(value)

    def _refuse_infinite(self) -> None:
        for i, line in enumerate(self.lines):
            self._slowly(i, line, np.empty(self.header.columns))
        raise AssertionError("a number beyond float64 was read, and none is found")

    def _refuse(self, message: str, line: int, at: int | None) -> None:
        raise LibsvmFormatError(message, self.source, line, at)


def _rows(data: Array, columns: Array, starts: list[int], n_features: int | None) -> Any:
    """Return dense rows, or sparse ones where few entries are there."""
    least = int(columns.max(initial=0))
    if n_features is not None and n_features < least:
        raise ValueError(f"n_features={n_features}, but the model reads column {least}")
    width = max(1, least if n_features is None else int(n_features))
    held = sparse.csr_array((data, columns - 1, starts), shape=(len(starts) - 1, width))
    few = len(data) < _DENSE_FROM * (len(starts) - 1) * width
    return held if few else held.toarray()
