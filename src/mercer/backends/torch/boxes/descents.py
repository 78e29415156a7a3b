"""Many box programmes on stored float32 matrices: small sets of each, in rounds, on the card.

The host only starts rounds, many at a time, and looks now and then who is done.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from mercer.backends.torch.boxes.strands import (
    Strand,
    Streams,
    own_streams,
    split,
    wait_for_all,
)
from mercer.backends.torch.boxes.turns import in_turns
from mercer.backends.torch.cuda_texts.compiling import is_compiled
from mercer.backends.torch.device import Device, to_host

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
    with own_streams(matrices[0]) as streams:
        limit = min(max_iter, INT32)
        going = _by_width(programmes, only)
        rounds = Rounds(matrices, programmes, tol, limit)
        return _Descent(rounds, Newton(matrices, programmes, tol), limit, streams).run(going, poll)


def _by_width(programmes: Programmes, only: Array | None) -> Array:
    """Return which programmes move, those alike in the width of their boxes side by side.

    Wide boxes take more steps in a round, and more rounds; one variable of each tells.
    """
    first = programmes.begin[:-1].long()
    widths = to_host(programmes.upper[first] - programmes.lower[first])
    order = np.argsort(widths, kind="stable")
    return order if only is None else order[np.isin(order, only)]


class _Descent:
    """Programmes on their way, in strands.

    Parameters
    ----------
    rounds : Rounds
        Where they stand.
    newton : Newton
        Steps on faces.
    limit : int
        Pair steps of each.
    streams : sequence
        Where strands may run.
    """

    def __init__(self, rounds: Rounds, newton: Newton, limit: int, streams: Streams) -> None:
        self._rounds, self._newton, self._limit = rounds, newton, limit
        self._streams, self._progress = streams, _Progress()
        self._made = 0

    def run(self, going: Array, poll: Poll | None) -> tuple[Array, Array]:
        """Make rounds until all are at their ends; return pair steps and violations."""
        strands = split(self._rounds, going, self._streams)
        for number in count():
            some = _FIRST if number < _LOOKS else _ROUNDS
            self._made += some
            looks = [self._advanced(strand, some) for strand in strands]
            look = next((one for one in reversed(looks) if one is not None), None)
            if look is None:
                continue
            asked = poll is not None and poll(int(look.steps.sum()), float(look.violations.max()))
            left = np.concatenate([strand.numbers for strand in strands])
            if asked or not len(left):
                break
            uneven = not all(len(strand.numbers) for strand in strands)
            if self._stepped(left, look) or uneven or 2 * len(left) <= len(going):
                going, strands = left, split(self._rounds, left, self._streams)
        wait_for_all(self._streams)
        self._rounds.close()
        found = self._rounds.look().read()
        return found.steps, found.violations

    def _advanced(self, strand: Strand, some: int) -> Look | None:
        """Start rounds of a strand; let those of its programmes go that were done before."""
        deadline.check()
        look = strand.advance(some) if len(strand.numbers) else None
        if look is not None:
            own = strand.numbers
            going = (look.finished[own] == 0) & (look.steps[own] < self._limit)
            going &= self._progress.is_made(look.violations, own)
            strand.only(own[going])
        return look

    def _stepped(self, left: Array, look: Look) -> bool:
        """Make steps on faces where few programmes are left; return whether there were any."""
        due = self._newton.due(left, look.violations, self._made)
        if len(due):
            wait_for_all(self._streams)
            self._rounds.close()  # F follows the steps of the last sets
        for one in due:
            self._newton.step(int(one), float(look.violations[one]), self._made)
        return len(due) > 0


def measure(matrices: Sequence[Tensor], programmes: Programmes, tol: float | Array) -> Array:
    """Return the violations of all programmes where they stand; see `descend`."""
    with own_streams(matrices[0]):
        rounds = Rounds(matrices, programmes, tol, 0)
        rounds.close()
        return rounds.look().read().violations


class _Progress:
    """Whether violations still fall: steps that are lost to rounding wander for ever."""

    def __init__(self) -> None:
        self._least: Array | None = None
        self._since: Array | None = None

    def is_made(self, violations: Array, own: Array) -> Array:
        """Return which of some programmes came to a new least in the last `_PATIENCE` looks."""
        if self._least is None or self._since is None:
            self._least = np.full(len(violations), np.inf)
            self._since = np.zeros(len(violations), dtype=int)
        now = violations[own]
        fell = now < _FALLEN * self._least[own]
        self._least[own] = np.where(fell, now, self._least[own])
        self._since[own] = np.where(fell, 0, self._since[own] + 1)
        return np.asarray(self._since[own] < _PATIENCE)
