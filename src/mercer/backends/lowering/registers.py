"""Registers for the values of a program, each free again after its last use."""

from __future__ import annotations

from collections.abc import Sequence

from mercer.backends.lowering.program import READS_TWO, Code, Op


def assign_registers(emitted: Sequence[Op], leaves: int, result: int) -> tuple[tuple[Op, ...], int]:
    """Map leaves and operations to registers, each free again after its last use.

    Operations go entry by entry, so the result of one may overwrite what it reads.
    """
    ops = list(emitted)
    if result < -1 or (result >= 0 and result != len(ops) - 1):
        ops.append(Op(Code.AFFINE, len(ops), a=result))
        result = len(ops) - 1
    last_use = {number: i for i, op in enumerate(ops) for number in op.reads()}
    place = {-1 - i: i for i in range(leaves)}
    free: list[int] = []
    registers = max(1, leaves)
    if not leaves:
        free.append(0)
    placed: list[Op] = []
    for i, op in enumerate(ops):
        a, b = place.get(op.a, 0), place.get(op.b, 0)
        if not op.reads():
            a = b = 0
        for number in set(op.reads()):
            if last_use[number] == i:
                free.append(place[number])
        if i == result:
            out = 0
        elif free:
            out = min(free)
            free.remove(out)
        else:
            out, registers = registers, registers + 1
        place[i] = out
        placed.append(op._replace(a=a, b=b if op.code in READS_TWO else 0, out=out))
    return tuple(placed), registers
