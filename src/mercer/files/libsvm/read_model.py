"""Read LIBSVM model files. Nothing of a file is believed: every count is checked against lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array
from mercer.files.libsvm.errors import LibsvmFormatError
from mercer.files.libsvm.model import (
    CLASSIFIERS,
    KERNEL_TYPES,
    PARAMETERS,
    SVM_TYPES,
    LibsvmModel,
)

MOST_BYTES = 1 << 32  # of a file; a model of 10^6 rows and 100 columns has a third of it
MOST_CLASSES = 1 << 15  # their pairs, k (k - 1) / 2, stay below what an index holds
_LARGEST = 2**31 - 1  # of LIBSVM's int: labels, counts and column numbers
_MARKS = 10  # svm.cpp: nr_marks
_DENSE_FROM = 0.2  # of entries that are there: above, sparse rows take more room than dense ones
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BODY = b"0123456789+-.eE: \t\r\n"  # all that the lines of support vectors are made of
_WORDS = ("svm_type", "kernel_type")
_NUMBERS = ("gamma", "coef0")
_WHOLE = ("degree", "nr_class", "total_sv")
_LISTS = ("rho", "label", "probA", "probB", "prob_density_marks", "nr_sv")
_WHOLE_LISTS = ("label", "nr_sv")
_NEEDED = ("svm_type", "kernel_type", "nr_class", "total_sv", "rho")


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
    header = _read_header(lines, source)
    return _Body(header, lines, source).model(n_features)


# --- the header: a key and its values in each line, in any order, until "SV" ---------------------


@dataclass
class _Header:
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    end: int = 0  # the number of lines up to "SV", that included

    @property
    def columns(self) -> int:
        """How many coefficients each support vector has."""
        return int(self.values["nr_class"]) - 1


def _read_header(lines: list[bytes], source: str) -> _Header:
    header = _Header()
    for number, line in enumerate(lines, 1):
        words = list(_words(line))
        if not words:
            raise LibsvmFormatError("an empty line among the parameters", source, number)
        key = words[0][1].decode("latin-1")
        if key == "SV":
            header.end = number
            _check_header(header, source)
            return header
        if key in header.values:
            raise LibsvmFormatError(f"{key} is there twice", source, number, words[0][0])
        header.values[key] = _value_of(key, words, source, number)
        header.lines[key] = number
    raise LibsvmFormatError('no line "SV": the file ends before its support vectors', source)


def _words(line: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the words of a line with their places, from 1."""
    return ((m.start() + 1, m.group()) for m in re.finditer(rb"[^ \t\r]+", line))


def _value_of(key: str, words: list[tuple[int, bytes]], source: str, line: int) -> Any:
    if key in _LISTS:
        whole = key in _WHOLE_LISTS
        found = [_number(word, source, line, at, whole) for at, word in words[1:]]
        return np.array(found, dtype=np.int64 if whole else np.float64)
    if key not in (*_WORDS, *_NUMBERS, *_WHOLE):
        raise LibsvmFormatError(f"unknown parameter {key[:40]!r}", source, line, words[0][0])
    if len(words) != 2:
        raise LibsvmFormatError(f"{key} needs one value, not {len(words) - 1}", source, line)
    at, word = words[1]
    if key not in _WORDS:
        return _number(word, source, line, at, key in _WHOLE)
    known = SVM_TYPES if key == "svm_type" else KERNEL_TYPES
    if word.decode("latin-1") not in known:
        shown = word[:40].decode("latin-1")
        raise LibsvmFormatError(f"{key} {shown!r} is none of {', '.join(known)}", source, line, at)
    return word.decode("ascii")


def _number(word: bytes, source: str, line: int, at: int, whole: bool) -> int | float:
    shown = word[:40].decode("latin-1")
    if not _NUMBER.fullmatch(word):
        raise LibsvmFormatError(f"{shown!r} is not a number", source, line, at)
    value = float(word)
    if not np.isfinite(value):
        raise LibsvmFormatError(f"{shown!r} is beyond the numbers of float64", source, line, at)
    if not whole:
        return value
    if value != int(value) or abs(value) > _LARGEST:
        raise LibsvmFormatError(f"{shown!r} is not a whole number of 32 bits", source, line, at)
    return int(value)


def _check_header(header: _Header, source: str) -> None:
    values = header.values

    def wrong(message: str, key: str | None = None) -> LibsvmFormatError:
        return LibsvmFormatError(message, source, header.lines.get(key or "", header.end))

    for key in _needed(values):
        if key not in values:
            raise wrong(f"{key} is missing")
    classifier = values["svm_type"] in CLASSIFIERS
    k = values["nr_class"]
    if not 2 <= k <= MOST_CLASSES or (k != 2 and not classifier):
        raise wrong(f"nr_class {k} is no number of classes of {values['svm_type']}", "nr_class")
    if values["total_sv"] < 0:
        raise wrong(f"total_sv {values['total_sv']} is negative", "total_sv")
    if values.get("gamma", 0.0) < 0 or values.get("degree", 0) < 0:
        key = "gamma" if values.get("gamma", 0.0) < 0 else "degree"
        raise wrong(f"{key} {values[key]} is negative, which LIBSVM does not allow", key)
    pairs = k * (k - 1) // 2
    lengths = {"rho": pairs, "probA": pairs, "probB": pairs, "label": k, "nr_sv": k}
    for key, length in {**lengths, "prob_density_marks": _MARKS}.items():
        if key in values and len(values[key]) != length:
            raise wrong(f"{key} has {len(values[key])} values, not {length}", key)
    _check_classes(values, classifier, wrong)


def _needed(values: dict[str, Any]) -> tuple[str, ...]:
    of_kernel = PARAMETERS.get(values.get("kernel_type", ""), ())
    of_classes = ("label", "nr_sv") if values.get("svm_type") in CLASSIFIERS else ()
    return (*_NEEDED, *of_kernel, *of_classes)


def _check_classes(values: dict[str, Any], classifier: bool, wrong: Any) -> None:
    """Check labels, counts and probabilities against the kind of machine."""
    allowed = {
        "label": classifier,
        "nr_sv": classifier,
        "probA": values["svm_type"] != "one_class",
        "probB": classifier,
        "prob_density_marks": values["svm_type"] == "one_class",
    }
    for key, fits in allowed.items():
        if key in values and not fits:
            raise wrong(f"{key} has no meaning for {values['svm_type']}", key)
    if classifier and ("probA" in values) != ("probB" in values):
        key = "probA" if "probA" in values else "probB"
        raise wrong(f"{key} is there without the other of probA and probB", key)
    if not classifier:
        return
    if len(np.unique(values["label"])) < len(values["label"]):
        raise wrong("a label is there twice", "label")
    counts = values["nr_sv"]
    if (counts < 0).any() or int(counts.sum()) != values["total_sv"]:
        raise wrong(
            f"nr_sv adds up to {int(counts.sum())}, but total_sv is {values['total_sv']}", "nr_sv"
        )


# --- the support vectors: coefficients, then column:value in ascending columns -------------------


class _Body:
    """The lines after "SV"."""

    def __init__(self, header: _Header, lines: list[bytes], source: str) -> None:
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
            if index != [0] or not 1 <= values[0] <= _LARGEST or values[0] != int(values[0]):
                raise ValueError
            return index, values
        if index and not (0 < index[0] and index[-1] <= _LARGEST):
            raise ValueError
        if any(a >= b for a, b in pairwise(index)):
            raise ValueError
        return index, values

    def _slowly(self, i: int, line: bytes, coef: Array) -> tuple[list[int], list[float]]:
        """Read a line word by word, to say what is wrong with it."""
        number, m = self.header.end + 1 + i, len(coef)
        words = list(_words(line))
        if len(words) < m:
            raise LibsvmFormatError(
                f"{len(words)} values, but a support vector has {m} coefficients",
                self.source,
                number,
            )
        coef[:] = [_number(word, self.source, number, at, False) for at, word in words[:m]]
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
        column = _number(left, self.source, line, at, True)
        value = _number(right, self.source, line, at + len(left) + 1, self.given)
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
