"""Paths of box programmes that all begin at zero: a grid of costs and tubes, made on the card.

Bounds, tubes and shifts of all steps are factors of those of the path, so that only the paths are
sent. Every step begins where its path does: a card has room for all of them, and none waits for
another's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.boxes import BoxPath, BoxPathAnswer
from mercer.backends.contract import Poll
from mercer.backends.torch.boxes.descents import COUNT, INT32, descend
from mercer.backends.torch.boxes.paths import values_at
from mercer.backends.torch.boxes.programmes import Programmes
from mercer.backends.torch.device import Device, to_host

Tensor: TypeAlias = torch.Tensor


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


def solve_grid(
    K: Tensor,
    paths: Sequence[BoxPath],
    tol: float,
    max_iter: int,
    poll: Poll | None,
    device: Device,
) -> list[BoxPathAnswer]:
    """Solve all steps of all paths side by side; see `Backend.box_paths`.

    Parameters
    ----------
    K : (n, n) float32 tensor
        The matrix.
    paths : sequence of BoxPath
        Paths that `begin_at_zero`.
    tol : float
        Largest violation at the end.
    max_iter : int
        Pair steps of each programme.
    poll : callable or None
        Asked now and then whether to stop.
    device : Device
        Where K is.
    """
    stopped = False

    def asked(steps: int, violation: float) -> bool:
        nonlocal stopped
        stopped = stopped or (poll is not None and bool(poll(steps, violation)))
        return stopped

    programmes = _programmes(K, paths, device)
    steps, violations = descend(K, programmes, tol, max_iter, asked)
    if stopped:
        violations = np.full(len(violations), np.inf)
    answers, first, begin = [], 0, 0
    for path in paths:
        count, m = len(path.steps), len(path.box.gradient)
        here, own = slice(first, first + count), slice(begin, begin + count * m)
        answers.append(_answer(K, path, programmes, own, steps[here], violations[here], device))
        first, begin = here.stop, own.stop
    return answers


def _programmes(K: Tensor, paths: Sequence[BoxPath], device: Device) -> Programmes:
    """Write down the steps of all paths on the device."""
    sizes = [len(path.box.gradient) for path in paths for _ in path.steps]

    def times(factors: Sequence[float], values: Array | None, m: int) -> Tensor:
        if values is None:
            return torch.zeros(len(factors) * m, dtype=torch.float64, device=K.device)
        return torch.outer(_put(factors, device), device.put(values, np.float64)).flatten()

    lower, upper, F, epsilon, shift, rows = [], [], [], [], [], []
    for path in paths:
        box, steps, m = path.box, path.steps, len(path.box.gradient)
        lower.append(times([step.bound for step in steps], box.lower, m))
        upper.append(times([step.bound for step in steps], box.upper, m))
        F.append(times([1.0] * len(steps), box.gradient, m))
        epsilon.append(times([step.epsilon for step in steps], box.epsilon, m))
        shift.append(times([step.shift for step in steps], box.shift, m))
        own = np.arange(len(K)) if box.rows is None else box.rows
        rows.append(device.put(own, np.int32).repeat(len(steps)))
    tube = any(path.box.epsilon is not None for path in paths)
    shifted = any(path.box.shift is not None for path in paths)
    b = torch.zeros(sum(sizes), dtype=torch.float64, device=K.device)
    return Programmes(
        sizes,
        device.put(np.concatenate([[0], np.cumsum(sizes)]), np.int32),
        torch.cat(rows),
        torch.cat(lower),
        torch.cat(upper),
        b,
        torch.cat(F),
        torch.cat(epsilon) if tube else None,
        torch.cat(shift) if shifted else None,
    )


def _put(values: Sequence[float], device: Device) -> Tensor:
    return device.put(np.array(values), np.float64)


def _answer(
    K: Tensor,
    path: BoxPath,
    programmes: Programmes,
    own: slice,
    steps: Array,
    violations: Array,
    device: Device,
) -> BoxPathAnswer:
    """Bring the answers to one path, whose variables are a part of all, to the host."""
    shape = len(path.steps), len(path.box.gradient)
    b, F = programmes.b[own].view(shape), programmes.F[own].view(shape)
    sides = _sides(programmes, own, shape)
    known = np.where(to_host(F.isfinite().all(dim=1)), violations, np.nan)
    values = values_at(K, path, b.T, device)
    return BoxPathAnswer(
        to_host(b),
        to_host(F),
        to_host(_multipliers(*sides))[:, None],
        np.ascontiguousarray(values.T),
        steps,
        np.where(np.isinf(violations), violations, known),
    )


def _sides(programmes: Programmes, own: slice, shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return both sides of the optimality conditions; infinite for what cannot move that way."""
    b, F = programmes.b[own], programmes.F[own]
    epsilon = torch.zeros_like(b) if programmes.epsilon is None else programmes.epsilon[own]
    rising = F + torch.where(b < 0, epsilon, -epsilon)
    falling = F + torch.where(b > 0, -epsilon, epsilon)
    rising = torch.where(b < programmes.upper[own], rising, -torch.inf)
    falling = torch.where(b > programmes.lower[own], falling, torch.inf)
    return rising.view(shape), falling.view(shape)


def _multipliers(rising: Tensor, falling: Tensor) -> Tensor:
    """Return what `boxes.multiplier` does, for rows."""
    top, bottom = rising.amax(dim=1), falling.amin(dim=1)
    free = rising == falling
    count = free.sum(dim=1)
    mean = torch.where(free, rising, 0.0).sum(dim=1) / count.clamp(min=1)
    within = mean.clamp(torch.minimum(top, bottom), torch.maximum(top, bottom))
    ends = torch.stack([top, bottom])
    finite = ends.isfinite()
    middle = torch.where(finite, ends, 0.0).sum(dim=0) / finite.sum(dim=0).clamp(min=1)
    return torch.where(count > 0, within, middle)
