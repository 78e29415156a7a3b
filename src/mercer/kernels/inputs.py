"""Kernels on rows that are changed first: columns chosen, rows mapped, weighted, normalised.

============================  ============================  ======================================
rule                          formula                       why the matrix stays PSD
============================  ============================  ======================================
`k.on(columns)`               k(x_c, y_c)                   a kernel on a part of the row
`k.after(phi)`                k(phi(x), phi(y))             the same matrix, of other points
`k.scaled_by(f)`              f(x) k(x, y) f(y)             D K D with D diagonal
`k.normalized()`              k / sqrt(k(x, x) k(y, y))     the same, with f = k(x, x)^(-1/2)
============================  ============================  ======================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from mercer import expression as ex
from mercer.expression import Expression
from mercer.kernels.base import Kernel, proven
from mercer.kernels.columns import as_columns
from mercer.kernels.language import text
from mercer.kernels.language.text import Binding, in_parentheses


@proven
@dataclass(frozen=True, repr=False)
class On(Kernel):
    """k(x_c, y_c) on the columns c: what `k.on` makes."""

    kernel: Kernel
    columns: Any  # kept as a tuple of numbers and names

    def __post_init__(self) -> None:
        self._store(columns=as_columns(self.columns))

    def expression(self) -> Expression:
        """Choose the columns before everything else."""
        return ex.after(self.kernel.expression(), ex.Columns(self.columns))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)}.on({list(self.columns)!r})"


@proven
@dataclass(frozen=True, repr=False)
class After(Kernel):
    """k(phi(x), phi(y)): what `k.after` makes."""

    kernel: Kernel
    phi: Callable[[Any], Any]

    def __post_init__(self) -> None:
        refuse_uncallable("after", "phi", self.phi)

    def expression(self) -> Expression:
        """Map the rows before everything else."""
        return ex.after(self.kernel.expression(), ex.Mapped(self.phi))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)}.after({text.name(self.phi)})"


@proven
@dataclass(frozen=True, repr=False)
class ScaledBy(Kernel):
    """f(x) k(x, y) f(y): what `k.scaled_by` makes."""

    kernel: Kernel
    f: Callable[[Any], Any]

    def __post_init__(self) -> None:
        refuse_uncallable("scaled_by", "f", self.f)

    def expression(self) -> Expression:
        """Multiply by f on both sides."""
        return ex.multiply(self.kernel.expression(), ex.RowProduct(ex.RowFunction(self.f)))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)}.scaled_by({text.name(self.f)})"


@proven
@dataclass(frozen=True, repr=False)
class Normalized(Kernel):
    """k(x, y) / sqrt(k(x, x) k(y, y)): what `k.normalized` makes."""

    kernel: Kernel

    def expression(self) -> Expression:
        """Divide by the norms of both rows in feature space."""
        k = self.kernel.expression()
        if is_homogeneous(k):
            k = ex.rebuild(k, lambda steps: (*steps, ex.NearOne()))
        return ex.multiply(k, ex.RowProduct(ex.SelfValue(k, -0.5)))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)}.normalized()"


def is_homogeneous(e: Expression) -> bool:
    """Return whether a multiple of x only multiplies e(x, y), which normalising takes back."""
    if isinstance(e, ex.Mul | ex.Pow):
        return all(is_homogeneous(part) for part in ex.children(e))
    return isinstance(e, ex.Dot | ex.SymmetricSum | ex.Constant)


def numbered(kernel: Kernel, names: Sequence[str] | None) -> Kernel:
    """Return a kernel that speaks of columns by number where it did so by name.

    Parameters
    ----------
    kernel : Kernel
        Any kernel.
    names : list of str or None
        Names of the columns, in their order.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> numbered(Gaussian(1.0).on("age") + Linear().on(0), ["height", "age"])
    Gaussian(scale=1.0).on([1]) + Linear().on([0])
    """
    if isinstance(kernel, On):
        chosen = ex.Dot((ex.Columns(kernel.columns),))
        bound: Any = ex.bind_columns(chosen, None if names is None else list(names))
        return replace(kernel, columns=bound.steps[0].names)
    if isinstance(kernel, After):
        return kernel  # what it compares has columns of its own
    changed: dict[str, Any] = {}
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        if isinstance(value, Kernel):
            changed[field.name] = numbered(value, names)
        elif isinstance(value, tuple) and value and all(isinstance(k, Kernel) for k in value):
            changed[field.name] = tuple(numbered(part, names) for part in value)
    new = {name: value for name, value in changed.items() if value != getattr(kernel, name)}
    return replace(kernel, **new) if new else kernel


def refuse_uncallable(owner: str, name: str, value: Any) -> None:
    """Refuse what is not a function."""
    if not callable(value):
        raise TypeError(f"{owner}: {name}={value!r} must be a function of a block of rows")
