"""Many box programmes on one stored float32 K: pair steps on the card, all programmes at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.boxes import Box, BoxAnswer
from mercer.backends.contract import Poll
from mercer.backends.torch.boxes.descent_kernel import BYTES, FIXED, NAME, descent_text
from mercer.backends.torch.boxes.sets import SIZE, descend_in_sets
from mercer.backends.torch.device import to_host

Tensor: TypeAlias = torch.Tensor

LEAST = 2000  # variables of the largest programme: below, a processor is done first
_STEPS = 20_000  # of each programme between two looks at the clock: about a quarter of a second
_WIDE = 4096  # variables from which a block has all threads that a card gives it
_INT32 = np.iinfo(np.int32).max


def can_descend(boxes: Sequence[Box]) -> bool:
    """Return whether programmes are work for a card: one sum each, and not small."""
    if not boxes or not hasattr(torch.cuda, "_compile_kernel"):
        return False
    sizes = [len(box.gradient) for box in boxes]
    one_sum = all(box.group is None or not box.group.any() for box in boxes)
    return bool(one_sum and sum(sizes) <= _INT32 and max(sizes) >= LEAST)


def largest_programme(device: Any) -> int:
    """Count the variables that one thread block has room for: F and flags of each."""
    room = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
    return int((room - FIXED) // BYTES)


def solve_boxes(
    K: Tensor, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
) -> list[BoxAnswer]:
    """Solve programmes side by side; those too large for a thread block in sets, one by one.

    Parameters are those of `descend`.
    """
    most = largest_programme(K.device)
    small = [k for k, box in enumerate(boxes) if len(box.gradient) <= most]
    found: dict[int, BoxAnswer] = {}
    if small:
        answers = descend(K, [boxes[k] for k in small], tol, max_iter, poll)
        found = dict(zip(small, answers, strict=True))
    for k, box in enumerate(boxes):
        if k not in found:
            found[k] = descend_in_sets(K, box, tol, max_iter, poll, _one, min(SIZE, most))
    return [found[k] for k in range(len(boxes))]


def _one(K: Tensor, box: Box, tol: float, max_iter: int) -> BoxAnswer:
    return descend(K, [box], tol, max_iter, None)[0]


def descend(
    K: Tensor, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
) -> list[BoxAnswer]:
    """Solve all programmes; see `Backend.box_qps`.

    Parameters
    ----------
    K : (n, n) float32 tensor on a card
        The matrix.
    boxes : sequence of Box
        Programmes that `can_descend`.
    tol : float
        Largest violation at the end.
    max_iter : int
        Pair steps of each.
    poll : callable or None
        Told the steps of all programmes, and the largest violation.
    """
    state = State(K, boxes)
    steps = 0
    while True:
        deadline.check()
        state.launch(tol, min(_STEPS, max_iter - steps))
        steps += min(_STEPS, max_iter - steps)
        done, violation = bool(state.finished.all()), state.largest_violation()
        asked = poll is not None and poll(int(state.steps.sum()), violation)
        if done or asked or steps >= max_iter:
            return state.answers()


class State:
    """All programmes side by side.

    Parameters
    ----------
    K : (n, n) float32 tensor
        The matrix.
    boxes : sequence of Box
        The programmes.
    """

    def __init__(self, K: Tensor, boxes: Sequence[Box]) -> None:
        self.K, self.boxes = K, boxes
        n, count = len(K), len(boxes)
        sizes = [len(box.gradient) for box in boxes]
        rows = [np.arange(n) if box.rows is None else box.rows for box in boxes]
        self.begin = self._put(np.concatenate([[0], np.cumsum(sizes)]), np.int32)
        self.rows = self._put(np.concatenate(rows), np.int32)
        shifts = [
            np.zeros(m) if b.shift is None else b.shift for b, m in zip(boxes, sizes, strict=True)
        ]
        epsilons = [
            np.zeros(m) if b.epsilon is None else b.epsilon
            for b, m in zip(boxes, sizes, strict=True)
        ]
        self.shifts = self._put(np.concatenate(shifts), np.float32)
        self.epsilons = self._put(np.concatenate(epsilons), np.float32)
        self.diagonal = K.diagonal()[self.rows.long()] + self.shifts
        self.lower = self._put(np.concatenate([box.lower for box in boxes]), np.float64)
        self.upper = self._put(np.concatenate([box.upper for box in boxes]), np.float64)
        self.b = self._put(np.concatenate([box.start for box in boxes]), np.float64)
        self.F = self._put(np.concatenate([box.gradient for box in boxes]), np.float32)
        self.finished, self.steps = (self._put(np.zeros(count), np.int32) for _ in range(2))
        self.violations = self._put(np.full(count, np.inf), np.float32)
        self.largest = max(sizes)
        tube = any(box.epsilon is not None for box in boxes)
        shifted = any(box.shift is not None for box in boxes)
        self.threads = 1024 if self.largest >= _WIDE else 256
        self.kind = tube, shifted

    def launch(self, tol: float, limit: int) -> None:
        """Make some steps of every programme that is not at its end."""
        card = torch.cuda.get_device_properties(self.K.device)
        shared = BYTES * self.largest
        kernel = _compiled(self.threads, *self.kind, self.K.device.index)
        kernel.set_shared_memory_config(shared)
        blocks = min(len(self.boxes), 2 * card.multi_processor_count)
        arrays = [self.begin, self.rows, self.diagonal, self.lower, self.upper]
        answers = [self.b, self.F, self.finished, self.steps, self.violations]
        turn = torch.zeros(1, dtype=torch.int32, device=self.K.device)
        sizes = [self.K.stride(0), len(self.boxes), turn]
        arguments = [self.K, *sizes, *arrays, self.epsilons, self.shifts, *answers]
        with torch.cuda.device(self.K.device):
            kernel(
                grid=(blocks, 1, 1),
                block=(self.threads, 1, 1),
                args=[*arguments, float(tol), limit],
                shared_mem=shared,
            )

    def largest_violation(self) -> float:
        """Return the largest violation of all programmes."""
        return float(self.violations.max())

    def answers(self) -> list[BoxAnswer]:
        """Bring everything back."""
        ends = np.cumsum([len(box.gradient) for box in self.boxes])[:-1]
        b, F = (np.split(to_host(x.double()), ends) for x in (self.b, self.F))
        steps, violations = to_host(self.steps), to_host(self.violations).astype(np.float64)
        return [
            BoxAnswer(b[p], F[p], int(steps[p]), _judged(F[p], violations[p]))
            for p in range(len(self.boxes))
        ]

    def _put(self, array: Array, dtype: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=dtype)).to(self.K.device)


def _judged(F: Array, violation: float) -> float:
    return float(violation) if np.isfinite(F).all() else float("nan")


@cache
def _compiled(threads: int, tube: bool, shifted: bool, card: int) -> Any:
    text = descent_text(threads, tube=tube, shifted=shifted)
    with torch.cuda.device(card):
        return torch.cuda._compile_kernel(text, NAME)
