"""A symmetric kernel matrix, written on a device from the half above its diagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from mercer.backends.lowering.program import Program
from mercer.backends.torch.device import Device, parts
from mercer.backends.torch.fusing.tiling import HELD
from mercer.backends.torch.operands import Operands
from mercer.backends.torch.program import Block, run
from mercer.backends.torch.symmetric.whole_numbers import multiplies
from mercer.expression import SqDist

Tensor: TypeAlias = torch.Tensor
Evaluate: TypeAlias = Callable[[slice, slice], Tensor]

_SPLITS = 3  # operands that a generated kernel makes of a feature


def fill(K: Tensor, evaluate: Evaluate, entries: int, fuses: bool) -> None:
    """Write all of K from blocks that begin at the diagonal.

    Parameters
    ----------
    K : (n, n) tensor
        Where to.
    evaluate : callable
        Returns some rows and columns.
    entries : int
        Of a block.
    fuses : bool
        Whether kernels of Triton may be used.
    """
    n = len(K)
    for part in parts(n, entries // max(1, n)):
        block = evaluate(part, slice(part.start, n))
        K[part, part.start :] = block
        _mirror(block, K[part.start :, part], fuses)
        square = K[part, part]
        square.copy_(square.triu() + square.triu(1).T)


def by_whole_numbers(
    program: Program,
    leaves: Sequence[Operands],
    row_terms: Sequence[tuple[Tensor, Tensor]],
    device: Device,
) -> Evaluate | None:
    """Return what evaluates blocks in float32 from distances of 8-bit numbers; None where not.

    It is for squared distances of rows of many features that are such numbers. With few features a
    generated kernel is as fast.

    Parameters
    ----------
    program : Program
        What is evaluated.
    leaves : sequence of Operands
        What its statistics compare.
    row_terms : sequence of pairs of tensors
        Values of its row terms.
    device : Device
        Where.
    """
    if len(leaves) != 1 or program.externals or not device.has_int8_cores:
        return None
    (leaf, rows, _) = leaves[0]
    if not isinstance(leaf, SqDist) or _SPLITS * rows.shape[1] <= HELD:
        return None
    try:
        whole = rows.whole if multiplies(device.name) else None
    except torch.cuda.OutOfMemoryError:  # blocks of the rows need less than levels of all
        torch.cuda.empty_cache()
        return None
    if whole is None:
        return None

    def evaluate(part: slice, across: slice) -> Tensor:
        distances = whole.squared_distances(part, across)
        terms = [(u[part], w[across]) for u, w in row_terms]
        return run(program, Block([distances], terms, [], distances), torch.float32)

    return evaluate


def _mirror(block: Tensor, out: Tensor, fuses: bool) -> None:
    if not (block.is_cuda and out.is_cuda and fuses and block.stride(1) == 1):
        out.copy_(block.T)
        return
    from mercer.backends.torch.fusing.mirrors import write_mirrored  # noqa: PLC0415  imports Triton

    write_mirrored(block, out)
