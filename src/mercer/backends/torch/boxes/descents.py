"""Many box programmes on stored float32 matrices: small sets of each, in rounds, on the card.

The host only starts rounds, many at a time, and looks now and then who is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TypeAlias

import numpy as np
import torch

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.boxes import Box, BoxAnswer
from mercer.backends.contract import Poll
from mercer.backends.torch.boxes.newton import Newton
from mercer.backends.torch.boxes.programmes import Programmes, on_device
from mercer.backends.torch.boxes.rounds import Look, Rounds
from mercer.backends.torch.boxes.turns import in_turns
from mercer.backends.torch.cuda_texts.compiling import is_compiled
from mercer.backends.torch.device import Device

Tensor: TypeAlias = torch.Tensor

LEAST = 2000  # variables of the largest programme: below, a processor is done first
_FIRST = 8  # rounds between the first looks at the clock: easy programmes need no more than some
_LOOKS = 4  # with so few rounds
_ROUNDS = 32  # between later looks: a few milliseconds
_PATIENCE = (
    500  # looks without a new least violation: a second or two, then solvers go on otherwise
)
_FALLEN = 0.99  # of the least violation: what counts as a new one
_VARIABLE = 4 * 2 + 8 * 6  # bytes: its row and its sum, and what a programme says of it
INT32 = np.iinfo(np.int32).max
COUNT = 1 << 15  # programmes at once: what a grid takes in its second dimension


def can_descend(boxes: Sequence[Box]) -> bool:
    """Return whether programmes are work for a card: one sum or two each, and not small."""
    if not boxes or not is_compiled():
        return False
    sizes = [len(box.gradient) for box in boxes]
    few = all(box.group is None or (0 <= box.group.min() and box.group.max() < 2) for box in boxes)
    return bool(few and sum(sizes) <= INT32 and len(boxes) < COUNT and max(sizes) >= LEAST)


def solve_boxes(
    K: Tensor,
    boxes: Sequence[Box],
    tol: float,
    max_iter: int,
    poll: Poll | None,
    device: Device,
) -> list[BoxAnswer]:
    """Solve programmes side by side, as far as the card has room; see `Backend.box_qps`.

    Parameters are those of `descend`, but for the programmes, which are on the host.
    """

    def solve(some: Sequence[Box]) -> list[BoxAnswer]:
        programmes = on_device(K, some)
        return programmes.answers(*descend([K], programmes, tol, max_iter, poll))

    needed = _VARIABLE * float(sum(len(box.gradient) for box in boxes))
    return in_turns(boxes, solve, needed, device, "a box programme")


def descend(
    matrices: Sequence[Tensor],
    programmes: Programmes,
    tol: float | Array,
    max_iter: int,
    poll: Poll | None,
    only: Array | None = None,
) -> tuple[Array, Array]:
    """Move the variables of all programmes to their ends; return pair steps and violations.

    Parameters
    ----------
    matrices : sequence of (n, n) float32 tensors on a card
        What the programmes read.
    programmes : Programmes
        Programmes that `can_descend`, where the matrices are.
    tol : float or array
        Largest violation at the end, of all or of each.
    max_iter : int
        Pair steps of each.
    poll : callable or None
        Told the steps of all programmes, and the largest violation.
    only : int array, optional
        Which programmes move; all by default.
    """
    with _own_stream(matrices[0]):
        return _descend(matrices, programmes, tol, max_iter, poll, only)


def _descend(
    matrices: Sequence[Tensor],
    programmes: Programmes,
    tol: float | Array,
    max_iter: int,
    poll: Poll | None,
    only: Array | None,
) -> tuple[Array, Array]:
    limit = min(max_iter, INT32)
    progress, running = _Progress(), len(programmes.sizes) if only is None else len(only)
    rounds = Rounds(matrices, programmes, tol, limit, running)
    if only is not None:
        rounds.only(only)
    newton, made = Newton(matrices, programmes, tol), 0
    seen: Look | None = None
    for number in count():
        deadline.check()
        some = _FIRST if number < _LOOKS else _ROUNDS
        rounds.launch(some)
        made += some
        before, seen = seen, rounds.look()
        if before is None:
            continue  # the card has work to do while the host reads what was a moment ago
        found = before.read()
        going = (found.finished == 0) & (found.steps < limit)
        going &= True if only is None else np.isin(np.arange(len(going)), only)
        going = np.flatnonzero(going & progress.is_made(found.violations))
        asked = poll is not None and poll(int(found.steps.sum()), float(found.violations.max()))
        if asked or not len(going):
            break
        if rounds.has_larger_sets(len(going)):
            rounds, seen = rounds.carried_on(len(going)), None
        due = newton.due(going, found.violations, made)
        if len(due):
            rounds.close()  # F follows the steps of the last sets
            seen = None
            for one in due:
                newton.step(int(one), float(found.violations[one]), made)
        rounds.only(going)
    rounds.close()
    found = rounds.look().read()
    return found.steps, found.violations


def measure(matrices: Sequence[Tensor], programmes: Programmes, tol: float | Array) -> Array:
    """Return the violations of all programmes where they stand; see `descend`."""
    with _own_stream(matrices[0]):
        rounds = Rounds(matrices, programmes, tol, 0, len(programmes.sizes))
        rounds.close()
        return rounds.look().read().violations


class _Progress:
    """Whether violations still fall: steps that are lost to rounding wander for ever."""

    def __init__(self) -> None:
        self._least: Array | None = None
        self._since: Array | None = None

    def is_made(self, violations: Array) -> Array:
        """Return which programmes have fallen to a new least in the last `_PATIENCE` looks."""
        if self._least is None or self._since is None:
            self._least, self._since = np.array(violations), np.zeros(len(violations), dtype=int)
        fell = violations < _FALLEN * self._least
        self._least = np.where(fell, violations, self._least)
        self._since = np.where(fell, 0, self._since + 1)
        return np.asarray(self._since < _PATIENCE)


@contextmanager
def _own_stream(K: Tensor) -> Iterator[None]:
    """Let what several threads ask for (folds of a search) run side by side on a card."""
    if not K.is_cuda:
        yield
        return
    own = torch.cuda.Stream(K.device)
    own.wait_stream(torch.cuda.current_stream(K.device))
    try:
        with torch.cuda.stream(own):
            yield
    finally:  # nothing is let go of that a round still writes to
        own.synchronize()
