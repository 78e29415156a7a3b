"""From a flat program of one leaf to the body of a CUDA function: r0 in, an entry of K out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mercer.backends.lowering.program import Code, Op, Program

_MOST_CONSTANTS = 16  # arguments of a kernel: sums of more terms are evaluated in blocks


@dataclass(frozen=True)
class Formula:
    """An entry of K as a function of one statistic.

    Attributes
    ----------
    body : str
        Statements of C that return it, of r0 and c0, c1, ...; the same for all scales of a search.
    constants : tuple of float
        What c0, c1, ... are.
    """

    body: str
    constants: tuple[float, ...]


def formula_of(program: Program) -> Formula | None:
    """Write the formula; None where it reads more than one statistic, or what Python evaluates."""
    codes = {Code(op.code) for op in program.ops}
    if len(program.leaves) != 1 or not codes <= set(_VERBS):
        return None
    text = _Text(program)
    lines = [f"double r{i} = 0.0;" for i in range(1, program.registers)]
    for op in program.ops:
        lines.append(f"r{op.out} = {_VERBS[Code(op.code)](op, text)};")
    if len(text.constants) > _MOST_CONSTANTS:
        return None
    return Formula(" ".join([*lines, "return r0;"]), tuple(text.constants))


class _Text:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.constants: list[float] = []

    def constant(self, value: float) -> str:
        self.constants.append(float(value))
        return f"c{len(self.constants) - 1}"

    def affine(self, op: Op) -> str:
        if (op.c0, op.c1) == (1.0, 0.0):
            return f"r{op.a}"
        return f"fma({self.constant(op.c0)}, r{op.a}, {self.constant(op.c1)})"


_Verb = Callable[[Op, _Text], str]


def _applied(function: str) -> _Verb:
    return lambda op, text: f"{function}({text.affine(op)})"


def _sum(op: Op, text: _Text) -> str:
    second = f"fma({text.constant(op.c1)}, r{op.b}, {text.constant(op.c2)})"
    return f"fma({text.constant(op.c0)}, r{op.a}, {second})"


def _ratio(op: Op, text: _Text) -> str:
    return f"(r{op.a} == 0.0 && r{op.b} == 0.0 ? 1.0 : r{op.a} / r{op.b})"


def _polynomial(op: Op, text: _Text) -> str:
    x = text.affine(op)
    *lower, highest = text.program.coefficients[op.item : op.item + op.items]
    total = text.constant(highest)
    for coefficient in reversed(lower):
        total = f"fma({total}, {x}, {text.constant(coefficient)})"
    return total


_VERBS: dict[Code, _Verb] = {
    Code.FILL: lambda op, text: text.constant(op.c0),
    Code.AFFINE: lambda op, text: text.affine(op),
    Code.SUM: _sum,
    Code.PRODUCT: lambda op, text: f"{text.constant(op.c0)} * r{op.a} * r{op.b}",
    Code.RATIO: _ratio,
    Code.EXP: _applied("exponential"),
    Code.SQRT: _applied("sqrt"),
    Code.TANH: _applied("tanh"),
    Code.POWER: lambda op, text: f"pow({text.affine(op)}, {text.constant(op.c2)})",
    Code.WHOLE_POWER: lambda op, text: f"pow({text.affine(op)}, {text.constant(op.item)})",
    Code.POLYNOMIAL: _polynomial,
}
