"""Checks of rows: repeated, contradicting, in both splits; and columns that are copies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from mercer.array_types import Array
from mercer.data.checking.findings import Finding
from mercer.data.labels import are_labels
from mercer.data.table import Table


def row_keys(table: Table, names: list[str]) -> Array:
    """Return a number for each row that equal rows share (64 bits of a hash)."""
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
    """Look for rows that come twice, contradict one another, or are in both splits."""
    if not names:
        return
    keys = row_keys(table, names)
    different = len(np.unique(keys))
    if target is not None:
        whole = row_keys(table, [*names, target])
        copies, answers = len(table) - len(np.unique(whole)), len(np.unique(whole))
        if answers > different and are_labels(table[target][~table.column(target).missing]):
            said = (
                f"{answers - different} rows contradict others: all features are equal, "
                f"{target!r} is not. No model can be right on both."
            )
            yield Finding("note", "contradiction", (target,), said)
    else:
        copies = len(table) - different
    if copies:
        said = (
            f"{copies} of {len(table)} rows are copies of others; scores are too good where copies "
            "are on both sides of a split (`fit` keeps them together)."
        )
        yield Finding("warning" if copies > 0.01 * len(table) else "note", "copies", (), said)
    if test is not None:
        common = [name for name in names if name in test]
        both = np.isin(row_keys(test, common), row_keys(table, common)) if common else np.array([])
        if both.any():
            said = (
                f"{int(both.sum())} of {len(test)} test rows are training rows, too; scores on "
                "them say nothing about new rows."
            )
            yield Finding("error", "both_splits", (), said)


def check_copied_columns(table: Table, names: list[str]) -> Iterator[Finding]:
    """Look for columns that are copies of one another."""
    seen: dict[bytes, str] = {}
    for name in names:
        keys = _entry_keys(table[name])
        key = hashlib.blake2b(keys.tobytes(), digest_size=16).digest()
        if key in seen:
            said = f"Columns {seen[key]!r} and {name!r} have the same entries; one is enough."
            yield Finding("warning", "copied_column", (seen[key], name), said)
        else:
            seen[key] = name
