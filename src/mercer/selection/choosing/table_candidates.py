"""Candidates for tables of mixed columns: what turns them into numbers, and a kernel per kind."""

from __future__ import annotations

from typing import Any

from mercer.data import Kind, Table, TablePreparation
from mercer.data.preparation.plan import kinds_in, plan_of
from mercer.data.preparation.preparation import Block
from mercer.kernels import Gaussian, Kernel, Linear
from mercer.selection.choosing.candidates import FACTORS, MOST_WORDS, Candidate, families
from mercer.selection.default_grids import typical_distance

_WIDE = 1000  # columns of a text from which on its words are compared by the linear kernel


def of_table(table: Table) -> list[Candidate]:
    """Return the candidates for a table: one kernel for all columns, and one for each kind.

    Categories and words are those of all rows, so that every fold has the same columns; what they
    weigh is learnt in each fold.
    """
    plan = plan_of(table, MOST_WORDS)
    if not kinds_in(plan):
        raise ValueError("choose: the table has no column that tells anything about other rows")
    prepare = TablePreparation(plan)
    steps = (("columns", prepare),)
    prepared = prepare.fit_transform(table)
    found = families(steps, prepared, dense=not plan["words"])
    blocks = prepare.blocks_
    if len(blocks) > 1:
        found.append(
            Candidate("sum over kinds of columns", steps, sums_over_kinds(prepared, blocks))
        )
    return found


def left_out(table: Table) -> list[str]:
    """Say which columns tell nothing about other rows."""
    names = [name for name, kind in table.kinds.items() if kind is Kind.IDENTIFIER]
    return [
        f"Column {name!r} has a {table.column(name).parsed} of its own in most rows and was left "
        "out."
        for name in names
    ]


def sums_over_kinds(rows: Any, blocks: list[Block]) -> tuple[Kernel, ...]:
    """Return sums of a kernel for each kind: Gaussian where rows are dense, linear on words."""
    places = [list(range(block.start, block.stop)) for block in blocks]
    typical = [typical_distance(rows[:, place], 2) / 2 for place in places]
    return tuple(
        _added([_on(place, factor * scale) for place, scale in zip(places, typical, strict=True)])
        for factor in FACTORS
    )


def _on(place: list[int], scale: float) -> Kernel:
    kernel: Kernel = Linear() if len(place) > _WIDE else Gaussian(scale)
    return kernel.on(place)


def _added(kernels: list[Kernel]) -> Kernel:
    total = kernels[0]
    for kernel in kernels[1:]:
        total = total + kernel
    return total
