"""Gaussian classes over blocks: means and scatters add up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.blocks import Block, RowBlocks
from mercer.machines import GaussianClassifier
from mercer.machines.bayes.gaussian_scores import scatter_of
from mercer.points import to_dense
from mercer.problems.bayes.gaussian_classes import Scatter
from mercer.problems.blocks import counted
from mercer.problems.blocks.questions import ClassCodes
from mercer.streaming.fit import fit_blocks
from mercer.streaming.outcome import class_codes, remember_columns


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
    machine._asked.solution  # noqa: B018  what overflows is refused here, not when it is read


def class_scatter(block: Block, codes: ClassCodes, full: bool) -> ScatterSum:
    """Return weight, mean and scatter of each class in a block."""
    block = counted(block)
    rows = np.asarray(to_dense(block.X), dtype=np.float64)
    weights = np.asarray(block.counts, dtype=np.float64)
    k = len(codes.classes)
    return ScatterSum(
        scatter_of(GaussianClassifier(), rows, codes.codes(block.y), weights, k, full)
    )
