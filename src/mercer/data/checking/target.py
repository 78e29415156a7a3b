"""Checks of what is to be predicted: gaps, small classes, and columns that give it away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from mercer.array_types import Array
from mercer.data.checking.findings import Finding
from mercer.data.column import as_words, missing_of
from mercer.data.kinds import Kind
from mercer.data.labels import are_labels
from mercer.data.table import Table

FEW = 10  # rows of a class, for five folds with two in each
LEAK = 0.999  # of the answers that one column alone gets right, or of their rank correlation
_LEAST = 30  # rows from which on that cannot be chance


def check_target(table: Table, names: list[str], target: str) -> Iterator[Finding]:
    """Look at the column to predict, and for columns that give it away."""
    values = table[target]
    gaps = missing_of(values)
    if gaps.any():
        said = f"Target {target!r} is missing in {int(gaps.sum())} rows, which are left out."
        yield Finding("warning", "target_gaps", (target,), said)
    if table.kinds[target] is Kind.IDENTIFIER:
        said = f"Target {target!r} has a value of its own in nearly every row: nothing to learn."
        yield Finding("error", "target_identifier", (target,), said)
        return
    present = values[~gaps]
    if len(present) == 0 or bool((present == present[0]).all()):
        said = f"Target {target!r} has one value only: nothing to learn."
        yield Finding("error", "one_class", (target,), said)
        return
    rows = table.rows(~gaps)
    if are_labels(present):
        yield from _classes(as_words(present).tolist(), target)
        if len(present) >= _LEAST:
            codes = np.unique(present, return_inverse=True)[1]
            yield from _leaks_of_labels(rows, names, target, codes)
    elif len(present) >= _LEAST and present.dtype.kind == "f":
        yield from _leaks_of_numbers(rows, names, target, present)


def _classes(labels: list[object], target: str) -> Iterator[Finding]:
    counts = Counter(labels)
    for label, count in sorted(counts.items(), key=lambda pair: pair[1]):
        if count >= FEW:
            break
        level = "error" if count == 1 else "warning"
        said = (
            f"Class {label!r} of {target!r} has {count} row(s); folds and tests need more. Join it "
            "with another class, or leave its rows out."
        )
        yield Finding(level, "small_class", (target,), said)  # type: ignore[arg-type]
    most = counts.most_common(1)[0]
    if most[1] > 0.95 * len(labels):
        said = (
            f"{most[1] / len(labels):.1%} of the rows are of class {most[0]!r}: always saying so "
            "is right as often. Look at other scores than accuracy."
        )
        yield Finding("warning", "imbalance", (target,), said)


def _leaks_of_labels(rows: Table, names: list[str], target: str, codes: Array) -> Iterator[Finding]:
    """Look for a column each value of which, or each stretch of which, belongs to one class."""
    base = np.bincount(codes).max() / len(codes)
    for name in names:
        values = rows[name]
        if rows.kinds[name] in (Kind.TEXT, Kind.IDENTIFIER):
            continue
        if values.dtype.kind == "O":
            score = _share_by_value(values, codes)
        else:
            score = _share_by_stretch(values.astype(np.float64), codes)
        if score >= LEAK and base < LEAK:
            yield _leak(name, target, f"tells {score:.1%} of the answers by itself")


def _share_by_value(values: Array, codes: Array) -> float:
    """Return the share of rows that the commonest class of each value gets right.

    Values that come once cannot be learnt from, and do not count.
    """
    seen: dict[object, Counter[int]] = {}
    for value, code in zip(values.tolist(), codes.tolist(), strict=True):
        seen.setdefault(value, Counter())[code] += 1
    right = sum(max(c.values()) - (c.total() == 1) for c in seen.values())
    return right / len(codes)


def _share_by_stretch(values: Array, codes: Array) -> float:
    """Return the share of rows that are right when the line is cut once for each class."""
    order = np.argsort(values, kind="stable")
    sorted_codes, sorted_values = codes[order], values[order]
    changes = sorted_codes[1:] != sorted_codes[:-1]
    classes = len(np.unique(codes))
    if int(changes.sum()) != classes - 1:
        return 0.0
    # a change of class between equal values is no cut
    return 1.0 if bool((sorted_values[1:][changes] != sorted_values[:-1][changes]).all()) else 0.0


def _leaks_of_numbers(
    rows: Table, names: list[str], target: str, present: Array
) -> Iterator[Finding]:
    rank = _ranks(present)
    for name in names:
        values = rows[name]
        if values.dtype.kind != "f" or np.isnan(values).any() or np.ptp(values) == 0.0:
            continue
        score = abs(float(np.corrcoef(_ranks(values), rank)[0, 1]))
        if score >= LEAK:
            yield _leak(name, target, f"has the rank correlation {score:.4f} with it")


def _ranks(values: Array) -> Array:
    found = np.empty(len(values))
    found[np.argsort(values, kind="stable")] = np.arange(len(values))
    _, group = np.unique(values, return_inverse=True)
    return np.asarray((np.bincount(group, found) / np.bincount(group))[group])


def _leak(name: str, target: str, why: str) -> Finding:
    return Finding(
        "warning",
        "leak",
        (name, target),
        f"Column {name!r} gives {target!r} away: it {why}. Is it known before the answer is? If "
        "not, leave it out.",
    )
