"""Kernels made from kernels by arithmetic. Each rule keeps a kernel valid.

====================  =====================================  ==================================
rule                  formula                                why the matrix stays PSD
====================  =====================================  ==================================
`c * k`, c >= 0       c k(x, y)                              a cone
`k1 + k2`             k1(x, y) + k2(x, y)                    a cone; features side by side
`k1 * k2`             k1(x, y) k2(x, y)                      Schur; tensor product of features
`k ** p`              k(x, y)^p, p = 1, 2, ...               repeated product
`polynomial(k, c)`    c_0 + c_1 k + c_2 k^2 + ..., c_i >= 0  sums of products
`exp(k)`              exp(k(x, y))                           limit of such polynomials
====================  =====================================  ==================================

Sums and products flatten, so (a + b) + c has three parts; numbers gather in a product's `factor`.
Rules that change the rows instead are in `inputs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mercer import expression as ex
from mercer.array_types import Array
from mercer.expression import Expression
from mercer.kernels import checks
from mercer.kernels.base import Kernel, proven
from mercer.kernels.language.text import Binding, in_parentheses

_NEGATIVE = "a negative multiple of a kernel is not positive semidefinite"


@proven
@dataclass(frozen=True, repr=False)
class Sum(Kernel):
    """k1 + k2 + ...: what the operator `+` makes."""

    parts: tuple[Kernel, ...]
    binding: ClassVar[Binding] = Binding.SUM

    def __post_init__(self) -> None:
        nested = (p.parts if isinstance(p, Sum) else (p,) for p in map(_kernel, self.parts))
        self._store(parts=tuple(part for group in nested for part in group))

    def expression(self) -> Expression:
        """Write the sum."""
        return ex.add(*(part.expression() for part in self.parts))

    def __repr__(self) -> str:
        return " + ".join(in_parentheses(part, Binding.SUM) for part in self.parts)


@proven
@dataclass(frozen=True, repr=False)
class Product(Kernel):
    """factor * k1 * k2 * ...: what the operator `*` makes, of numbers and of kernels."""

    parts: tuple[Kernel, ...]
    factor: float = 1.0
    binding: ClassVar[Binding] = Binding.PRODUCT

    def __post_init__(self) -> None:
        factor = checks.nonnegative("k * c", "c", self.factor, _NEGATIVE)
        flat: list[Kernel] = []
        for part in map(_kernel, self.parts):
            if isinstance(part, Product):
                factor *= part.factor
            flat.extend(part.parts if isinstance(part, Product) else (part,))
        self._store(parts=tuple(flat), factor=checks.nonnegative("k * c", "c", factor))

    def expression(self) -> Expression:
        """Write the product."""
        return ex.multiply(self.factor, *(part.expression() for part in self.parts))

    def __repr__(self) -> str:
        factors = [in_parentheses(part, Binding.POWER) for part in self.parts]
        # a single part keeps its factor even when it is one, or the product would not show
        number = [repr(self.factor)] if self.factor != 1.0 or len(factors) == 1 else []
        return " * ".join(number + factors)


@proven
@dataclass(frozen=True, repr=False)
class Power(Kernel):
    """k(x, y)^p: what the operator `**` makes."""

    kernel: Kernel
    exponent: int
    binding: ClassVar[Binding] = Binding.POWER

    def __post_init__(self) -> None:
        reason = (
            "other powers of a kernel need not be kernels (a root of a positive semidefinite "
            "matrix, entry by entry, can have negative eigenvalues)"
        )
        self._store(exponent=checks.whole("k ** p", "p", self.exponent, reason))

    def expression(self) -> Expression:
        """Write the power."""
        return ex.Pow(self.kernel.expression(), float(self.exponent))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)} ** {self.exponent}"


@proven
@dataclass(frozen=True, repr=False)
class Exponential(Kernel):
    """exp(k(x, y)): what `exp` makes."""

    kernel: Kernel

    def expression(self) -> Expression:
        """Write the exponential."""
        return ex.Exp(self.kernel.expression())

    def __repr__(self) -> str:
        return f"exp({self.kernel!r})"


@proven
@dataclass(frozen=True, repr=False)
class PolynomialOf(Kernel):
    """c_0 + c_1 k + c_2 k^2 + ...: what `polynomial` makes."""

    kernel: Kernel
    coefficients: Sequence[float] | Array

    def __post_init__(self) -> None:
        stored = checks.nonnegative_list("polynomial", "coefficients", self.coefficients, _NEGATIVE)
        self._store(coefficients=stored)

    def expression(self) -> Expression:
        """Write the terms that are there, power by power."""
        k = self.kernel.expression()
        terms = [c * (k**i if i > 1 else k) for i, c in enumerate(self.coefficients) if i and c]
        return ex.add(float(self.coefficients[0]), *terms)

    def __repr__(self) -> str:
        return f"polynomial({self.kernel!r}, {self.coefficients!r})"


def exp(k: Kernel) -> Kernel:
    """Return the kernel exp(k(x, y)).

    Parameters
    ----------
    k : Kernel

    Examples
    --------
    >>> from mercer.kernels import Linear, exp
    >>> exp(Linear())([[0.0], [1.0]]).round(3).tolist()
    [[1.0, 1.0], [1.0, 2.718]]
    """
    return Exponential(_kernel(k))


def polynomial(k: Kernel, coefficients: Sequence[float] | Array) -> Kernel:
    """Return the kernel c_0 + c_1 k(x, y) + c_2 k(x, y)^2 + ... with coefficients c_i >= 0.

    Parameters
    ----------
    k : Kernel
    coefficients : sequence of float
        Constant term first.

    Examples
    --------
    >>> from mercer.kernels import Linear, polynomial
    >>> polynomial(Linear(), [1, 0, 2])([[1.0], [3.0]]).tolist()
    [[3.0, 19.0], [19.0, 163.0]]
    """
    return PolynomialOf(_kernel(k), coefficients)


def add(left: Kernel | float, right: Kernel | float) -> Kernel:
    """Add kernels; a number c >= 0 is the constant kernel."""
    return Sum((_lift(left), _lift(right)))


def multiply(left: Kernel | float, right: Kernel | float) -> Kernel:
    """Multiply kernels, or a kernel by a number c >= 0."""
    if not isinstance(left, Kernel):
        return Product((_kernel(right),), left)
    return Product((left, right)) if isinstance(right, Kernel) else Product((left,), right)


def _lift(value: Kernel | float) -> Kernel:
    from mercer.kernels.families.dot import Constant  # noqa: PLC0415  dot needs Kernel, as this file does

    return value if isinstance(value, Kernel) else Constant(value)


def _kernel(value: object) -> Kernel:
    if not isinstance(value, Kernel):
        raise TypeError(
            f"a kernel is needed here, not {value!r}; mercer.kernels.resolve turns names and "
            "functions into kernels"
        )
    return value
