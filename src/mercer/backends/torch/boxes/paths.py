"""Paths of box programmes on a card: all of them, and all of their steps, side by side.

A card has room for hundreds of programmes at a time. So a few paths (the folds of a grid) do not
wait for one another's ends: every step starts where the path starts. Only many paths (folds times
pairs of classes), which fill the card anyhow, go step by step from warm starts. Starts that are not
zero (those of nu) are found on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.boxes import Box, BoxAnswer, BoxPath, BoxPathAnswer, PathStep
from mercer.backends.contract import Poll
from mercer.backends.reference.box_paths import empty_answer, offsets_of, step_box
from mercer.backends.stored import StoredMatrix
from mercer.backends.torch.device import Device, parts, to_host

Tensor: TypeAlias = torch.Tensor
Descend: TypeAlias = Callable[[Sequence[Box], Poll | None], list[BoxAnswer]]
Place: TypeAlias = tuple[int, int]

FILLING = 128  # programmes that keep all multiprocessors of a large card busy


def solve_paths(
    matrix: StoredMatrix,
    paths: Sequence[BoxPath],
    descend: Descend,
    poll: Poll | None,
    values: Callable[[BoxPath, Array], Array],
) -> list[BoxPathAnswer]:
    """Solve all paths; see `Backend.box_paths`.

    Parameters
    ----------
    matrix : StoredMatrix
        K.
    paths : sequence of BoxPath
        What to solve.
    descend : callable
        Solves boxes side by side; gets them and who is to be polled.
    poll : callable or None
        Asked now and then whether to stop.
    values : callable
        Returns the products at the evaluation rows of a path for columns of coefficients.
    """
    answers = [empty_answer(path) for path in paths]
    done, stopped = 0, False

    def asked(steps: int, violation: float) -> bool:
        nonlocal stopped
        stopped = stopped or (poll is not None and bool(poll(done + steps, violation)))
        return stopped

    warm = len(paths) >= FILLING
    for wave in _waves(paths, warm):
        earlier = [answers[p].b if warm else None for p, _ in wave]
        boxes = [_box(matrix, paths[p], s, b) for (p, s), b in zip(wave, earlier, strict=True)]
        for (p, s), box, end in zip(wave, boxes, descend(boxes, asked), strict=True):
            answers[p].b[s], answers[p].gradient[s] = end.b, end.gradient
            answers[p].iterations[s] = end.iterations
            answers[p].offsets[s] = offsets_of(box, end, len(paths[p].totals))
            answers[p].violation[s] = np.inf if stopped else end.violation
            done += end.iterations
        if stopped:
            break
    for path, answer in zip(paths, answers, strict=True):
        answer.values[:] = values(path, answer.b.T).T
    return answers


def _waves(paths: Sequence[BoxPath], warm: bool) -> list[list[Place]]:
    """Return the steps that run side by side, those that others start from before these."""
    places = [(p, s) for p, path in enumerate(paths) for s in range(len(path.steps))]
    if not warm:
        return [places]
    waves: dict[int, list[Place]] = {}
    for p, s in places:
        waves.setdefault(_depth(paths[p].steps, s), []).append((p, s))
    return [waves[depth] for depth in sorted(waves)]


def _depth(steps: Sequence[PathStep], s: int) -> int:
    depth = 0
    while steps[s].start >= 0:
        s, depth = steps[s].start, depth + 1
    return depth


def _box(matrix: StoredMatrix, path: BoxPath, s: int, earlier: Array | None) -> Box:
    own = np.arange(matrix.shape[0]) if path.box.rows is None else path.box.rows

    def product(b: Array) -> Array:
        used = np.flatnonzero(b)
        if not len(used):
            return np.zeros(len(own))
        return matrix.combination(own[used], b[used])[own]

    return step_box(path, path.steps[s], earlier, product)


def values_at(K: Tensor, path: BoxPath, b: Array | Tensor, device: Device) -> Array:
    """Return K b between the evaluation rows of a path and its own, in float64."""
    right = b if torch.is_tensor(b) else device.put(b, np.float64)
    rows = device.put(path.evaluation_rows)
    own = None if path.box.rows is None else device.put(path.box.rows)

    def multiply(entries: int) -> Array:
        out = device.empty((len(rows), right.shape[1]), torch.float64)
        for part in parts(len(rows), entries // max(1, len(K))):
            block = K[rows[part]]
            out[part] = (block if own is None else block[:, own]).double() @ right
        return to_host(out)

    return device.in_blocks(multiply, f"a block of {len(K)} columns of the kernel matrix")
