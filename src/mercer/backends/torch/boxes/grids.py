"""Paths of box programmes that all begin at zero: a grid of costs and tubes, made on the card.

Bounds, tubes and shifts of all steps are factors of those of the path, so that only the paths are
sent. Every step begins where its path does: a card has room for all of them, and none waits for
another's end. Matrices of several kernels may be there at once; programmes on all of them run side
by side, since those of one kernel fill a third of a card.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.boxes import BoxPath, BoxPathAnswer
from mercer.backends.contract import Poll
from mercer.backends.torch.boxes.confirmation import Block, Products, confirm, places
from mercer.backends.torch.boxes.descents import COUNT, INT32, descend
from mercer.backends.torch.boxes.programmes import Programmes, multipliers
from mercer.backends.torch.boxes.turns import in_turns
from mercer.backends.torch.device import Device, to_host

Tensor: TypeAlias = torch.Tensor

_VARIABLE = 4 + 8 * 10  # bytes: its row, what a programme says of it, and sides of its conditions
_COLUMN = 8 * 3  # bytes for each row of K: coefficients of a programme, and products with them


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
    """Write down the steps of all paths on the device."""
    paths = [path for block in blocks for path in block.paths]
    sizes = [len(path.box.gradient) for path in paths for _ in path.steps]
    number = [k for k, block in enumerate(blocks) for path in block.paths for _ in path.steps]
    points = [len(block.K) for block in blocks for _ in block.paths]

    def times(factors: Sequence[float], values: Array | None, m: int) -> Tensor:
        if values is None:
            return torch.zeros(len(factors) * m, dtype=torch.float64, device=device.name)
        return torch.outer(_put(factors, device), device.put(values, np.float64)).flatten()

    lower, upper, F, epsilon, shift, rows = [], [], [], [], [], []
    for path, n in zip(paths, points, strict=True):
        box, steps, m = path.box, path.steps, len(path.box.gradient)
        lower.append(times([step.bound for step in steps], box.lower, m))
        upper.append(times([step.bound for step in steps], box.upper, m))
        F.append(times([1.0] * len(steps), box.gradient, m))
        epsilon.append(times([step.epsilon for step in steps], box.epsilon, m))
        shift.append(times([step.shift for step in steps], box.shift, m))
        own = np.arange(n) if box.rows is None else box.rows
        rows.append(device.put(own, np.int32).repeat(len(steps)))
    tube = any(path.box.epsilon is not None for path in paths)
    shifted = any(path.box.shift is not None for path in paths)
    return Programmes(
        sizes,
        device.put(np.concatenate([[0], np.cumsum(sizes)]), np.int32),
        torch.cat(rows),
        torch.cat(lower),
        torch.cat(upper),
        torch.zeros(sum(sizes), dtype=torch.float64, device=device.name),
        torch.cat(F),
        torch.cat(epsilon) if tube else None,
        torch.cat(shift) if shifted else None,
        matrix=number,
    )


def _put(values: Sequence[float], device: Device) -> Tensor:
    return device.put(np.array(values), np.float64)


def _answers(
    products: Sequence[Products], programmes: Programmes, steps: Array, violations: Array
) -> list[list[BoxPathAnswer]]:
    """Bring the answers to all paths to the host, in few pieces: each journey has its price."""
    every = [(one, place) for one in products for place in one.places]
    sides = [
        [side.view(place.shape) for side in programmes.sides(place.variables)] for _, place in every
    ]
    finite = [
        programmes.F[place.variables].view(place.shape).isfinite().all(1) for _, place in every
    ]
    small = torch.cat([torch.cat([multipliers(*two) for two in sides]), torch.cat(finite).double()])
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
