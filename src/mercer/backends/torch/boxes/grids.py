"""Paths of box programmes that all begin at zero: a grid of costs and tubes, made on the card.

Bounds, tubes and shifts of all steps are factors of those of the path, so that only the paths are
sent. Every step begins where its path does: a card has room for all of them, and none waits for
another's end. Matrices of several kernels may be there at once; programmes on all of them run side
by side, since those of one kernel fill a third of a card.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.boxes import BoxPath, BoxPathAnswer
from mercer.backends.contract import Poll
from mercer.backends.torch.boxes.confirmation import Block, Place, Products, confirm, places
from mercer.backends.torch.boxes.descents import COUNT, INT32, descend
from mercer.backends.torch.boxes.programmes import Programmes, multipliers
from mercer.backends.torch.boxes.turns import in_turns
from mercer.backends.torch.device import Device, parts, to_host

Tensor: TypeAlias = torch.Tensor

_VARIABLE = 4 + 8 * 10  # bytes: its row, what a programme says of it, and sides of its conditions
_AT_ONCE = 1 << 24  # variables whose sides are looked at: some hundred megabytes
_COLUMN = 8 * 4  # bytes for each row of K: coefficients of a programme, and products with them


def begin_at_zero(paths: Sequence[BoxPath]) -> bool:
    """Return whether zero is a feasible start of all paths, and they are no more than a card takes.

    Parameters
    ----------
    paths : sequence of BoxPath
        The paths.
    """
    variables = sum(len(path.steps) * len(path.box.gradient) for path in paths)
    if variables > INT32 or sum(len(path.steps) for path in paths) > COUNT:
        return False
    return all(
        len(path.totals) == 1
        and not path.totals.any()
        and not path.box.start.any()
        and bool(((path.box.lower <= 0) & (path.box.upper >= 0)).all())
        for path in paths
    )


def solve_grids(
    blocks: Sequence[Block], tol: float, max_iter: int, poll: Poll | None, device: Device
) -> list[list[BoxPathAnswer]]:
    """Solve all steps of all paths side by side; see `Backend.box_paths`.

    Where all do not fit the card beside the matrices, as many as do are solved at a time.

    Parameters
    ----------
    blocks : sequence of Block
        Matrices, and paths on them that `begin_at_zero`.
    tol : float
        Largest violation at the end.
    max_iter : int
        Pair steps of each programme.
    poll : callable or None
        Asked now and then whether to stop.
    device : Device
        Where the matrices are.
    """
    waiting = [(k, path) for k, block in enumerate(blocks) for path in block.paths]

    def solve(some: Sequence[tuple[int, BoxPath]]) -> list[tuple[int, BoxPathAnswer]]:
        used = sorted({k for k, _ in some})
        taken = [blocks[k]._replace(paths=[path for j, path in some if j == k]) for k in used]
        found = _solve(taken, tol, max_iter, poll, device)
        return [(k, one) for k, own in zip(used, found, strict=True) for one in own]

    whole = _bytes(blocks)
    found = in_turns(waiting, solve, whole, device, "a path of box programmes")
    return [[one for j, one in found if j == k] for k in range(len(blocks))]


def _bytes(blocks: Sequence[Block]) -> float:
    """Return what all programmes take on the card beside the matrices."""
    found = 0.0
    for K, paths, _ in blocks:
        variables = sum(len(path.steps) * len(path.box.gradient) for path in paths)
        columns = sum(len(path.steps) for path in paths)
        found += _VARIABLE * variables + _COLUMN * columns * len(K)
    return found


def _solve(
    blocks: Sequence[Block], tol: float, max_iter: int, poll: Poll | None, device: Device
) -> list[list[BoxPathAnswer]]:
    stopped = False

    def asked(steps: int, violation: float) -> bool:
        nonlocal stopped
        stopped = stopped or (poll is not None and bool(poll(steps, violation)))
        return stopped

    programmes = _programmes(blocks, device)
    matrices = [block.K for block in blocks]
    steps, violations = descend(matrices, programmes, tol, max_iter, asked)
    products = [
        Products(block, own, programmes, device)
        for block, own in zip(blocks, places(blocks), strict=True)
    ]
    if not stopped:
        confirm(matrices, products, programmes, (steps, violations), tol, max_iter, asked)
    if stopped:
        violations = np.full(len(violations), np.inf)
    return _answers(products, programmes, steps, violations)


def _programmes(blocks: Sequence[Block], device: Device) -> Programmes:
    """Write down the steps of all paths on the device, in few pieces."""
    paths = [path for block in blocks for path in block.paths]
    points = [len(block.K) for block in blocks for _ in block.paths]
    lengths = np.array([len(path.box.gradient) for path in paths])
    counts = np.array([len(path.steps) for path in paths])
    sizes, total = np.repeat(lengths, counts), int(lengths @ counts)
    begin = np.concatenate([[0], np.cumsum(sizes)])
    # every variable of every step reads its path's, and what its step makes of it
    programme = torch.repeat_interleave(device.put(sizes, np.int64), output_size=total)
    shifts = np.repeat(np.cumsum(lengths) - lengths, counts) - begin[:-1]
    source = torch.arange(total, device=device.name) + device.put(shifts)[programme]

    def times(factors: Sequence[float], values: Sequence[Array | None]) -> Tensor | None:
        if all(one is None for one in values):
            return None
        pairs = zip(values, lengths, strict=True)
        known = [np.zeros(m) if one is None else one for one, m in pairs]
        own = device.put(np.concatenate(known), np.float64)[source]
        return own * device.put(np.array(factors, dtype=np.float64))[programme]

    steps = [step for path in paths for step in path.steps]
    bounds, boxes = [step.bound for step in steps], [path.box for path in paths]
    lower, upper = (times(bounds, [getattr(x, name) for x in boxes]) for name in ("lower", "upper"))
    F = times([1.0] * len(steps), [box.gradient for box in boxes])
    assert lower is not None and upper is not None and F is not None
    pairs = zip(boxes, points, strict=True)
    rows = np.concatenate([np.arange(n) if box.rows is None else box.rows for box, n in pairs])
    return Programmes(
        sizes.tolist(),
        device.put(begin, np.int32),
        device.put(rows, np.int32)[source],
        lower,
        upper,
        torch.zeros(total, dtype=torch.float64, device=device.name),
        F,
        times([step.epsilon for step in steps], [box.epsilon for box in boxes]),
        times([step.shift for step in steps], [box.shift for box in boxes]),
        matrix=[k for k, block in enumerate(blocks) for path in block.paths for _ in path.steps],
    )


def _answers(
    products: Sequence[Products], programmes: Programmes, steps: Array, violations: Array
) -> list[list[BoxPathAnswer]]:
    """Bring the answers to all paths to the host, in few pieces: each journey has its price."""
    every = [(one, place) for one in products for place in one.places]
    levels, finite = [], []
    for m, some in _alike([place for _, place in every]):
        levels.append(multipliers(*(side.view(-1, m) for side in programmes.sides(some))))
        finite.append(programmes.F[some].view(-1, m).isfinite().all(1))
    small = torch.cat([torch.cat(levels), torch.cat(finite).double()])
    offsets, known = to_host(small).reshape(2, -1)
    values = to_host(torch.cat([one.values(place).T.flatten() for one, place in every]))
    b, F = to_host(programmes.b), to_host(programmes.F)
    found, first = [], 0
    for one in products:
        own = []
        for place in one.places:
            here, last = place.numbers, first + place.shape[0] * len(place.path.evaluation_rows)
            end = np.where(np.isinf(violations[here]) | (known[here] > 0), violations[here], np.nan)
            own.append(
                BoxPathAnswer(
                    b[place.variables].reshape(place.shape),
                    F[place.variables].reshape(place.shape),
                    offsets[here, None],
                    values[first:last].reshape(place.shape[0], -1),
                    steps[here],
                    end,
                    confirmed=one.is_exact,
                )
            )
            first = last
        found.append(own)
    return found


def _alike(every: Sequence[Place]) -> Iterator[tuple[int, slice]]:
    """Return runs of programmes of one size: the size, and the variables of some of the run."""
    for m, run in groupby(every, key=lambda place: place.shape[1]):
        own = list(run)
        first, last = own[0].variables.start, own[-1].variables.stop
        for some in parts(last - first, m * max(1, _AT_ONCE // max(1, m))):
            yield m, slice(first + some.start, first + some.stop)
