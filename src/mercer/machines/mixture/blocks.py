"""Mixtures over blocks: expectation maximisation whose passes are sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.base.certificate import LazyDataCertificate
from mercer.machines.base.parameters import seed_of
from mercer.machines.base.targets import distinct_rows
from mercer.machines.blocks.features import drawn
from mercer.machines.blocks.fit import fit_blocks, remember_columns
from mercer.machines.blocks.problem import counted
from mercer.machines.mixture.block_sums import (
    BlockGaussianMix,
    BlockMix,
    BlockTableMix,
    BlockTopicMix,
    BlockTopicParts,
    ColumnUnits,
    word_count,
)
from mercer.machines.mixture.discrete_em_steps import TopicParts
from mercer.machines.mixture.discrete_mixtures import BernoulliMixture, MultinomialMixture
from mercer.machines.mixture.em_loop import EM
from mercer.machines.mixture.gaussian_em_steps import GaussianMix
from mercer.machines.mixture.gaussian_mixture import SHAPES, GaussianMixture
from mercer.rows.blocks import Block, RowBlocks
from mercer.rows.points import take, to_dense
from mercer.solvers.base import Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

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
def fit_gaussian_mixture(machine: GaussianMixture, blocks: RowBlocks) -> None:
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
    units, volume = (
        ColumnUnits(machine._origin, machine._scale),
        float(np.log(machine._scale).sum()),
    )
    shape, floor = SHAPES[machine.covariance](), float(machine.floor)
    rows, weights = _started(machine, blocks, units, found.total)

    def question(k: int) -> BlockGaussianMix:
        return BlockGaussianMix(blocks, GaussianMix(rows, weights, k, shape, floor, -volume), units)

    _fit(machine, question)


def fit_table_mixture(machine: Any, blocks: RowBlocks) -> None:
    """Fit a mixture of coins, or of bags of words: starts on a sample, and a pass is a step."""
    machine._check_parameters()
    remember_columns(machine, blocks)
    read = ReadRows.of(machine)
    total = float(blocks.total(weight_of))
    rows, weights = _started(machine, blocks, read, total)
    if isinstance(machine, BernoulliMixture):
        machine._level = machine.binarize

    def question(k: int) -> BlockTableMix:
        return BlockTableMix(blocks, machine._question(rows, weights, k), read)

    _fit(machine, question)


@fit_blocks.register
def fit_bernoulli_mixture(machine: BernoulliMixture, blocks: RowBlocks) -> None:
    """Fit coins to rows in blocks."""
    fit_table_mixture(machine, blocks)


@fit_blocks.register
def fit_multinomial_mixture(machine: MultinomialMixture, blocks: RowBlocks) -> None:
    """Fit bags of words to rows in blocks, one for each document or a blend of them."""
    if machine.source == "words":
        fit_topics(machine, blocks)
    else:
        fit_table_mixture(machine, blocks)


def fit_topics(machine: MultinomialMixture, blocks: RowBlocks) -> None:
    """Fit topics: proportions of documents stay with their blocks, and are not kept in the end."""
    machine._check_parameters()
    remember_columns(machine, blocks)
    read = ReadRows.of(machine)
    words = float(blocks.total(word_count, read)) or 1.0
    rows, weights = _started(machine, blocks, read, float(blocks.total(weight_of)))
    sample = machine._question(rows, weights, int(machine.n_components))
    problem = BlockTopicMix(blocks, sample, read, words)
    solution = _solved(machine, problem)
    found: BlockTopicParts = solution.value
    machine.n_components_, machine.n_iter_ = problem.count, int(solution.iterations)
    machine.converged_ = bool(solution.status.ok)
    machine.log_likelihoods_ = found.likelihoods
    machine.components_, machine.weights_ = found.table, problem.shares(found)
    machine._problem = problem.rules
    machine._parts = TopicParts(found.table, np.empty((0, problem.count)))
    machine._warn_of_collapse(problem, found)
    machine.solution_ = replace(
        solution, value=replace(machine._parts, likelihoods=found.likelihoods)
    )
    machine._judgement = LazyDataCertificate(
        problem, found, partial(certify, tol=2.0 * machine.tol), eager=True
    ).compute()


@dataclass(frozen=True, eq=False)
class ReadRows:
    """What a machine makes of rows before it looks at them: zeros and ones, or counts.

    Attributes
    ----------
    machine : estimator
        With the parameters of the one that is fitted, and nothing else.
    """

    machine: Any

    @classmethod
    def of(cls, machine: Any) -> ReadRows:
        """Take the parameters that travel."""
        given = machine.get_params(deep=False) | {"callback": None, "random_state": 0}
        bare = type(machine)(**given)
        bare.n_features_in_ = machine.n_features_in_
        bare._level = getattr(machine, "binarize", None)
        return cls(bare)

    def __call__(self, X: Any) -> Any:
        """Read rows, which are refused if the machine could not be fitted to them."""
        return self.machine._rows(X, fitting=False)


def weight_of(block: Block) -> float:
    """Return the sum of the weights of a block."""
    return float(block.counts.sum())


def _units(found: ColumnSpread, one: bool) -> tuple[Array, Array]:
    """Return the means of the columns and their standard deviations, or one for all of them."""
    variance, noise = found.squares / found.total, 4.0 * _EPS * found.largest
    if one:
        variance = np.full_like(variance, variance.mean())
        noise = np.full_like(noise, noise.max())
    scale = np.sqrt(variance)
    return found.mean, np.where(scale > noise, scale, 1.0)


def _started(machine: Any, blocks: RowBlocks, read: Any, total: float) -> tuple[Any, Array]:
    """Return rows drawn at random, equal ones merged, with weights that add up to all."""
    sample = drawn(blocks)
    rows, counts = read(sample.X), sample.counts
    merged = distinct_rows(rows, np.zeros(len(counts)), counts)
    rows = take(rows, merged.first)
    machine._refuse_many(len(merged.first))
    return rows, merged.weight * (total / float(counts.sum()))


def _fit(machine: Any, question: Callable[[int], BlockMix]) -> None:
    """Solve, keep the answer, and let it be judged by a pass or two."""
    problem, solution = _chosen(machine, question)
    machine.solution_ = solution
    machine.n_components_ = int(problem.count)
    machine.n_iter_ = int(solution.iterations)
    machine.converged_ = bool(solution.status.ok)
    machine.log_likelihoods_ = solution.value.likelihoods
    machine._parts, machine._problem = solution.value, problem.rules
    machine._keep(problem.sample, solution.value)
    machine._warn_of_collapse(problem, solution.value)
    judge = partial(certify, tol=2.0 * machine.tol)
    machine._judgement = LazyDataCertificate(problem, solution.value, judge, eager=True)


def _solved(machine: Any, problem: BlockMix) -> Solution:
    seed = seed_of(machine.random_state)
    solver = EM(float(machine.tol), int(machine.max_iter), int(machine.n_init), seed)
    return solve(problem, solver, callback=machine.callback, time_limit=machine.time_limit)


def _chosen(machine: Any, question: Callable[[int], BlockMix]) -> tuple[BlockMix, Solution]:
    """Fit the number of parts asked for, or each and keep the best by the criterion."""
    machine.__dict__.pop("criteria_", None)

    def solved(k: int) -> tuple[BlockMix, Solution]:
        problem = question(k)
        return problem, _solved(machine, problem)

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
