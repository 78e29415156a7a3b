"""When a step on the face of a programme is worth its time, counted in rounds of sets.

Newton's steps of one programme use all of a card, rounds one multiprocessor for each programme: so
they are for a few programmes that are left. Their time is at most that of the rounds before, and
nothing here reads a clock, so that answers do not depend on what else a card does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.torch.boxes.faces import face_of, step_on
from mercer.backends.torch.boxes.programmes import Programmes

Tensor: TypeAlias = torch.Tensor

_FEW = 4  # programmes that go on
_LEAST = 64  # rounds between steps: a few milliseconds
_SOON = 0.1  # of the rounds so far: what comes before another look at a face that was early
_FAR = 1.5  # times the tolerance: nearer, rounds are done soon (at 3 nu-SVR took 1700 more)
_NEARER = 0.6  # of the violation where a step was in vain: what it falls to before the next, ...
_LATER = 8  # ... or times the rounds that one costs
_DAMPED, _MOST = 16.0, 256.0  # times the last, and at most: what a step in vain adds to K
_AFTER = 2  # times the rounds that a factor costs: the next step mostly takes few
_FACTOR = 24.0  # rounds that a small factor takes (3 ms): calls, and looks at what came of it
# Factors whose time rounds have taken before the first step, and before others: most programmes are
# at their ends by then, and the others will be long.
_FIRST, _STEP = 16, 8
_OPERATIONS = 2.7e9  # of a large factor in the time of a round, 0.13 ms: 21 x 10^12 in a second


class Newton:
    """Steps on the faces of programmes, between rounds.

    Parameters
    ----------
    matrices : sequence of (n, n) float32 tensors
        What the programmes read.
    programmes : Programmes
        What is moved.
    tol : float or array
        Largest violation at the end, of all or of each.
    """

    def __init__(
        self, matrices: Sequence[Tensor], programmes: Programmes, tol: float | Array
    ) -> None:
        number = len(programmes.sizes)
        self._matrices, self._programmes = matrices, programmes
        self._tol = np.broadcast_to(tol, number).astype(float)
        self._last, self._cost = np.zeros(number), np.full(number, float(_LEAST))
        self._below, self._damping = np.full(number, np.inf), np.full(number, _DAMPED)
        self._spent = 0.0

    def due(self, going: Array, violations: Array, rounds: int) -> Array:
        """Return the programmes whose turn it is.

        Parameters
        ----------
        going : int array
            The programmes that are not at their ends.
        violations : (programmes,) array
            Where all of them stand.
        rounds : int
            How many were made so far.
        """
        if len(going) > _FEW or not self._is_paid(_FACTOR, rounds):
            return going[:0]
        since = rounds - self._last[going]
        far = violations[going] > _FAR * self._tol[going]
        nearer = violations[going] < self._below[going]
        paid = since >= np.maximum(_LEAST, self._cost[going])
        return np.asarray(
            going[far & paid & (nearer | (since >= _LATER * self._cost[going]))],
        )

    def _is_paid(self, factor: float, rounds: int) -> bool:
        """Return whether rounds so far took as long as another step may, of such factors."""
        return self._spent + (_STEP if self._spent else _FIRST) * factor <= rounds

    def step(self, number: int, violation: float, rounds: int) -> None:
        """Move a programme on its face, if the rounds so far have paid for it.

        Parameters
        ----------
        number : int
            Which programme.
        violation : float
            Where it stands.
        rounds : int
            How many were made so far.
        """
        tol = float(self._tol[number])
        face = face_of(self._programmes, number, tol)
        one = _FACTOR + len(face.W) ** 3 / 3 / _OPERATIONS
        self._last[number] = rounds
        if face.is_early or not self._is_paid(one, rounds):
            self._cost[number], self._below[number] = max(_LEAST, _SOON * rounds), np.inf
            return
        matrix = self._programmes.matrix
        K = self._matrices[0 if matrix is None else matrix[number]]
        first = damping = float(self._damping[number])
        while True:
            moved, factors = step_on(K, self._programmes, face, tol, damping)
            self._spent += one * factors
            if moved or damping >= _MOST:
                break
            damping *= _DAMPED
        easy = moved and damping == first
        self._damping[number] = max(1.0, damping / _DAMPED) if easy else damping
        self._cost[number] = _AFTER * one
        self._below[number] = np.inf if moved else _NEARER * violation
