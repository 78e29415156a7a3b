"""Header of LIBSVM's model files: a key and its values in each line, in any order, until "SV"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.files.libsvm.errors import LibsvmFormatError
from mercer.files.libsvm.model import CLASSIFIERS, KERNEL_TYPES, PARAMETERS, SVM_TYPES

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
        """How many coefficients each support vector has."""
        return int(self.values["nr_class"]) - 1


def read_header(lines: list[bytes], source: str) -> Header:
    """Read the lines up to "SV", and check what they say against one another."""
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
            raise LibsvmFormatError(f"{key} is there twice", source, number, words[0][0])
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
        raise LibsvmFormatError(f"{key} {shown!r} is none of {', '.join(known)}", source, line, at)
    return word.decode("ascii")


def number_of(word: bytes, source: str, line: int, at: int, whole: bool) -> int | float:
    """Return the number that a word says."""
    shown = word[:40].decode("latin-1")
    if not _NUMBER.fullmatch(word):
        raise LibsvmFormatError(f"{shown!r} is not a number", source, line, at)
    value = float(word)
    if not np.isfinite(value):
        raise LibsvmFormatError(f"{shown!r} is beyond the numbers of float64", source, line, at)
    if not whole:
        return value
    if value != int(value) or abs(value) > LARGEST:
        raise LibsvmFormatError(f"{shown!r} is not a whole number of 32 bits", source, line, at)
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
