"""Gaussian classifier and naive Bayes over blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.machines.bayes.columns import read_table
from mercer.machines.bayes.counts import ClassCounts, Layout, count
from mercer.machines.bayes.gaussian_classifier import GaussianClassifier
from mercer.machines.bayes.gaussian_scores import scatter_of
from mercer.machines.bayes.naive_bayes import NaiveBayes
from mercer.machines.bayes.problem import Scatter
from mercer.machines.blocks.features import drawn
from mercer.machines.blocks.fit import class_codes, fit_blocks, remember_columns
from mercer.machines.blocks.problem import ClassCodes, counted
from mercer.rows.blocks import Block, RowBlocks
from mercer.rows.points import to_dense

# --- gaussian classifier -------------------------------------------------------------------------
#
# Gaussian classes over blocks: means and scatters add up.


@dataclass(frozen=True, eq=False)
class ScatterSum:
    """Means and scatters of some rows; those of more rows are the sum."""

    held: Scatter

    def __add__(self, other: ScatterSum) -> ScatterSum:
        return ScatterSum(self.held.merged(other.held))


@fit_blocks.register
def fit_gaussian_classifier(machine: GaussianClassifier, blocks: RowBlocks) -> None:
    """Fit to rows in blocks: a pass for the classes, one for means and scatters."""
    machine._check_parameters()
    codes, _ = class_codes(machine, blocks)
    remember_columns(machine, blocks)
    held = blocks.total(class_scatter, codes, machine.covariance == "full").held
    machine._keep(held)
    machine._asked.solution  # noqa: B018  overflow raises here, not when it is read


def class_scatter(block: Block, codes: ClassCodes, full: bool) -> ScatterSum:
    """Return weight, mean and scatter of each class in a block."""
    block = counted(block)
    rows = np.asarray(to_dense(block.X), dtype=np.float64)
    weights = np.asarray(block.counts, dtype=np.float64)
    k = len(codes.classes)
    return ScatterSum(
        scatter_of(GaussianClassifier(), rows, codes.codes(block.y), weights, k, full)
    )


# --- naive bayes ---------------------------------------------------------------------------------
#
# Naive Bayes over blocks: counts and moments add up.


@dataclass(frozen=True, eq=False)
class CountSum:
    """Counts of some rows; those of more rows are the sum."""

    counts: ClassCounts

    def __add__(self, other: CountSum) -> CountSum:
        return CountSum(self.counts.merged(other.counts))


@fit_blocks.register
def fit_naive_bayes(machine: NaiveBayes, blocks: RowBlocks) -> None:
    """Fit to rows in blocks: a pass for the classes, one for the counts.

    Kinds of columns that are inferred are those of a sample of the rows.
    """
    machine._check_parameters()
    if isinstance(machine.alpha, str):
        raise ValueError(
            "NaiveBayes: alpha='cv' needs rows in memory; choose alpha on a sample, and pass the "
            "number"
        )
    codes, _ = class_codes(machine, blocks)
    sample = drawn(blocks)
    machine._begin(read_table(machine, sample.X, True, sample.y))
    remember_columns(machine, blocks)
    for name in ("alphas_", "cv_losses_"):
        machine.__dict__.pop(name, None)
    empty = NaiveBayes(machine.alpha, kinds=machine.kinds, threshold=machine.threshold)
    shared = (empty, machine._layout, codes)
    held = blocks.total(block_counts, *shared)
    machine.alpha_ = float(machine.alpha)
    machine._keep(held.counts)


def block_counts(block: Block, machine: Any, layout: Layout, codes: Any) -> CountSum:
    """Count the rows of a block that count."""
    some = counted(block)
    if not len(some):  # nothing in it counts: a row of no weight gives counts of the right shape
        some = Block(block.only([0]).X, codes.classes[:1], np.zeros(1), block.first)
    table = read_table(machine, some.X, True)
    labels = codes.codes(some.y)
    weights = np.asarray(some.counts, dtype=np.float64)
    return CountSum(count(machine, layout, table, labels, weights, len(codes.classes)))
