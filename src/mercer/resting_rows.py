"""What a fit leaves behind: rows in the memory of the processor, not on a card."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from typing import Any

from mercer.card_rows import CardRows

_PASSING = ContextVar("passing", default=False)  # of each thread


@contextmanager
def passing_fits() -> Iterator[None]:
    """Let rows that machines keep stay on the card: these are asked for answers, and dropped."""
    token = _PASSING.set(True)
    try:
        yield
    finally:
        _PASSING.reset(token)


def at_rest(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Return what a fit found with its rows in the memory of the processor, wherever they stand.

    Records and sequences are looked into, and replaced where something in them is; whatever two of
    them shared, they share still (`known`). A certificate that waits keeps its rows: it is made
    where they lie, and lets them go (`keeps_card_rows`).

    Examples
    --------
    >>> at_rest((1, "rows"))
    (1, 'rows')
    """
    if isinstance(value, CardRows):
        return value if _PASSING.get() else value.on_host()
    if hasattr(value, "keeps_card_rows"):
        rows = getattr(getattr(value, "source", None), "X", None)
        if isinstance(rows, CardRows):
            rows.forget_given()
        return value
    record = is_dataclass(value) and not isinstance(value, type)
    if not record and type(value) not in (tuple, list):
        return value
    known = {} if known is None else known
    if id(value) not in known:
        known[id(value)] = value, _rested(value, known, record)  # held, so that no other has its id
    return known[id(value)][1]


def _rested(value: Any, known: dict[int, Any], record: bool) -> Any:
    if not record:
        parts = [at_rest(part, known) for part in value]
        same = all(map(operator.is_, parts, value))
        return value if same else type(value)(parts)
    held = {each.name: getattr(value, each.name, None) for each in fields(value) if each.init}
    found = {name: at_rest(part, known) for name, part in held.items()}
    changed = {name: part for name, part in found.items() if part is not held[name]}
    return replace(value, **changed) if changed else value
