"""One box programme that is too large for a thread block: sets of its variables, one after another.

A quarter of a set are the variables that most want to rise, a quarter those that most want to fall,
the rest those of the last set that are still free. K between them is gathered, the programme is
solved in them alone, and F of all variables follows by one product with rows of K, on the card.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.boxes import Box, BoxAnswer
from mercer.backends.contract import Poll
from mercer.backends.torch.device import to_host

Tensor: TypeAlias = torch.Tensor
Inner: TypeAlias = Callable[[Tensor, Box, float, int], BoxAnswer]

SIZE = 2048  # variables of a set: with half as many, costs near 1 stall on covertype
_INNER = 0.1  # of the present violation: what a set is solved to
_ROWS = 512  # of K in float64 at a time


def descend_in_sets(
    K: Tensor,
    box: Box,
    tol: float,
    max_iter: int,
    poll: Poll | None,
    inner: Inner,
    size: int = SIZE,
) -> BoxAnswer:
    """Solve a programme with one sum; see `Backend.box_qps`.

    Parameters
    ----------
    K : (n, n) tensor
        The matrix.
    box : Box
        The programme.
    tol : float
        Largest violation at the end.
    max_iter : int
        Pair steps.
    poll : callable or None
        Told the steps, and the violation.
    inner : callable
        Solves a programme on a small matrix: gets both, a tolerance and a number of steps.
    size : int
        Variables of a set.
    """
    state = _Sets(K, box)
    steps, chosen, violation = 0, state.nothing(), state.violation()
    while violation > tol and steps < max_iter:
        deadline.check()
        if poll is not None and poll(steps, violation):
            break
        chosen = state.choose(chosen, size)
        aim = max(0.5 * tol, _INNER * violation)
        found = inner(state.between(chosen), state.part(chosen), aim, max_iter - steps)
        steps += found.iterations
        if not state.move(chosen, found.b):
            break
        violation = state.violation()
    F = to_host(state.F)
    known = violation if np.isfinite(F).all() else float("nan")
    return BoxAnswer(to_host(state.b), F, steps, known)


class _Sets:
    """The variables of a programme and their F, on the device, in float64."""

    def __init__(self, K: Tensor, box: Box) -> None:
        self._K, self._box = K, box
        self._rows = None if box.rows is None else self._put(box.rows)
        self.b, self.F = self._put(box.start), self._put(box.gradient)
        self._lower, self._upper = self._put(box.lower), self._put(box.upper)
        zero = np.zeros(len(box.start))
        self._epsilon = self._put(zero if box.epsilon is None else box.epsilon)
        self._shift = self._put(zero if box.shift is None else box.shift)

    def _put(self, array: Array) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self._K.device)

    def nothing(self) -> Tensor:
        """Return an empty set."""
        return torch.zeros(0, dtype=torch.int64, device=self._K.device)

    def _sides(self) -> tuple[Tensor, Tensor]:
        slope = torch.where(self.b < 0, self._epsilon, -self._epsilon)
        rising = torch.where(self.b < self._upper, self.F + slope, -torch.inf)
        slope = torch.where(self.b > 0, -self._epsilon, self._epsilon)
        return rising, torch.where(self.b > self._lower, self.F + slope, torch.inf)

    def violation(self) -> float:
        """Return the largest violation of a pair."""
        rising, falling = self._sides()
        return float(rising.max() - falling.min())

    def choose(self, last: Tensor, size: int) -> Tensor:
        """Return the numbers of the next set, ascending."""
        rising, falling = self._sides()
        quarter = min(max(1, size // 4), len(self.b))
        worst = [rising.topk(quarter).indices, falling.topk(quarter, largest=False).indices]
        free = last[(self.b[last] > self._lower[last]) & (self.b[last] < self._upper[last])]
        return torch.cat([*worst, free[: max(0, size - 2 * quarter)]]).unique()

    def _of_base(self, index: Tensor) -> Tensor:
        return index if self._rows is None else self._rows[index]

    def between(self, chosen: Tensor) -> Tensor:
        """Return K between the variables of a set."""
        rows = self._of_base(chosen)
        return self._K[rows][:, rows].contiguous()

    def part(self, chosen: Tensor) -> Box:
        """Return the programme in these variables alone."""
        index = to_host(chosen)
        box = self._box
        return Box(
            to_host(self.F[chosen]),
            to_host(self.b[chosen]),
            box.lower[index],
            box.upper[index],
            None if box.epsilon is None else box.epsilon[index],
            None if box.shift is None else box.shift[index],
        )

    def move(self, chosen: Tensor, b: Array) -> bool:
        """Take over variables of a set; return whether any of them moved."""
        new = self._put(b)
        step = new - self.b[chosen]
        used = step.nonzero()[:, 0]
        if not len(used):
            return False
        for few in used.split(_ROWS):
            rows = self._K[self._of_base(chosen[few])].double()
            change = step[few] @ rows
            self.F -= change if self._rows is None else change[self._rows]
        self.F[chosen] -= self._shift[chosen] * step
        self.b[chosen] = new
        return True
