"""A flat program on blocks of tensors: leaves are compared, then operations run one by one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch

from mercer.backends.lowering.program import Code, Op, Program

Tensor: TypeAlias = torch.Tensor


@dataclass(frozen=True, eq=False)
class Block:
    """What a program reads for one block of pairs.

    Attributes
    ----------
    leaves : list of (h, w) tensors
        The statistics.
    row_terms : list of pairs of tensors
        Values of each row term for the rows (h,) and for the columns (w,).
    externals : list of (h, w) tensors
        What Python evaluated.
    like : Tensor
        An (h, w) tensor of the type of the results; its values are not read.
    """

    leaves: list[Tensor]
    row_terms: list[tuple[Tensor, Tensor]]
    externals: list[Tensor]
    like: Tensor


def run(program: Program, block: Block, dtype: Any = None) -> Tensor:
    """Evaluate all operations; return register 0, in a type that may be asked for."""
    registers = [*block.leaves, *[block.like] * (program.registers - len(block.leaves))]
    for op in program.ops[:-1]:
        registers[op.out] = _VERBS[Code(op.code)](op, registers, program, block)
    for op in program.ops[-1:]:
        if Code(op.code) is Code.EXP and op.out == 0 and _takes_one_pass(registers[op.a]):
            from mercer.backends.torch.fusing.exponentials import exponential  # noqa: PLC0415  imports Triton

            argument = registers[op.a]
            return exponential(argument, op.c0, op.c1, dtype or argument.dtype)
        registers[op.out] = _VERBS[Code(op.code)](op, registers, program, block)
    return registers[0] if dtype is None else registers[0].to(dtype)


def _takes_one_pass(x: Tensor) -> bool:
    return x.is_cuda and x.dtype is torch.float64 and x.is_contiguous() and _has_triton()


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


_Verb = Callable[[Op, list[Tensor], Program, Block], Tensor]


def _unary(function: Callable[[Op, Tensor], Tensor]) -> _Verb:
    """Return f(c0 x + c1), written over the argument where that is its own: passes take time."""

    def verb(op: Op, r: list[Tensor], program: Program, block: Block) -> Tensor:
        if (op.c0, op.c1) == (1.0, 0.0):
            return function(op, r[op.a].clone() if function is not _same else r[op.a])
        argument = op.c0 * r[op.a]
        return function(op, argument.add_(op.c1) if op.c1 else argument)

    return verb


def _same(op: Op, x: Tensor) -> Tensor:
    return x


def _ratio(op: Op, r: list[Tensor], program: Program, block: Block) -> Tensor:
    both_zero = (r[op.a] == 0) & (r[op.b] == 0)
    return torch.where(both_zero, 1.0, r[op.a] / torch.where(both_zero, 1.0, r[op.b]))


def _polynomial(op: Op, r: list[Tensor], program: Program, block: Block) -> Tensor:
    x = op.c0 * r[op.a] + op.c1
    *lower, value = program.coefficients[op.item : op.item + op.items]
    total = torch.full_like(x, value)
    for coefficient in reversed(lower):
        total = total * x + coefficient
    return total


def _row_product(op: Op, r: list[Tensor], program: Program, block: Block) -> Tensor:
    u, w = block.row_terms[op.item]
    return u[:, None] * w


def _row_sum(op: Op, r: list[Tensor], program: Program, block: Block) -> Tensor:
    u, w = block.row_terms[op.item]
    return u[:, None] + w


_VERBS: dict[Code, _Verb] = {
    Code.FILL: lambda op, r, program, block: torch.full_like(block.like, op.c0),
    Code.AFFINE: _unary(_same),
    Code.SUM: lambda op, r, program, block: op.c0 * r[op.a] + (op.c1 * r[op.b] + op.c2),
    Code.PRODUCT: lambda op, r, program, block: op.c0 * r[op.a] * r[op.b],
    Code.RATIO: _ratio,
    Code.EXP: _unary(lambda op, x: x.exp_()),
    Code.SQRT: _unary(lambda op, x: x.sqrt_()),
    Code.TANH: _unary(lambda op, x: x.tanh_()),
    Code.POWER: _unary(lambda op, x: x.pow_(op.c2)),
    Code.WHOLE_POWER: _unary(lambda op, x: x.pow_(op.item)),
    Code.POLYNOMIAL: _polynomial,
    Code.ROW_PRODUCT: _row_product,
    Code.ROW_SUM: _row_sum,
    Code.EXTERNAL: lambda op, r, program, block: block.externals[op.item],
}
