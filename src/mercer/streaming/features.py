"""From a machine's kernel to features that blocks can be mapped by, one by one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer.approximation import ApproximateKernel, Approximation, Nystrom
from mercer.blocks import Block, RowBlocks
from mercer.expression import bind_columns
from mercer.kernels import Kernel, Linear
from mercer.kernels.features import feature_map
from mercer.machines.base.approximate import ApproximationWarning, approximation_of
from mercer.machines.base.machine import is_precomputed, kernel_of
from mercer.machines.base.targets import distinct_rows
from mercer.points import take
from mercer.problems.blocks import FeatureRows
from mercer.resources import require_memory, rows_at_once

_SAMPLE = 20_000  # rows that landmarks are drawn from and scales of kernels are taken from
_SHARE = 0.25  # of the budget, for those, ...
_COPIES = 4  # ... on their way here, together, in other units, and as features
_SQUARES = 6  # matrices of features by features that a fit holds at once


def feature_rows(machine: Any, blocks: RowBlocks) -> FeatureRows:
    """Set the machine's `kernel_`, and return the rows of its features.

    Kernels with a finite feature map are taken as they are. Others are approximated, as the
    parameter `approximation` says, from rows drawn at random.

    Parameters
    ----------
    machine : KernelMachine
        Has `kernel`, and maybe `approximation`.
    blocks : RowBlocks
        The rows.
    """
    name, names = type(machine).__name__, None if blocks.names is None else list(blocks.names)
    if is_precomputed(machine.kernel):
        raise ValueError(
            f"{name}: kernel='precomputed' cannot be fitted to rows in blocks; pass the kernel "
            "itself"
        )
    chosen, sample = approximation_of(machine), None
    kernel = machine.kernel
    if isinstance(kernel, str) and kernel.strip().lower() == "linear":
        kernel = Linear()
    if not isinstance(kernel, Kernel):
        sample = drawn(blocks)
        kernel = kernel_of(kernel, sample.X, sample.weights, names)
    machine.__dict__.pop("approximation_error_", None)
    if chosen == "auto":
        chosen = None if has_few(kernel, blocks) else Nystrom()
    if isinstance(chosen, Approximation) and not isinstance(kernel, ApproximateKernel):
        kernel = approximated(machine, kernel, chosen, sample or drawn(blocks), names)
    features = feature_map(bind_columns(kernel.expression(), names), blocks.n_columns)
    if features is None:
        raise ValueError(
            f"{name}: {kernel!r} has no finite feature map, and rows in blocks are fitted through "
            "features. Pass approximation='auto', Nystrom(1000) or RandomFeatures(1000), or "
            "kernel=Nystrom(1000).of(kernel, blocks.sample(20000).X)"
        )
    machine.kernel_ = kernel
    size = features.dimension
    require_memory(
        _SQUARES * 8 * size * size,
        f"work with {size} features",
        "Use fewer features: approximation=Nystrom(m) with a smaller m, or a lower degree.",
    )
    return FeatureRows(blocks, features, size)


def drawn(blocks: RowBlocks) -> Block:
    """Draw rows at random, as many as serve, within the budget."""
    return blocks.sample(rows_at_once(blocks.n_columns, _SAMPLE, arrays=_COPIES, share=_SHARE), 0)


def has_few(kernel: Kernel, blocks: RowBlocks) -> bool:
    """Return whether a kernel has a finite map of no more features than may be worked with."""
    features = feature_map(kernel.expression(), blocks.n_columns)
    return features is not None and features.dimension <= max(2000, 2 * blocks.n_columns)


def approximated(
    machine: Any, kernel: Kernel, chosen: Approximation, sample: Block, names: list[str] | None
) -> Kernel:
    """Return the kernel of features found on a sample; sets `approximation_error_`."""
    rows = distinct_rows(sample.X, np.zeros(len(sample), dtype=np.intp), sample.counts)
    used = take(sample.X, rows.first)
    found = chosen.of(kernel, used, rows.weight, names)
    if found.phi.dimension == 0:
        raise ValueError(
            f"{type(machine).__name__}: {kernel!r} is zero on all rows; use another kernel"
        )
    error = found.stated_error(used)
    machine.approximation_error_ = error
    if approximation_of(machine) == "auto":
        warnings.warn(
            f"{type(machine).__name__}: rows in blocks are fitted through features; "
            f"{found.phi.dimension} landmarks among {len(sample)} rows drawn at random stand for "
            f"{kernel!r}, with an error of {error}. More of them: approximation=Nystrom(2000); "
            "exact fits need rows in memory.",
            ApproximationWarning,
            stacklevel=2,
        )
    return found
