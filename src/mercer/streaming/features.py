"""From a machine's kernel to features that blocks can be mapped by, one by one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer.approximation import Approximation, Nystrom
from mercer.blocks import Block, RowBlocks
from mercer.expression import bind_columns
from mercer.kernels import Kernel, Linear
from mercer.kernels.features import feature_map
from mercer.machines.base.machine import is_precomputed, kernel_of
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
    approximation = getattr(machine, "approximation", None)
    kernel, sample = machine.kernel, None
    if isinstance(kernel, str) and kernel.strip().lower() == "linear":
        kernel = Linear()
    if not isinstance(kernel, Kernel):
        sample = drawn(blocks)
        kernel = kernel_of(kernel, sample.X, sample.weights, names)
    if approximation is not None and not has_few(kernel, blocks):
        kernel = approximated(machine, kernel, approximation, sample or drawn(blocks))
    features = feature_map(bind_columns(kernel.expression(), names), blocks.n_columns)
    if features is None:
        raise ValueError(
            f"{name}: {kernel!r} has no finite feature map, and rows in blocks are fitted through "
            f"features. Pass approximation=Nystrom(1000) or RandomFeatures(1000) where {name} has "
            "that parameter, or kernel=Nystrom(1000).of(kernel, blocks.sample(20000).X)"
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


def approximated(machine: Any, kernel: Kernel, approximation: Any, sample: Block) -> Kernel:
    """Return the kernel of features found on a sample, as `approximation` says."""
    if isinstance(approximation, str):
        if approximation != "auto":
            raise ValueError(
                f"{type(machine).__name__}: approximation={approximation!r} must be an "
                "Approximation such as Nystrom(1000), 'auto' or None"
            )
        approximation = Nystrom(min(1000, len(sample)))
        warnings.warn(
            f"{type(machine).__name__}: rows in blocks are fitted through features of "
            f"{kernel!r}: {approximation!r} of {len(sample)} rows drawn at random. "
            "kernel=Nystrom(m).of(kernel, rows) chooses others; exact fits need rows in memory.",
            UserWarning,
            stacklevel=2,
        )
    assert isinstance(approximation, Approximation)
    weights = None if sample.weights is None else np.asarray(sample.weights)
    return approximation.of(kernel, sample.X, weights)
