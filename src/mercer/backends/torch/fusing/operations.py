"""What operations on tiles are, as lines of a Triton kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mercer.backends.lowering.program import Code, Op, Program
from mercer.expression import SqDist

LOG2E = 1.4426950408889634


class Text(Protocol):
    """The kernel that lines are written for.

    Attributes
    ----------
    program : Program
        What is evaluated.
    lines : list of str
        That an operation wants before its own.
    """

    program: Program
    lines: list[str]

    def constant(self, value: float) -> str:
        """Return the name of a constant."""

    def affine(self, op: Op, factor: float = 1.0) -> str:
        """Return c0 * a + c1, all times a factor."""

    def exponent(self, op: Op) -> str:
        """Return c0 * a + c1 in base 2."""


Verb = Callable[[Op, Text], str]


def _sum(op: Op, text: Text) -> str:
    total = f"{text.constant(op.c0)} * r{op.a} + {text.constant(op.c1)} * r{op.b}"
    return f"{total} + {text.constant(op.c2)}" if op.c2 else total


def _ratio(op: Op, text: Text) -> str:
    a, b = f"r{op.a}", f"r{op.b}"
    both = f"({a} == 0.0) & ({b} == 0.0)"
    return f"tl.where({both}, 1.0, {a} / tl.where({both}, 1.0, {b}))"


def _whole_power(op: Op, text: Text) -> str:
    """Square repeatedly, in lines before the one that multiplies."""
    power, square, factors = abs(op.item), "z", []
    text.lines.append(f"z = {text.affine(op)}")
    while power:
        if power & 1:
            factors.append(square)
        power >>= 1
        if power:
            text.lines.append(f"{square}z = {square} * {square}")
            square += "z"
    value = " * ".join(factors) or "(z * 0.0 + 1.0)"
    return f"1.0 / ({value})" if op.item < 0 else value


def _tanh(op: Op, text: Text) -> str:
    """Divide exponentials; near zero, where these lose digits, take the series."""
    text.lines += [
        f"z = {text.affine(op)}",
        "zz = z * z",
        f"ze = tl.exp2({-2.0 * LOG2E} * tl.abs(z))",
        "far = tl.where(z < 0, -1.0, 1.0) * (1.0 - ze) / (1.0 + ze)",
        "near = z * (1.0 + zz * (-0.33333333 + zz * (0.13333333 - zz * 0.053968254)))",
    ]
    return "tl.where(zz < 0.04, near, far)"


def _polynomial(op: Op, text: Text) -> str:
    x = text.affine(op)
    *lower, highest = text.program.coefficients[op.item : op.item + op.items]
    total = text.constant(highest)
    for coefficient in reversed(lower):
        total = f"({total} * {x} + {text.constant(coefficient)})"
    return total


VERBS: dict[Code, Verb] = {
    Code.FILL: lambda op, t: f"tl.zeros((BM, BN), tl.float32) + {t.constant(op.c0)}",
    Code.AFFINE: lambda op, t: t.affine(op),
    Code.SUM: _sum,
    Code.PRODUCT: lambda op, t: f"{t.constant(op.c0)} * r{op.a} * r{op.b}",
    Code.RATIO: _ratio,
    Code.EXP: lambda op, t: f"tl.exp2({t.exponent(op)})",
    Code.SQRT: lambda op, t: f"tl.sqrt({t.affine(op)})",
    Code.TANH: _tanh,
    Code.POWER: lambda op, t: f"tl.exp2({t.constant(op.c2)} * tl.log2({t.affine(op)}))",
    Code.WHOLE_POWER: _whole_power,
    Code.POLYNOMIAL: _polynomial,
    Code.ROW_PRODUCT: lambda op, t: f"u{op.item}[:, None] * w{op.item}[None, :]",
    Code.ROW_SUM: lambda op, t: f"u{op.item}[:, None] + w{op.item}[None, :]",
}


def exponents(program: Program) -> dict[int, Op]:
    """Return the exponential of each squared distance that nothing else reads."""
    found = {}
    for i, leaf in enumerate(program.leaves):
        readers = []
        for op in program.ops:
            if i in op.reads():
                readers.append(op)
            if op.out == i:  # from here on the register holds something else
                break
        if isinstance(leaf, SqDist) and [op.code for op in readers] == [Code.EXP]:
            found[i] = readers[0]
    return found
