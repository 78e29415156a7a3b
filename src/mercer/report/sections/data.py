"""Report section on the data: column kinds, missing values, distributions and findings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.report.page import Bits, Block, Cell, Name, Note, PageTable, Section
from mercer.report.subject import Subject, sampled
from mercer.report.svg import Drawing, small_histogram
from mercer.report.svg.figures import small_columns
from mercer.report.text import clean, count, figure, listed, share

_COLUMNS = 40  # in the table
_ROWS = 20_000  # subsample for counts and histograms
_FINDINGS = 12
_CATEGORIES = 6  # bars of a histogram of categories
_LEVELS = {"error": "error", "warning": "warning"}


def data(subject: Subject) -> Section | None:
    """Build the section, or return None without a table."""
    table = subject.table
    if table is None or not hasattr(table, "kinds"):
        return None
    names = list(table.columns)
    numbers = Counter(str(kind.value) for kind in table.kinds.values())
    said = ", ".join(f"{n:,} {kind}" for kind, n in numbers.most_common())
    lead = f"{count(len(table), 'row')} and {count(len(names), 'column')}: {said}."
    checked = [] if subject.findings is None else findings(subject.findings)
    blocks = [*checked, columns_table(subject, names)]
    return Section("data", "Data", lead, tuple(blocks))


def findings(found: Sequence[Any]) -> list[Block]:
    """List the findings, most severe first."""
    order = {"error": 0, "warning": 1}
    worst = sorted(found, key=lambda one: order.get(_level(one), 2))
    blocks: list[Block] = [
        Note(_LEVELS.get(_level(one), "info"), clean(one.message, 400)) for one in worst[:_FINDINGS]
    ]
    if len(worst) > _FINDINGS:
        blocks.append(Note("info", f"And {count(len(worst) - _FINDINGS, 'more finding')}."))
    if not blocks:
        blocks.append(Note("good", "The checks of the table found no problems."))
    return blocks


def _level(finding: Any) -> str:
    level = getattr(finding, "level", "info")
    return str(getattr(level, "value", level)).lower()


def columns_table(subject: Subject, names: list[str]) -> PageTable:
    """Describe the columns, the target first."""
    table, target = subject.table, subject.target
    order = [name for name in names if name == target] + [n for n in names if n != target]
    codes = _codes(subject.findings or ())
    some = sampled(len(table), _ROWS)
    kinds = {name: str(kind.value) for name, kind in table.kinds.items()}
    rows = [
        _row(table[name], name, kinds[name], some, codes.get(name, []), name == target)
        for name in order[:_COLUMNS]
    ]
    left = order[_COLUMNS:]
    note = f"And {count(len(left), 'more column')}: {listed(left, 6)}." if left else ""
    note += " Bar heights of numeric histograms are square roots of counts, to show the tails."
    if len(some) < len(table):
        note += f" Based on a random sample of {count(len(some))} of {count(len(table), 'row')}."
    head = ("Column", "Kind", "Missing", "Distinct", "Values", "Distribution", "")
    return PageTable(head, tuple(rows), (2, 3), title="Columns", note=note.strip())


def _codes(found: Sequence[Any]) -> dict[str, list[tuple[str, str]]]:
    """Return the codes of the findings by column."""
    by_column: dict[str, list[tuple[str, str]]] = {}
    for one in found:
        for name in list(getattr(one, "columns", ()))[:1000]:
            bit = (_LEVELS.get(_level(one), "info"), clean(str(one.code).replace("_", " "), 24))
            by_column.setdefault(name, []).append(bit)
    return by_column


def _row(
    column: Any,
    name: str,
    kind: str,
    some: Array,
    codes: list[tuple[str, str]],
    is_target: bool,
) -> tuple[Cell, ...]:
    values = np.asarray(column)
    values = values if len(some) == len(values) else values[some]
    there = values[~missing(values)]
    gaps = 1 - len(there) / max(len(values), 1)
    bits = [("good", "target")] if is_target else []
    said, drawing, distinct = describe(there, kind)
    return (
        Name(clean(name, 40)),
        kind,
        share(gaps) if gaps else "–",
        count(distinct),
        said,
        drawing,
        Bits((*bits, *codes[:3])),
    )


def missing(values: Array) -> Array:
    """Return a mask of missing entries."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    if values.dtype.kind == "O":
        return np.array([one is None or _is_nan(one) for one in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def describe(values: Array, kind: str) -> tuple[str, Drawing | str, int]:
    """Return a summary of the values, a plot, and the number of distinct values."""
    if not len(values):
        return "none", "", 0
    if values.dtype.kind in "fiub":
        return _numbers(values)
    if values.dtype.kind in "mM":
        first, last = values.min(), values.max()
        days = (values - first) / np.timedelta64(1, "D")
        span = f"{_day(first)} to {_day(last)}"
        return span, small_histogram(days, span), len(np.unique(values))
    words = [str(one) for one in values.tolist()]
    different = Counter(words)
    if kind in ("text", "identifier"):
        lengths = np.array([len(one) for one in words])
        said = f"median length {count(int(np.median(lengths)), 'character')}"
        return said, small_histogram(lengths, f"Lengths: {said}"), len(different)
    common = different.most_common(_CATEGORIES)
    said = listed([f"{clean(word, 20)} ({share(n / len(words), 0)})" for word, n in common[:3]], 3)
    if len(different) > 3:
        said += f" and {len(different) - 3:,} more"
    title = f"The {len(common)} most frequent: {said}"
    return said, small_columns([n for _, n in common], title), len(different)


def _numbers(values: Array) -> tuple[str, Drawing | str, int]:
    numbers = values.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return "no finite values", "", 0
    low, middle, high = (float(np.quantile(finite, q)) for q in (0.0, 0.5, 1.0))
    said = f"{figure(low, 3)} to {figure(high, 3)}, median {figure(middle, 3)}"
    different = np.unique(finite)
    if len(different) == 1:
        said = f"always {figure(low, 4)}"
    elif len(different) == 2:
        part = float((finite == different[1]).mean())
        said = f"{figure(different[0], 4)} or {figure(different[1], 4)} ({share(part, 0)})"
    return said, small_histogram(finite, said), len(different)


def _day(value: Any) -> str:
    return str(np.datetime64(value, "D"))


def _is_nan(one: Any) -> bool:
    return isinstance(one, float) and math.isnan(one)
