"""`fit` on rows in blocks: which machines have it, and what is refused."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from mercer.blocks import RowBlocks, as_blocks


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
