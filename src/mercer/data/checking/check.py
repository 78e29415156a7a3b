"""Check a table before anything is learnt from it."""

from __future__ import annotations

from collections.abc import Iterator

from mercer.data.checking.columns import check_columns
from mercer.data.checking.findings import Finding, Findings
from mercer.data.checking.rows import check_copied_columns, check_rows
from mercer.data.checking.target import check_target
from mercer.data.table import Table, refuse_unknown

MOST_COLUMNS = 5000  # that are looked at one by one
FEW_ROWS = 50  # of which a score has an error of more than 0.1


def check(table: Table, target: str | None = None, test: Table | None = None) -> Findings:
    """Look for what would spoil a fit: gaps, constants, copies, leaks, classes too small.

    Parameters
    ----------
    table : Table
        Training rows.
    target : str, optional
        The column to predict.
    test : Table, optional
        Rows that the fit will be judged by.

    Returns
    -------
    Findings
        Errors first, then warnings and notes; print them. Codes: "empty", "constant", "gaps",
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
        said = f"{len(table.sparse_columns)} sparse columns were not looked at one by one."
        yield Finding("note", "sparse", (), said)
    if len(table) < FEW_ROWS and target is not None:
        said = f"{len(table)} rows are few to learn from, and fewer to be judged by."
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
    """Look at what the test rows lack, and at levels that training rows do not have."""
    lacking = tuple(name for name in names if name not in test)
    if lacking:
        said = f"The test rows lack {len(lacking)} column(s): {', '.join(map(repr, lacking[:8]))}."
        yield Finding("error", "columns_differ", lacking, said)
    for name in names:
        if name in lacking or table.kinds[name].value not in ("category", "binary"):
            continue
        known = {*table[name].tolist(), None}
        new = [value for value in set(test[name].tolist()) if value not in known and value == value]  # noqa: PLR0124
        if new:
            said = (
                f"Column {name!r} has {len(new)} value(s) in the test rows that no training row "
                f"has, such as {min(new)!r}."
            )
            yield Finding("note", "new_levels", (name,), said)
