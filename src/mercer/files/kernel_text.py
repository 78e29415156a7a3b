"""Kernels as text: how they travel, and what is refused because no text says it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from mercer.approximation import ApproximateKernel
from mercer.compat.sklearn.base.kernels import ShiftedPower
from mercer.expression import Expression
from mercer.files.container import MOST_HEADER
from mercer.files.errors import ModelFormatError
from mercer.kernels import Constant, Kernel, Linear, Polynomial, Precomputed
from mercer.kernels.language.parse import parse

_NUMBER = r"(-?\d{1,20}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?)"
_SHIFTED_POWER = re.compile(
    rf"ShiftedPower\(gamma={_NUMBER}, coef0={_NUMBER}, degree=(-?\d{{1,9}})\)"
)


def write_kernel(kernel: Kernel) -> str:
    """Write a kernel so that `read_kernel` gives an equal one, or refuse.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> write_kernel(0.1 * Gaussian(1 / 3) + Linear().on(["age"]))
    "0.1 * Gaussian(scale=0.3333333333333333) + Linear().on(['age'])"
    """
    text = repr(kernel)
    try:
        same = read_kernel(text) == kernel
    except ValueError:
        same = False
    if not same:
        raise ModelFormatError(
            f"the kernel {text[:200]} does not read back from its text: it holds a function, or is "
            "of a class of your own, and a model file holds no code. Compute the matrix and use "
            "kernel='precomputed', or a kernel of mercer.kernels"
        )
    return text


def read_kernel(text: str) -> Kernel:
    """Read a kernel by the library's own parser; nothing is executed."""
    power = _SHIFTED_POWER.fullmatch(text)
    if power is not None:  # scikit-learn's, with a shift that the language has no word for
        gamma, coef0, degree = power.groups()
        return ShiftedPower(float(gamma), float(coef0), int(degree))
    return parse(text, longest=MOST_HEADER)


class KnownKernels:
    """The kernels of a machine that is saved, by the formulas that they write.

    Fitted machines hold the formula of their kernel, names of columns already numbers. A formula
    travels as the text of a kernel that writes it.

    Parameters
    ----------
    kernels : iterable of Kernel
        Those found in the machine.
    names : iterable of sequences of str
        Names of columns, for kernels that speak of them.
    """

    def __init__(self, kernels: Iterable[Kernel], names: Iterable[Any]) -> None:
        named = list(names)
        self._found: list[tuple[Expression, Kernel]] = []
        for kernel in chain((Linear(),), *map(_with_parts, kernels)):
            if isinstance(kernel, Precomputed):
                continue
            for bound in (kernel, *(numbered(kernel, list(each)) for each in named)):
                self._found.append((bound.expression(), bound))

    def kernel_of(self, expression: Expression) -> Kernel:
        """Return a kernel with this formula."""
        for formula, kernel in self._found:
            if formula == expression:
                return kernel
        raise ModelFormatError("a formula is not that of a kernel of the machine")


def _with_parts(kernel: Kernel) -> Iterator[Kernel]:
    """Return a kernel, and where features stand for it the kernels that these are made of."""
    yield kernel
    if isinstance(kernel, ApproximateKernel):
        yield from _parts(kernel.kernel)


def _parts(kernel: Kernel) -> Iterator[Kernel]:
    yield kernel
    if isinstance(kernel, Polynomial):  # sketches are made of what is raised to a power
        yield Linear() + Constant(kernel.offset)
    for value in vars(kernel).values():
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Kernel):
                yield from _parts(inner)


def numbered(kernel: Kernel, names: list[Any]) -> Kernel:
    """Return the kernel with numbers in the place of the names of columns."""
    if isinstance(kernel, ApproximateKernel):
        return kernel  # it speaks of numbers already
    place = {name: i for i, name in enumerate(names)}
    changed: dict[str, Any] = {}
    for name, value in kernel.get_params(deep=True).items():
        if name.rpartition("__")[2] == "columns" and isinstance(value, tuple):
            changed[name] = [place.get(column, column) for column in value]
    return kernel.with_params(**changed) if changed else kernel


def read_expression(text: str) -> Expression:
    """Return the formula of the kernel of a text."""
    return read_kernel(text).expression()
