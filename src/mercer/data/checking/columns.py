"""Checks of single columns: empty, constant, gaps, identifiers, infinities, codes in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.data.cells import number_of
from mercer.data.checking.findings import Finding
from mercer.data.column import Column
from mercer.data.kinds import Kind, count_the_rows
from mercer.data.table import Table

GAPS = 0.5  # share of missing entries from which on a column is hardly there
LEVELS = 0.2  # categories for each row, beyond which most have hardly a row


def check_columns(table: Table, names: list[str]) -> Iterator[Finding]:
    """Look at each column by itself."""
    gaps: dict[str, float] = {}
    for name in names:
        column = table.column(name)
        missing = column.missing
        share = float(missing.mean()) if len(missing) else 0.0
        if share == 1.0:
            said = f"Column {name!r} has no entry at all; leave it out."
            yield Finding("warning", "empty", (name,), said)
            continue
        if 0.0 < share < GAPS:
            gaps[name] = share
        elif share >= GAPS:
            said = f"Column {name!r} lacks {share:.0%} of its entries."
            yield Finding("warning", "gaps", (name,), said)
        yield from _entries(name, column, share)
    if gaps:
        worst = sorted(gaps, key=lambda name: -gaps[name])
        shown = ", ".join(f"{name!r} {gaps[name]:.1%}" for name in worst[:8])
        more = f" and {len(worst) - 8} more" if len(worst) > 8 else ""
        said = f"Entries are missing in {len(gaps)} column(s): {shown}{more}."
        yield Finding("note", "gaps", tuple(worst), said)


def _entries(name: str, column: Column, share: float) -> Iterator[Finding]:
    values = column.values[~column.missing]
    constant = bool((values == values[0]).all())
    if constant and not share:
        said = f"Column {name!r} has the same value in every row; it tells nothing."
        yield Finding("warning", "constant", (name,), said)
    elif constant:
        said = f"Column {name!r} has one value wherever it is not missing."
        yield Finding("note", "constant", (name,), said)
    elif column.kind is Kind.IDENTIFIER:
        said = (
            f"Column {name!r} looks like an identifier (a value of its own in nearly every row) "
            "and is left out; call it a category, a text or a number if it is none."
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
        said = f"Column {name!r} has {infinite} infinite entries; fill them in, or leave it out."
        yield Finding("error", "infinite", (name,), said)
    elif count_the_rows(values):
        said = (
            f"Column {name!r} grows by one from row to row, as a row number does; drop it if it is "
            "one. It is used as a number."
        )
        yield Finding("warning", "row_number", (name,), said)


def _words(name: str, column: Column) -> Iterator[Finding]:
    present = [entry for entry in column.values.tolist() if entry is not None]
    different = set(present)
    if column.kind is Kind.CATEGORY and len(different) > max(2, LEVELS * len(present)):
        said = (
            f"Column {name!r} has {len(different)} categories in {len(present)} rows: most of them "
            "have hardly a row to learn from."
        )
        yield Finding("note", "many_levels", (name,), said)
    if column.kind not in (Kind.CATEGORY, Kind.BINARY, Kind.IDENTIFIER):
        return
    odd = sorted(word for word in different if number_of(word) is None)
    if column.parsed == "word" and 0 < len(odd) <= 3 < len(different) - len(odd):
        said = (
            f"Column {name!r} is numbers but for {', '.join(map(repr, odd))}: if these stand for a "
            "missing entry, name them in missing=..."
        )
        yield Finding("warning", "numbers_as_words", (name,), said)
