"""Class `LibsvmModel` with LIBSVM's predictions and probabilities; reading of its model files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from mercer.array_types import Array, Points
from mercer.compat.sklearn.kernels import written
from mercer.files.container import ModelFormatError
from mercer.gram.evaluated import KernelExpansion
from mercer.kernels import Kernel, Precomputed
from mercer.rows.points import as_points, to_dense

# --- model ---------------------------------------------------------------------------------------
#
# A LIBSVM model as its file holds it, and what LIBSVM predicts with it.

CLASSIFIERS = ("c_svc", "nu_svc")
SVM_TYPES = (*CLASSIFIERS, "one_class", "epsilon_svr", "nu_svr")
KERNEL_TYPES = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
PARAMETERS = {
    "linear": (),
    "polynomial": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}


@dataclass(frozen=True, eq=False)
class LibsvmModel:
    """The contents of a LIBSVM model file, with LIBSVM's own order and signs.

    Attributes
    ----------
    svm_type : {"c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr"}
        The type of support vector machine.
    kernel_type : {"linear", "polynomial", "rbf", "sigmoid", "precomputed"}
        The kernel.
    support_vectors : array or sparse array of shape (n_support, n_features)
        Rows; for a precomputed kernel, of shape (n_support,): their numbers in the training data,
        from 1.
    dual_coef : array of shape (n_support, n_classes - 1)
        Coefficients: in row i of class a the one against class b is in column b - 1 if a < b, else
        in column b. One column for regression and one class.
    rho : array of shape (n_pairs,)
        Subtracted from each decision function.
    labels : int array of shape (n_classes,) or None
        Labels, in the order in which LIBSVM met them; for classifiers.
    counts : int array of shape (n_classes,) or None
        Number of support vectors of each class; for classifiers.
    degree : int
        Of the polynomial kernel.
    gamma, coef0 : float
        Of the polynomial, rbf and sigmoid kernel.
    prob_a, prob_b : array of shape (n_pairs,) or None
        Platt's slope and offset of each pair; for regression prob_a alone, the scale of a Laplace
        distribution of errors.
    density_marks : array of shape (10,) or None
        Decision values of one class that tenths of the training rows lie below.

    Examples
    --------
    >>> model = LibsvmModel(
    ...     "c_svc", "linear", np.array([[1.0], [-1.0]]), np.array([[0.5], [-0.5]]),
    ...     np.array([0.0]), np.array([3, 7]), np.array([1, 1]),
    ... )
    >>> model.decision_values([[2.0], [-0.5]]).tolist()
    [2.0, -0.5]
    >>> model.predict([[2.0], [-0.5]]).tolist()
    [3, 7]
    """

    svm_type: str
    kernel_type: str
    support_vectors: Any
    dual_coef: Array
    rho: Array
    labels: Array | None = None
    counts: Array | None = None
    degree: int = 3
    gamma: float = 0.0
    coef0: float = 0.0
    prob_a: Array | None = None
    prob_b: Array | None = None
    density_marks: Array | None = None

    @property
    def is_classifier(self) -> bool:
        """Whether it tells classes apart."""
        return self.svm_type in CLASSIFIERS

    @property
    def n_features(self) -> int:
        """The number of columns it reads; of a precomputed kernel the largest row number."""
        if self.kernel_type == "precomputed":
            return int(self.support_vectors.max(initial=0))
        return int(self.support_vectors.shape[1])

    @property
    def kernel(self) -> Kernel:
        """The kernel, in the library's terms."""
        if self.kernel_type == "precomputed":
            return Precomputed()
        found = written(self.kernel_type, self.gamma, self.coef0, self.degree)
        assert found is not None  # every other type has a name there
        return found

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Places in `labels` of the classes of each decision function."""
        return list(combinations(range(len(self.labels)), 2)) if self.labels is not None else []

    def runs(self) -> list[slice]:
        """Return where the support vectors of each class stand."""
        assert self.counts is not None  # called for classifiers
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def decision_values(self, X: Any) -> Array:
        """Evaluate the decision functions as LIBSVM does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel new rows against training rows, in their order.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_pairs)
            Of classifiers positive for the first of two `labels`, (n_samples,) for two classes; the
            prediction itself of regression; negative outside of one class.
        """
        values = self._functions(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Array:
        """Predict as LIBSVM does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels, by votes of pairs, those of equal votes the first in `labels`; numbers; or 1 and
            -1, common and novel.
        """
        values = self._functions(X)
        if self.labels is None:
            novel = self.svm_type == "one_class"
            return np.where(values[:, 0] > 0, 1, -1) if novel else values[:, 0]
        votes = np.zeros((len(values), len(self.labels)), dtype=np.intp)
        for (a, b), column in zip(self.pairs, values.T, strict=True):
            votes[:, a] += column > 0
            votes[:, b] += ~(column > 0)
        return np.asarray(self.labels[np.argmax(votes, axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """Estimate probabilities as LIBSVM does (its option -b 1).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of `labels`; of one class, common and novel.
        """
        if self.labels is not None and self.prob_a is not None and self.prob_b is not None:
            count = len(self.labels)
            return class_probabilities(self._functions(X), self.prob_a, self.prob_b, count)
        if self.svm_type == "one_class" and self.density_marks is not None:
            return inlier_probabilities(self._functions(X)[:, 0], self.density_marks)
        raise ValueError(
            f"this {self.svm_type} model holds no probabilities; train it with LIBSVM's -b 1"
        )

    def _functions(self, X: Any) -> Array:
        """Evaluate all decision functions: (n, functions)."""
        points = self._rows(X)
        if self.labels is None:
            return self._sums(points, slice(None), self.dual_coef) - self.rho
        values = np.tile(-self.rho, (points.shape[0], 1))
        for c, run in enumerate(self.runs()):
            mine = [p for p, pair in enumerate(self.pairs) if c in pair]
            order = [sum(self.pairs[p]) - c for p in mine]  # the other class of each pair
            columns = [other - 1 if other > c else other for other in order]
            values[:, mine] += self._sums(points, run, self.dual_coef[run][:, columns])
        return values

    def _sums(self, points: Points, run: slice, coef: Array) -> Array:
        """Add up coefficients times kernel values of some support vectors."""
        vectors = self.support_vectors[run]
        if self.kernel_type == "precomputed":
            return np.asarray(to_dense(points)[:, vectors - 1] @ coef)
        expression = self.kernel.expression()
        return KernelExpansion(expression, vectors, coef, np.zeros(coef.shape[1]))(points)

    def _rows(self, X: Any) -> Points:
        points = as_points(X)
        given = self.kernel_type == "precomputed"
        width = points.shape[1] if points.ndim == 2 else -1
        if width < self.n_features or (width > self.n_features and not given):
            what = "one for each training row, at least" if given else "as the support vectors have"
            raise ValueError(
                f"X has {width} columns, but the model reads {self.n_features} ({what}); a file "
                "names no columns that are zero in every support vector: "
                "read_libsvm_model(..., n_features=...) adds them"
            )
        return points


# --- read model ----------------------------------------------------------------------------------
#
# Read LIBSVM model files. Nothing of a file is believed: every count is checked against lines.

MOST_BYTES = 1 << 32  # of a file; a model of 10^6 rows and 100 columns has a third of it
_DENSE_FROM = 0.2  # fraction of entries present: above, sparse rows take more memory than dense
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
        The contents of the file. `machine_of` makes an estimator from it.

    Raises
    ------
    LibsvmFormatError
        If the file is not such a model, with line and column.

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
        raise LibsvmFormatError(
            f"the file has {size} bytes; at most {MOST_BYTES} are allowed", str(place)
        )
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
        """Read a line word by word, to find its error."""
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


# --- model header --------------------------------------------------------------------------------
#
# Header of LIBSVM's model files: a key and its values in each line, in any order, until "SV".

MOST_CLASSES = 1 << 15  # their pairs, k (k - 1) / 2, stay below what an index holds
LARGEST = 2**31 - 1  # of LIBSVM's int: labels, counts and column numbers
_MARKS = 10  # svm.cpp: nr_marks
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS = ("svm_type", "kernel_type")
_NUMBERS = ("gamma", "coef0")
_WHOLE = ("degree", "nr_class", "total_sv")
_LISTS = ("rho", "label", "probA", "probB", "prob_density_marks", "nr_sv")
_WHOLE_LISTS = ("label", "nr_sv")
_NEEDED = ("svm_type", "kernel_type", "nr_class", "total_sv", "rho")


@dataclass
class Header:
    """Keys with their values, and the lines they stand in."""

    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    end: int = 0  # the number of lines up to "SV", that included

    @property
    def columns(self) -> int:
        """Number of coefficients of each support vector."""
        return int(self.values["nr_class"]) - 1


def read_header(lines: list[bytes], source: str) -> Header:
    """Read the lines up to "SV", and check them for consistency."""
    header = Header()
    for number, line in enumerate(lines, 1):
        words = list(words_of(line))
        if not words:
            raise LibsvmFormatError("an empty line among the parameters", source, number)
        key = words[0][1].decode("latin-1")
        if key == "SV":
            header.end = number
            _check_header(header, source)
            return header
        if key in header.values:
            raise LibsvmFormatError(f"{key} occurs twice", source, number, words[0][0])
        header.values[key] = _value_of(key, words, source, number)
        header.lines[key] = number
    raise LibsvmFormatError('no line "SV": the file ends before its support vectors', source)


def words_of(line: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the words of a line with their places, from 1."""
    return ((m.start() + 1, m.group()) for m in re.finditer(rb"[^ \t\r]+", line))


def _value_of(key: str, words: list[tuple[int, bytes]], source: str, line: int) -> Any:
    if key in _LISTS:
        whole = key in _WHOLE_LISTS
        found = [number_of(word, source, line, at, whole) for at, word in words[1:]]
        return np.array(found, dtype=np.int64 if whole else np.float64)
    if key not in (*_WORDS, *_NUMBERS, *_WHOLE):
        raise LibsvmFormatError(f"unknown parameter {key[:40]!r}", source, line, words[0][0])
    if len(words) != 2:
        raise LibsvmFormatError(f"{key} needs one value, not {len(words) - 1}", source, line)
    at, word = words[1]
    if key not in _WORDS:
        return number_of(word, source, line, at, key in _WHOLE)
    known = SVM_TYPES if key == "svm_type" else KERNEL_TYPES
    if word.decode("latin-1") not in known:
        shown = word[:40].decode("latin-1")
        raise LibsvmFormatError(
            f"{key} {shown!r} is not one of {', '.join(known)}", source, line, at
        )
    return word.decode("ascii")


def number_of(word: bytes, source: str, line: int, at: int, whole: bool) -> int | float:
    """Return the number that a word says."""
    shown = word[:40].decode("latin-1")
    if not _NUMBER.fullmatch(word):
        raise LibsvmFormatError(f"{shown!r} is not a number", source, line, at)
    value = float(word)
    if not np.isfinite(value):
        raise LibsvmFormatError(f"{shown!r} is out of range for float64", source, line, at)
    if not whole:
        return value
    if value != int(value) or abs(value) > LARGEST:
        raise LibsvmFormatError(f"{shown!r} is not a 32-bit integer", source, line, at)
    return int(value)


def _check_header(header: Header, source: str) -> None:
    values = header.values

    def wrong(message: str, key: str | None = None) -> LibsvmFormatError:
        return LibsvmFormatError(message, source, header.lines.get(key or "", header.end))

    for key in _needed(values):
        if key not in values:
            raise wrong(f"{key} is missing")
    classifier = values["svm_type"] in CLASSIFIERS
    k = values["nr_class"]
    if not 2 <= k <= MOST_CLASSES or (k != 2 and not classifier):
        raise wrong(f"nr_class {k} is invalid for {values['svm_type']}", "nr_class")
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
    """Check labels, counts and probabilities against the type of model."""
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
        raise wrong("a label occurs twice", "label")
    counts = values["nr_sv"]
    if (counts < 0).any() or int(counts.sum()) != values["total_sv"]:
        raise wrong(
            f"nr_sv adds up to {int(counts.sum())}, but total_sv is {values['total_sv']}", "nr_sv"
        )


# --- platt ---------------------------------------------------------------------------------------
#
# LIBSVM's probabilities, by its own formulas: Platt's sigmoid, coupled pairs, density marks.

_SMALLEST = 1e-7  # svm.cpp: min_prob of a pair
_ACCURACY = 0.005  # svm.cpp: eps of the coupling, divided by the number of classes
_FEWEST_ROUNDS = 100  # svm.cpp: max_iter of the coupling, or the number of classes
_OUTSIDE, _INSIDE = 0.001, 0.999  # svm.cpp: one class, below the first mark and above the last


def class_probabilities(values: Array, slopes: Array, offsets: Array, count: int) -> Array:
    """Return probabilities of classes from decision values of all pairs.

    Parameters
    ----------
    values : (n, pairs) array
        Positive for the first class of each pair.
    slopes, offsets : (pairs,) array
        probA and probB: the first class has probability 1 / (1 + exp(A f + B)).
    count : int
        Number of classes.

    Examples
    --------
    >>> class_probabilities(np.array([[0.0]]), np.array([-2.0]), np.array([0.0]), 2).tolist()
    [[0.5, 0.5]]
    """
    first = np.clip(expit(-(values * slopes + offsets)), _SMALLEST, 1.0 - _SMALLEST)
    if count == 2:
        return np.column_stack([first[:, 0], 1.0 - first[:, 0]])
    pairs = np.zeros((len(values), count, count))
    a, b = np.array(list(combinations(range(count), 2))).T
    pairs[:, a, b] = first
    pairs[:, b, a] = 1.0 - first
    return coupled(pairs)


def coupled(pairs: Array) -> Array:
    """Couple probabilities of pairs by LIBSVM's iteration (method 2 of Wu, Lin and Weng).

    It stops early, so that another way to the same minimum would differ in the third digit.

    Parameters
    ----------
    pairs : (n, k, k) array
        Entry (i, j) is the probability of class i against class j.
    """
    n, k, _ = pairs.shape
    Q = -pairs.transpose(0, 2, 1) * pairs
    every = np.arange(k)
    Q[:, every, every] = np.square(pairs).sum(axis=1)
    p = np.full((n, k), 1.0 / k)
    going = np.arange(n)
    for _ in range(max(_FEWEST_ROUNDS, k)):
        Qp = np.einsum("ntj,nj->nt", Q[going], p[going])
        pQp = (p[going] * Qp).sum(axis=1)
        late = np.abs(Qp - pQp[:, None]).max(axis=1) >= _ACCURACY / k
        going, Qp, pQp = going[late], Qp[late], pQp[late]
        if not len(going):
            break
        p[going] = _swept(Q[going], p[going], Qp, pQp)
    return p


def _swept(Q: Array, p: Array, Qp: Array, pQp: Array) -> Array:
    """Move each probability once, in order."""
    for t in range(p.shape[1]):
        step = (pQp - Qp[:, t]) / Q[:, t, t]
        p[:, t] += step
        grown = 1.0 + step
        pQp = (pQp + step * (step * Q[:, t, t] + 2.0 * Qp[:, t])) / grown / grown
        Qp = (Qp + step[:, None] * Q[:, t]) / grown[:, None]
        p = p / grown[:, None]
    return p


def inlier_probabilities(values: Array, marks: Array) -> Array:
    """Return the probability of being common, and the rest, from density marks of one class.

    Parameters
    ----------
    values : (n,) array
        Decision values.
    marks : (10,) array
        Values that tenths of the training rows lie below.
    """
    found = np.searchsorted(marks, values, side="right") / len(marks)
    found = np.where(values < marks[0], _OUTSIDE, np.where(values > marks[-1], _INSIDE, found))
    found = np.where(values == marks[-1], 0.0, found)  # svm.cpp finds no interval for it
    return np.column_stack([found, 1.0 - found])


# --- errors --------------------------------------------------------------------------------------
#
# Errors of LIBSVM files, and their position.


class LibsvmFormatError(ModelFormatError):
    """A file that is not a LIBSVM model.

    Parameters
    ----------
    message : str
        The error, and the expected content.
    source : str
        The file.
    line : int or None
        The line, from 1.
    column : int or None
        The character in it, from 1.

    Examples
    --------
    >>> str(LibsvmFormatError("total_sv is missing", "a.model", 3))
    'a.model, line 3: total_sv is missing'
    """

    def __init__(
        self, message: str, source: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        place = [source] if source else []
        place += [f"line {line}"] if line is not None else []
        place += [f"column {column}"] if column is not None else []
        super().__init__(f"{', '.join(place)}: {message}" if place else message)
        self.source, self.line, self.column = source, line, column
