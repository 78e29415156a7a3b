"""Function `fit` for rows in blocks: supported estimators, targets, classes and status."""

from __future__ import annotations

import warnings
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import deadline
from mercer.array_types import Array
from mercer.machines.base.certificate import LazyDataCertificate
from mercer.machines.base.targets import class_weights, refuse_targets
from mercer.machines.blocks.problem import ClassCodes, counted
from mercer.resources import format_bytes, within_budget
from mercer.rows.blocks import Block, LocalBlocks, RowBlocks
from mercer.rows.make_blocks import as_blocks
from mercer.solvers.base import Solution, Status, Watch
from mercer.solvers.certificate import certify

# --- outcome -------------------------------------------------------------------------------------
#
# What fits over blocks share: targets, classes, names of columns, and how they end.

_LABELS = 0.25  # of the budget: more labels than that stay with their rows


def remember_columns(machine: Any, blocks: RowBlocks) -> None:
    """Let the machine remember what rows it was fitted to."""
    machine.__dict__.pop("feature_names_in_", None)
    machine.n_features_in_ = blocks.n_columns
    if blocks.names is not None:
        machine.feature_names_in_ = np.array(blocks.names, dtype=object)


def watch_of(machine: Any) -> Watch:
    """Return the clock beside a solver, with the wishes of the user."""
    return Watch(getattr(machine, "callback", None), machine.time_limit)


def ended(
    name: str, value: Any, status: Status, steps: int, watch: Watch, detail: str = ""
) -> Solution:
    """Put an answer and the clock's record together; endings short of the goal are warned about."""
    if not status.ok:
        warnings.warn(f"{name}: {status.value}.", ConvergenceWarning, stacklevel=3)
    return Solution(value, status, steps, watch.seconds, name, tuple(watch.trace), detail)


def certified(machine: Any, problem: Any, value: Any, **options: Any) -> None:
    """Judge the answer by one more pass; past the time limit, when `certificate_` is read."""
    later = LazyDataCertificate(problem, value, lambda p, v: certify(p, v, **options), eager=True)
    machine._judgement = later
    if not deadline.is_over():
        with deadline.cut_short():
            machine._judgement = later.compute()


def labels_here(machine: Any, blocks: RowBlocks, function: Any, *shared: Any) -> Array:
    """Set `labels_` where they fit beside everything else; else they stay with their rows."""
    machine.__dict__.pop("labels_", None)
    none = np.empty(0, dtype=np.int64)
    if not isinstance(blocks, LocalBlocks):
        return none
    size = none.itemsize * blocks.count()
    if not within_budget(2 * size / _LABELS):  # the parts, and all together
        warnings.warn(
            f"{type(machine).__name__}: labels_ of {blocks.count()} rows take "
            f"{format_bytes(size)}, too much beside the memory budget, and are not set; "
            "mercer.streaming.predict writes them to a file",
            UserWarning,
            stacklevel=4,
        )
        return none
    machine.labels_ = np.concatenate(blocks.gather(function, *shared))
    return np.asarray(machine.labels_)


# --- targets --------------------------------------------------------------------------------------


def numeric_targets(machine: Any, blocks: RowBlocks) -> tuple[int, int]:
    """Return dimensions and columns of the targets, which must be numbers."""
    shapes = set(blocks.gather(target_shape))
    if len(shapes) > 1:
        raise ValueError(
            f"{type(machine).__name__}: blocks have targets of {sorted(shapes)} columns"
        )
    found: tuple[int, int] = shapes.pop()
    if found[0] == 0:
        raise ValueError(
            f"{type(machine).__name__} needs targets: give y in the blocks, (X, y), or as an array"
        )
    return found


def target_shape(block: Block) -> tuple[int, int]:
    """Return the dimensions and columns of the targets of a block; 0 where there are none."""
    if block.y is None:
        return 0, 0
    if np.asarray(block.y).dtype.kind not in "biuf":
        try:
            np.asarray(block.y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y of the block from row {block.first} holds what is no number: {error}"
            ) from error
    return block.y.ndim, 1 if block.y.ndim == 1 else int(block.y.shape[1])


def label_weights(block: Block) -> tuple[Array, Array] | None:
    """Return the labels of a block that count, and the weight of each."""
    block = counted(block)
    if block.y is None:
        return None
    refuse_targets(block.y)
    if block.y.ndim != 1:
        raise ValueError(f"labels must be one for each row, not of shape {block.y.shape}")
    labels, codes = np.unique(block.y, return_inverse=True)
    return labels, np.bincount(codes, block.counts, len(labels))


def class_codes(machine: Any, blocks: RowBlocks) -> tuple[ClassCodes, Array]:
    """Return the classes of the labels in all blocks, and their weights; sets `classes_`."""
    name = type(machine).__name__
    found = [part for part in blocks.gather(label_weights) if part is not None]
    if not found:
        raise ValueError(f"{name} needs labels: give y in the blocks, (X, y), or as an array")
    kinds = {isinstance(label, str) for labels, _ in found for label in labels[:1].tolist()}
    if len(kinds) > 1:
        raise ValueError(f"{name}: some blocks have strings as labels, others numbers")
    classes, codes = np.unique(np.concatenate([p[0] for p in found]), return_inverse=True)
    totals = np.bincount(codes, np.concatenate([p[1] for p in found]), len(classes))
    if len(classes) < 2:
        only = classes.tolist()[0] if len(classes) else None
        raise ValueError(f"{name} needs two classes, but y has only one class, {only!r}")
    machine.classes_ = classes
    given = class_weights(machine, getattr(machine, "class_weight", None), classes, totals)
    factors = np.ones(len(classes)) if given is None else given
    return ClassCodes(classes, factors), totals


# --- fit -----------------------------------------------------------------------------------------
#
# `fit` on rows in blocks: which machines have it, and what is refused.


@singledispatch
def fit_blocks(machine: Any, blocks: RowBlocks) -> None:
    """Fit a machine to rows in blocks: one implementation for each machine that has one."""
    known = sorted(kind.__name__ for kind in fit_blocks.registry if kind is not object)
    raise TypeError(
        f"{type(machine).__name__} cannot be fitted to rows in blocks. These can: "
        f"{', '.join(known)}. Fit a sample that fits in memory, block = blocks.sample(20000): "
        f"fit(block.X, block.y); mercer.streaming.predict then goes through all rows"
    )


def fit(machine: Any, X: RowBlocks, y: Any = None, sample_weight: Any = None) -> None:
    """Fit a machine in place to blocks, with targets and weights in them or beside them."""
    blocks = as_blocks(X, y, sample_weight)
    if not has_fit(machine):  # a subclass may keep other attributes
        fit_blocks.dispatch(object)(machine, blocks)
    fit_blocks(machine, blocks)


def has_fit(machine: Any) -> bool:
    """Return whether a machine can be fitted to rows in blocks."""
    return type(machine) in fit_blocks.registry


def refuse_options(machine: Any, **needed: Any) -> None:
    """Raise if a parameter has a value that only fits in memory honour."""
    for name, value in needed.items():
        given = getattr(machine, name)
        if given is not value and given != value:
            raise ValueError(
                f"{type(machine).__name__}: {name}={given!r:.60} is not honoured on rows in "
                f"blocks; use {name}={value!r}, or fit a sample that fits in memory"
            )
