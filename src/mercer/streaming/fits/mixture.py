"""Gaussian mixtures over blocks: expectation maximisation whose passes are sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block, RowBlocks
from mercer.certificates import certify
from mercer.machines import GaussianMixture
from mercer.machines.base.certificate import LazyDataCertificate
from mercer.machines.base.parameters import seed_of
from mercer.machines.density.gaussian_mixture import SHAPES
from mercer.points import to_dense
from mercer.problems.blocks import counted
from mercer.problems.blocks.mixture import BlockMix, ColumnUnits
from mercer.problems.mixture.gaussian_mixture import GaussianMix
from mercer.solvers import EM, Solution, solve
from mercer.streaming.features import drawn
from mercer.streaming.fit import fit_blocks
from mercer.streaming.outcome import remember_columns

_LARGEST = 1e100  # entries and inverse spreads: squares of squares are numbers
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ColumnSpread:
    """Weight, means, sums of squares about them and largest magnitudes of columns; they add up."""

    total: float
    mean: Array
    squares: Array
    largest: Array

    def __add__(self, other: ColumnSpread) -> ColumnSpread:
        total = self.total + other.total
        share = other.total / total if total > 0 else 0.0
        off = other.mean - self.mean
        squares = self.squares + other.squares + self.total * share * np.square(off)
        largest = np.maximum(self.largest, other.largest)
        return ColumnSpread(total, self.mean + share * off, squares, largest)


def column_spread(block: Block) -> ColumnSpread:
    """Return the moments of the columns of a block."""
    block = counted(block)
    X, s = to_dense(block.X), block.counts
    total = float(s.sum())
    if not len(X):
        none = np.zeros(X.shape[1])
        return ColumnSpread(0.0, none, none, none)
    mean = X[0] + s @ (X - X[0]) / total
    return ColumnSpread(total, mean, s @ np.square(X - mean), np.abs(X).max(axis=0))


@fit_blocks.register
def fit_mixture(machine: GaussianMixture, blocks: RowBlocks) -> None:
    """Fit to rows in blocks: starts are found on a sample, and a pass is a step."""
    machine._check_parameters()
    remember_columns(machine, blocks)
    found = blocks.total(column_spread)
    bad = np.flatnonzero(found.largest > _LARGEST)
    if len(bad):
        raise ValueError(
            f"GaussianMixture: column {bad[0]} of X has entries as large as "
            f"{found.largest[bad[0]]:.1e}; divide it by a large number"
        )
    machine._origin, machine._scale = _units(found, machine.covariance == "spherical")
    problem, solution = _chosen(machine, blocks, found)
    machine.solution_ = solution
    machine.n_components_ = int(problem.count)
    machine.n_iter_ = int(solution.iterations)
    machine.converged_ = bool(solution.status.ok)
    machine.log_likelihoods_ = solution.value.likelihoods
    machine._parts = solution.value
    machine._problem = replace(problem.sample, X=problem.sample.X[:0], weights=np.empty(0))
    machine._keep(problem.sample, solution.value)
    machine._warn_of_collapse(problem, solution.value)
    judge = partial(certify, tol=2.0 * machine.tol)
    machine._judgement = LazyDataCertificate(problem, solution.value, judge, eager=True)


def _units(found: ColumnSpread, one: bool) -> tuple[Array, Array]:
    """Return the means of the columns and their standard deviations, or one for all of them."""
    variance, noise = found.squares / found.total, 4.0 * _EPS * found.largest
    if one:
        variance = np.full_like(variance, variance.mean())
        noise = np.full_like(noise, noise.max())
    scale = np.sqrt(variance)
    return found.mean, np.where(scale > noise, scale, 1.0)


def _chosen(machine: Any, blocks: RowBlocks, found: ColumnSpread) -> tuple[BlockMix, Solution]:
    """Fit the number of parts asked for, or each and keep the best by the criterion."""
    machine.__dict__.pop("criteria_", None)
    sample = drawn(blocks)
    units = ColumnUnits(machine._origin, machine._scale)
    weights = sample.counts * (found.total / float(sample.counts.sum()))
    rows, volume = units(sample.X), -float(np.log(machine._scale).sum())
    machine._refuse_many(len(rows))
    shape, floor = SHAPES[machine.covariance](), float(machine.floor)

    def solved(k: int) -> tuple[BlockMix, Solution]:
        few = GaussianMix(rows, weights, k, shape, floor, volume)
        problem = BlockMix(blocks, few, units)
        solver = EM(
            float(machine.tol), int(machine.max_iter), int(machine.n_init),
            seed_of(machine.random_state),
        )  # fmt: skip
        options: dict[str, Any] = {"callback": machine.callback, "time_limit": machine.time_limit}
        return problem, solve(problem, solver, **options)

    if not isinstance(machine.n_components, str):
        return solved(int(machine.n_components))
    best, values = None, []
    for k in range(1, int(machine.max_components) + 1):
        problem, solution = solved(k)
        total = problem.e_step(solution.value).log_likelihood
        judged = machine._bic if machine.n_components == "bic" else machine._length
        shares = () if machine.n_components == "bic" else (solution.value.shares,)
        values.append(judged(problem.sample, total, problem.total, *shares))
        rank = bool(problem.collapsed(solution.value).any()), values[-1]
        if best is None or rank < best[0]:
            best = rank, problem, solution
    assert best is not None
    machine.criteria_ = np.array(values)
    return best[1:]
