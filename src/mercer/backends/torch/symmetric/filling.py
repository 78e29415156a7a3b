"""A symmetric kernel matrix, written on a device from the half above its diagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from mercer.backends.lowering.program import Code, Program
from mercer.backends.torch.device import Device, parts
from mercer.backends.torch.fusing.tiling import HELD
from mercer.backends.torch.operands import Operands
from mercer.backends.torch.program import Block, run
from mercer.backends.torch.symmetric.whole_numbers import WholeNumbers, multiplies
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


def whole_rows(program: Program, leaves: Sequence[Operands], device: Device) -> WholeNumbers | None:
    """Return the rows of squared distances as 8-bit numbers; None where they are no such work.

    They are if rows have many features. With few a generated kernel is as fast.

    Parameters
    ----------
    program : Program
        What is evaluated.
    leaves : sequence of Operands
        What its statistics compare.
    device : Device
        Where.
    """
    if len(leaves) != 1 or program.externals or not device.has_int8_cores:
        return None
    (leaf, rows, _) = leaves[0]
    if not isinstance(leaf, SqDist) or _SPLITS * rows.shape[1] <= HELD:
        return None
    try:
        return rows.whole if multiplies(device.name) else None
    except torch.cuda.OutOfMemoryError:  # blocks of the rows need less than levels of all
        torch.cuda.empty_cache()
        return None


def by_whole_numbers(
    program: Program, whole: WholeNumbers, row_terms: Sequence[tuple[Tensor, Tensor]]
) -> Evaluate:
    """Return what evaluates blocks in float32 from distances of 8-bit numbers.

    Parameters
    ----------
    program : Program
        What is evaluated.
    whole : WholeNumbers
        What its one statistic compares.
    row_terms : sequence of pairs of tensors
        Values of its row terms.
    """

    def evaluate(part: slice, across: slice) -> Tensor:
        distances = whole.squared_distances(part, across)
        terms = [(u[part], w[across]) for u, w in row_terms]
        return run(program, Block([distances], terms, [], distances), torch.float32)

    return evaluate


def fill_at_once(K: Tensor, program: Program, whole: WholeNumbers, fuses: bool) -> bool:
    """Write all of a float32 K by one kernel, if it is an exponential; return whether it is.

    Parameters
    ----------
    K : (n, n) tensor
        Where to.
    program : Program
        What is evaluated.
    whole : WholeNumbers
        What its one statistic compares.
    fuses : bool
        Whether kernels of Triton may be used.
    """
    if not fuses or [op.code for op in program.ops] != [Code.EXP] or K.device != whole.k.device:
        return False
    from mercer.backends.torch.fusing.eight_bits import fill_exponential  # noqa: PLC0415  imports Triton

    (op,) = program.ops
    return fill_exponential(K, whole.k, whole.squares, op.c0 * whole.unit**2, op.c1)


def _mirror(block: Tensor, out: Tensor, fuses: bool) -> None:
    if not (block.is_cuda and out.is_cuda and fuses and block.stride(1) == 1):
        out.copy_(block.T)
        return
    from mercer.backends.torch.fusing.mirrors import write_mirrored  # noqa: PLC0415  imports Triton

    write_mirrored(block, out)
