"""What each statistic does with one feature of two rows, as lines of a Triton kernel."""

from __future__ import annotations

from collections.abc import Callable

from mercer.expression import (
    AbsDist,
    ChiSq,
    Dot,
    MinSum,
    SqDist,
    Statistic,
    SubsetProduct,
    SymmetricSum,
)

# --- what a leaf does with one feature: lines before, for each feature, and after ---------------

Steps = tuple[list[str], list[str], list[str]]


def _added(term: str) -> Callable[[str, Statistic], Steps]:
    zeros = "tl.zeros((BM, BN), tl.float32)"
    return lambda r, leaf: ([f"{r} = {zeros}"], [f"{r} += {term}"], [])


def _squared_differences(r: str, leaf: Statistic) -> Steps:
    begin = [f"{r} = tl.zeros((BM, BN), tl.float32)"]
    return begin, ["c = a - b", f"{r} += c * c"], []


def _chi_square(r: str, leaf: Statistic) -> Steps:
    begin = [f"{r} = tl.zeros((BM, BN), tl.float32)"]
    return begin, ["c = a + b", f"{r} += (a - b) * (a - b) / tl.where(c > 0, c, 1.0)"], []


def _subsets(r: str, leaf: Statistic) -> Steps:
    return [f"{r} = tl.full((BM, BN), 1.0, tl.float32)"], [f"{r} *= 1.0 + a * b"], []


def _symmetric(r: str, leaf: Statistic) -> Steps:
    assert isinstance(leaf, SymmetricSum)
    begin = [f"{r}s{k} = tl.zeros((BM, BN), tl.float32)" for k in range(1, leaf.degree + 1)]
    step = [f"{r}s{k} += a * b * {r}s{k - 1}" for k in range(leaf.degree, 1, -1)]
    return begin, [*step, f"{r}s1 += a * b"], [f"{r} = {r}s{leaf.degree}"]


FEATURE_STEPS: dict[type[Statistic], Callable[[str, Statistic], Steps]] = {
    Dot: _added("a * b"),
    SqDist: _squared_differences,
    AbsDist: _added("tl.abs(a - b)"),
    MinSum: _added("tl.minimum(a, b)"),
    ChiSq: _chi_square,
    SubsetProduct: _subsets,
    SymmetricSum: _symmetric,
}
