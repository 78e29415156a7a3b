"""Function `check`: findings about columns, rows and the target of a table."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, overload

import numpy as np

from mercer.array_types import Array
from mercer.data.column import Column, are_labels, as_words, missing_of
from mercer.data.kinds import Kind, count_the_rows, number_of
from mercer.data.table import Table, refuse_unknown

# --- findings ------------------------------------------------------------------------------------
#
# What a check found: each with its columns, a sentence, and how grave it is.

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """A finding about a table.

    Attributes
    ----------
    level : {"error", "warning", "note"}
        "error": a fit is not reliable; "warning": check the column; "note": information.
    code : str
        Machine-readable code, such as "constant" or "leak".
    columns : tuple of str
        Affected columns.
    message : str
        Description and remedy.

    Examples
    --------
    >>> print(Finding("warning", "constant", ("a",), "Column 'a' has one value only."))
    warning: Column 'a' has one value only.
    """

    level: Level
    code: str
    columns: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return f"{self.level}: {self.message}"


class Findings(Sequence[Finding]):
    """Findings about a table, most severe first. Print them for a summary.

    Parameters
    ----------
    found : iterable of Finding
        Findings in any order.

    Examples
    --------
    >>> from mercer.data import Table, check
    >>> findings = check(Table.of({"a": [1, 1, 1], "b": [1, 2, 3]}))
    >>> print(findings)
    warning: Column 'a' has the same value in every row; drop it.
    >>> findings.codes
    ['constant']
    """

    def __init__(self, found: Iterable[Finding] = ()) -> None:
        self._found = tuple(sorted(found, key=lambda one: LEVELS.index(one.level)))

    @overload
    def __getitem__(self, index: int) -> Finding: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...

    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Findings) and self._found == other._found

    def __hash__(self) -> int:
        return hash(self._found)

    def __repr__(self) -> str:
        counts = Counter(one.level for one in self._found)
        return "<Findings: " + ", ".join(f"{counts[level]} {level}s" for level in LEVELS) + ">"

    def __str__(self) -> str:
        return "\n".join(map(str, self._found)) or "No findings."

    def _repr_html_(self) -> str:
        return "".join(f"<div>{escape(str(one))}</div>" for one in self._found) or str(self)

    @property
    def codes(self) -> list[str]:
        """The codes of all findings, in order."""
        return [one.code for one in self._found]

    @property
    def errors(self) -> list[Finding]:
        """Findings of level "error"."""
        return [one for one in self._found if one.level == "error"]


# --- columns -------------------------------------------------------------------------------------
#
# Checks of single columns: empty, constant, gaps, identifiers, infinities, codes in words.

GAPS = 0.5  # share of missing entries from which on a column is hardly there
LEVELS_PER_ROW = 0.2  # categories for each row, beyond which most have hardly a row


def check_columns(table: Table, names: list[str]) -> Iterator[Finding]:
    """Check each column separately."""
    gaps: dict[str, float] = {}
    for name in names:
        column = table.column(name)
        missing = column.missing
        share = float(missing.mean()) if len(missing) else 0.0
        if share == 1.0:
            said = f"Column {name!r} has only missing values; drop it."
            yield Finding("warning", "empty", (name,), said)
            continue
        if 0.0 < share < GAPS:
            gaps[name] = share
        elif share >= GAPS:
            said = f"Column {name!r} has {share:.0%} missing values."
            yield Finding("warning", "gaps", (name,), said)
        yield from _entries(name, column, share)
    if gaps:
        worst = sorted(gaps, key=lambda name: -gaps[name])
        shown = ", ".join(f"{name!r} {gaps[name]:.1%}" for name in worst[:8])
        more = f" and {len(worst) - 8} more" if len(worst) > 8 else ""
        said = f"Missing values in {len(gaps)} column(s): {shown}{more}."
        yield Finding("note", "gaps", tuple(worst), said)


def _entries(name: str, column: Column, share: float) -> Iterator[Finding]:
    values = column.values[~column.missing]
    constant = bool((values == values[0]).all())
    if constant and not share:
        said = f"Column {name!r} has the same value in every row; drop it."
        yield Finding("warning", "constant", (name,), said)
    elif constant:
        said = f"Column {name!r} has the same value in all rows that are not missing."
        yield Finding("note", "constant", (name,), said)
    elif column.kind is Kind.IDENTIFIER:
        said = (
            f"Column {name!r} looks like an identifier (distinct values in nearly all rows) "
            "and is ignored; to use it, set its kind to category, text or number."
        )
        yield Finding("note", "identifier", (name,), said)
    elif values.dtype.kind == "f":
        yield from _numbers(name, column)
    elif values.dtype.kind == "O":
        yield from _words(name, column)


def _numbers(name: str, column: Column) -> Iterator[Finding]:
    values = column.values
    infinite = int(np.isinf(values).sum())
    if infinite:
        said = f"Column {name!r} has {infinite} infinite entries; replace them or drop the column."
        yield Finding("error", "infinite", (name,), said)
    elif count_the_rows(values):
        said = (
            f"Column {name!r} increases by one per row like a row number, but is used as a number; "
            "drop it if it is a row number."
        )
        yield Finding("warning", "row_number", (name,), said)


def _words(name: str, column: Column) -> Iterator[Finding]:
    present = [entry for entry in column.values.tolist() if entry is not None]
    different = set(present)
    if column.kind is Kind.CATEGORY and len(different) > max(2, LEVELS_PER_ROW * len(present)):
        said = (
            f"Column {name!r} has {len(different)} categories in {len(present)} rows: most "
            "have very few training rows."
        )
        yield Finding("note", "many_levels", (name,), said)
    if column.kind not in (Kind.CATEGORY, Kind.BINARY, Kind.IDENTIFIER):
        return
    odd = sorted(word for word in different if number_of(word) is None)
    if column.parsed == "word" and 0 < len(odd) <= 3 < len(different) - len(odd):
        said = (
            f"Column {name!r} is numeric except {', '.join(map(repr, odd))}: if these mark missing "
            "values, pass them in missing=..."
        )
        yield Finding("warning", "numbers_as_words", (name,), said)


# --- rows ----------------------------------------------------------------------------------------
#
# Checks of rows: repeated, contradicting, in both splits; and columns that are copies.


def row_keys(table: Table, names: list[str]) -> Array:
    """Return a 64-bit hash of each row."""
    found = np.zeros(len(table), dtype=np.uint64)
    mix = np.uint64(0x9E3779B97F4A7C15)  # odd, without pattern: columns do not cancel
    with np.errstate(over="ignore"):
        for name in names:
            found = (found ^ (found >> np.uint64(29))) * mix + _entry_keys(table[name])
            found ^= found >> np.uint64(32)
    return found


def _entry_keys(values: Array) -> Array:
    if values.dtype.kind == "f":
        clean = np.where(np.isnan(values), np.nan, values) + 0.0
        return np.ascontiguousarray(clean).view(np.uint64)
    if values.dtype.kind == "M":
        return values.astype(np.int64).view(np.uint64)
    known = {word: _word_key(word) for word in set(values.tolist())}
    return np.array([known[word] for word in values.tolist()], dtype=np.uint64)


def _word_key(word: str | None) -> int:
    if word is None:
        return 1
    text = word.encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def check_rows(
    table: Table, names: list[str], target: str | None, test: Table | None
) -> Iterator[Finding]:
    """Find duplicate rows, contradicting rows and rows shared with the test table."""
    if not names:
        return
    keys = row_keys(table, names)
    different = len(np.unique(keys))
    if target is not None:
        whole = row_keys(table, [*names, target])
        copies, answers = len(table) - len(np.unique(whole)), len(np.unique(whole))
        if answers > different and are_labels(table[target][~table.column(target).missing]):
            said = (
                f"{answers - different} rows contradict others: their features are equal, "
                f"but {target!r} differs. No model can predict both correctly."
            )
            yield Finding("note", "contradiction", (target,), said)
    else:
        copies = len(table) - different
    if copies:
        said = (
            f"{copies} of {len(table)} rows are duplicates; scores are optimistic if duplicates "
            "are in both parts of a split (`fit` keeps them together)."
        )
        yield Finding("warning" if copies > 0.01 * len(table) else "note", "copies", (), said)
    if test is not None:
        common = [name for name in names if name in test]
        both = np.isin(row_keys(test, common), row_keys(table, common)) if common else np.array([])
        if both.any():
            said = (
                f"{int(both.sum())} of {len(test)} test rows are also training rows; remove "
                "them, because their scores do not apply to new rows."
            )
            yield Finding("error", "both_splits", (), said)


def check_copied_columns(table: Table, names: list[str]) -> Iterator[Finding]:
    """Find duplicate columns."""
    seen: dict[bytes, str] = {}
    for name in names:
        keys = _entry_keys(table[name])
        key = hashlib.blake2b(keys.tobytes(), digest_size=16).digest()
        if key in seen:
            said = f"Columns {seen[key]!r} and {name!r} have the same entries; drop one."
            yield Finding("warning", "copied_column", (seen[key], name), said)
        else:
            seen[key] = name


# --- target --------------------------------------------------------------------------------------
#
# Checks of what is to be predicted: gaps, small classes, and columns that give it away.

FEW = 10  # rows of a class, for five folds with two in each
LEAK = 0.999  # of the answers that one column alone gets right, or of their rank correlation
_LEAST = 30  # rows from which on that cannot be chance


def check_target(table: Table, names: list[str], target: str) -> Iterator[Finding]:
    """Check the target column, and find columns that leak it."""
    values = table[target]
    gaps = missing_of(values)
    if gaps.any():
        said = f"Target {target!r} is missing in {int(gaps.sum())} rows, which are ignored."
        yield Finding("warning", "target_gaps", (target,), said)
    if table.kinds[target] is Kind.IDENTIFIER:
        said = f"Target {target!r} has distinct values in nearly all rows; it cannot be predicted."
        yield Finding("error", "target_identifier", (target,), said)
        return
    present = values[~gaps]
    if len(present) == 0 or bool((present == present[0]).all()):
        said = f"Target {target!r} has only one value; there is nothing to predict."
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
            f"Class {label!r} of {target!r} has {count} row(s), too few for folds and tests. "
            "Merge it with another class or drop its rows."
        )
        yield Finding(level, "small_class", (target,), said)  # type: ignore[arg-type]
    most = counts.most_common(1)[0]
    if most[1] > 0.95 * len(labels):
        said = (
            f"{most[1] / len(labels):.1%} of the rows are of class {most[0]!r}: a constant "
            "prediction has the same accuracy. Use other scores."
        )
        yield Finding("warning", "imbalance", (target,), said)


def _leaks_of_labels(rows: Table, names: list[str], target: str, codes: Array) -> Iterator[Finding]:
    """Find columns whose values or intervals determine the class."""
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
            yield _leak(name, target, f"alone predicts {score:.1%} of the rows correctly")


def _share_by_value(values: Array, codes: Array) -> float:
    """Return the fraction of rows in the most frequent class of their value.

    Values that occur once are ignored.
    """
    seen: dict[object, Counter[int]] = {}
    for value, code in zip(values.tolist(), codes.tolist(), strict=True):
        seen.setdefault(value, Counter())[code] += 1
    right = sum(max(c.values()) - (c.total() == 1) for c in seen.values())
    return right / len(codes)


def _share_by_stretch(values: Array, codes: Array) -> float:
    """Return the accuracy of the best split into one interval per class."""
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
            yield _leak(name, target, f"has a rank correlation of {score:.4f} with the target")


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
        f"Column {name!r} may leak {target!r}: it {why}. Drop it if it is unknown at prediction "
        "time.",
    )


# --- check ---------------------------------------------------------------------------------------
#
# Check a table before anything is learnt from it.

MOST_COLUMNS = 5000  # that are looked at one by one
FEW_ROWS = 50  # of which a score has an error of more than 0.1


def check(table: Table, target: str | None = None, test: Table | None = None) -> Findings:
    """Find problems in a table: missing values, constants, duplicates, leaks, small classes.

    Parameters
    ----------
    table : Table
        Training rows.
    target : str, optional
        Column to predict.
    test : Table, optional
        Test rows.

    Returns
    -------
    Findings
        Errors, then warnings and notes. Codes: "empty", "constant", "gaps",
        "identifier", "row_number", "infinite", "numbers_as_words", "many_levels", "copies",
        "copied_column", "contradiction", "target_gaps", "target_identifier", "one_class",
        "small_class", "imbalance", "leak", "both_splits", "columns_differ", "new_levels",
        "sparse", "few_rows", "no_rows".

    Examples
    --------
    >>> from mercer.data import Table, check
    >>> table = Table.of({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "b", "a", "a"]})
    >>> for finding in check(table, target="y"):
    ...     print(finding.level, finding.code)
    error small_class
    warning few_rows
    warning small_class
    """
    table = Table.of(table)
    test = None if test is None else Table.of(test)
    if target is not None:
        refuse_unknown([target], table)
    return Findings(_all(table, target, test))


def _all(table: Table, target: str | None, test: Table | None) -> Iterator[Finding]:
    if not len(table):
        yield Finding("error", "no_rows", (), "The table has no rows.")
        return
    names = [name for name in table.dense_columns if name != target][:MOST_COLUMNS]
    if table.csr is not None:
        said = f"{len(table.sparse_columns)} sparse columns were not checked separately."
        yield Finding("note", "sparse", (), said)
    if len(table) < FEW_ROWS and target is not None:
        said = f"{len(table)} rows are too few for a reliable fit and evaluation."
        yield Finding("warning", "few_rows", (), said)
    yield from check_columns(table, names)
    yield from check_copied_columns(table, names)
    if table.csr is None:
        yield from check_rows(table, names, target, test)
    if target is not None:
        yield from check_target(table, names, target)
    if test is not None:
        yield from _differences(table, names, test)


def _differences(table: Table, names: list[str], test: Table) -> Iterator[Finding]:
    """Check the test table for missing columns and new categories."""
    lacking = tuple(name for name in names if name not in test)
    if lacking:
        shown = ", ".join(map(repr, lacking[:8]))
        said = f"The test table lacks {len(lacking)} column(s): {shown}."
        yield Finding("error", "columns_differ", lacking, said)
    for name in names:
        if name in lacking or table.kinds[name].value not in ("category", "binary"):
            continue
        known = {*table[name].tolist(), None}
        new = [value for value in set(test[name].tolist()) if value not in known and value == value]  # noqa: PLR0124
        if new:
            said = (
                f"Column {name!r} has {len(new)} value(s) in the test rows that the training "
                f"rows do not have, such as {min(new)!r}."
            )
            yield Finding("note", "new_levels", (name,), said)
