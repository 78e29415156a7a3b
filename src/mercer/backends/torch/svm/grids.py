"""Solve paths and grids of box QPs on a GPU, all steps in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.box_programs import Box, BoxAnswer, BoxPath, BoxPathAnswer, PathStep
from mercer.backends.contract import Poll, StoredMatrix
from mercer.backends.reference.smo import empty_answer, offsets_of, step_box
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.svm.confirm import (
    PathPosition,
    PathProducts,
    StoredPaths,
    confirm,
    places,
)
from mercer.backends.torch.svm.descents import COUNT, INT32, descend
from mercer.backends.torch.svm.programs import DeviceQPs, multipliers
from mercer.backends.torch.svm.rounds import in_turns

# --- grids ---------------------------------------------------------------------------------------
#
# Paths of box programmes that all begin at zero: a grid of costs and tubes, made on the card.
#
# Bounds, tubes and shifts of all steps are factors of those of the path, so that only the paths
# are sent. Every step begins where its path does: a card has room for all of them, and none waits
# for another's end. Matrices of several kernels may be there at once; programmes on all of them
# run side by side, since those of one kernel fill a third of a card.

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
    blocks: Sequence[StoredPaths], tol: float, max_iter: int, poll: Poll | None, device: Device
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


def _bytes(blocks: Sequence[StoredPaths]) -> float:
    """Return what all programmes take on the card beside the matrices."""
    found = 0.0
    for K, paths, _ in blocks:
        variables = sum(len(path.steps) * len(path.box.gradient) for path in paths)
        columns = sum(len(path.steps) for path in paths)
        found += _VARIABLE * variables + _COLUMN * columns * len(K)
    return found


def _solve(
    blocks: Sequence[StoredPaths], tol: float, max_iter: int, poll: Poll | None, device: Device
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
        PathProducts(block, own, programmes, device)
        for block, own in zip(blocks, places(blocks), strict=True)
    ]
    if not stopped:
        confirm(matrices, products, programmes, (steps, violations), tol, max_iter, asked)
    if stopped:
        violations = np.full(len(violations), np.inf)
    return _answers(products, programmes, steps, violations)


def _programmes(blocks: Sequence[StoredPaths], device: Device) -> DeviceQPs:
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
    return DeviceQPs(
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
    products: Sequence[PathProducts], programmes: DeviceQPs, steps: Array, violations: Array
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


def _alike(every: Sequence[PathPosition]) -> Iterator[tuple[int, slice]]:
    """Return runs of programmes of one size: the size, and the variables of some of the run."""
    for m, run in groupby(every, key=lambda place: place.shape[1]):
        own = list(run)
        first, last = own[0].variables.start, own[-1].variables.stop
        for some in parts(last - first, m * max(1, _AT_ONCE // max(1, m))):
            yield m, slice(first + some.start, first + some.stop)


# --- paths ---------------------------------------------------------------------------------------
#
# Paths of box programmes on a card: all of them, and all of their steps, side by side.
#
# A card has room for hundreds of programmes at a time. So a few paths (the folds of a grid) do
# not wait for one another's ends: every step starts where the path starts. Only many paths (folds
# times pairs of classes), which fill the card anyhow, go step by step from warm starts. Starts
# that are not zero (those of nu) are found on the host.

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
