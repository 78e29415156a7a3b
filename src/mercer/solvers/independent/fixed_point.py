"""Independent components of white rows, from several starts, together or one after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.points import is_sparse
from mercer.problems import IndependentComponents, Unmixing
from mercer.problems.independent.unmixing import tangent_basis
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.independent.climb import Ascent, climb
from mercer.solvers.independent.landscapes import Landscape, Rotations, Sphere

_WHITE = 1e-6  # how far from I a covariance may be


@dataclass(frozen=True)
class FixedPointICA(Solver):
    """Fixed-point iteration (FastICA) with Newton's steps where that goes in circles.

    Parameters
    ----------
    tol : float
        Stop when no derivative of the contrast along the sphere is larger.
    max_iter : int
        Most steps from one start, for all directions at once or for each.
    n_init : int
        Starts; the answer with the largest contrast is kept.
    random_state : int
        Seed of the starts.
    """

    answers = IndependentComponents

    tol: float = 1e-8
    max_iter: int = 200
    n_init: int = 5
    random_state: int = 0

    def _obstacle(self, problem: IndependentComponents) -> str | None:
        Z, share = problem.rows, problem.share
        remedy = "FixedPointICA needs white rows of as many columns as `space`; use mercer.Whiten"
        if is_sparse(Z) or Z.shape[1] != problem.space:
            return remedy
        covariance = (share[:, None] * Z).T @ Z
        return remedy if np.abs(covariance - np.eye(len(covariance))).max() > _WHITE else None

    def run(self, problem: IndependentComponents, watch: Watch, start: Any = None) -> Solution:
        """Climb from every start."""
        rng = np.random.default_rng(self.random_state)
        if problem.joint:
            land = Rotations(problem.rows, problem.share, problem.contrast)
            found = self._best(land, watch, partial(_rotation, rng, problem.space))
            turn, endings, steps = found.place.point, [found.status], found.steps
        else:
            turn, endings, steps = self._one_by_one(problem, watch, rng)
        status = next((one for one in endings if one is not Status.SOLVED), Status.SOLVED)
        value = Unmixing(np.zeros(problem.space), turn)
        return report(self, value, status, steps, watch)

    def _one_by_one(
        self, problem: IndependentComponents, watch: Watch, rng: np.random.Generator
    ) -> tuple[Array, list[Status], int]:
        left = np.eye(problem.space)
        turn = np.empty((0, problem.space))
        endings, steps = list[Status](), 0  # the most that one direction took
        for _ in range(problem.count):
            land = Sphere(problem.rows @ left, problem.share, problem.contrast)
            width = left.shape[1]
            found = self._best(land, watch, partial(_direction, rng, width))
            turn = np.vstack([turn, left @ found.place.point])
            left = tangent_basis(np.linalg.qr(turn.T)[0])
            endings, steps = [*endings, found.status], max(steps, found.steps)
        return turn, endings, steps

    def _best(self, land: Landscape, watch: Watch, draw: Callable[[], Array]) -> Ascent:
        """Return the highest of the ends."""
        best = None
        for _ in range(self.n_init):
            done = watch.trace[-1].iteration + 1 if watch.trace else 0
            found = climb(land, draw(), self.tol, self.max_iter, watch, done)
            if best is None or _order(found) > _order(best):
                best = found
            if watch.stopped is not None:
                break
        if best is None:  # no start was asked for
            raise ValueError(f"FixedPointICA: n_init={self.n_init} must be at least 1")
        return best


def _order(found: Ascent) -> tuple[bool, float]:
    """Return what is kept first: an end that was reached, and then the larger contrast."""
    return found.status.ok, float(np.abs(found.place.excess).sum())


def _rotation(rng: np.random.Generator, p: int) -> Array:
    return np.asarray(np.linalg.qr(rng.standard_normal((p, p)))[0])


def _direction(rng: np.random.Generator, p: int) -> Array:
    drawn = rng.standard_normal(p)
    return np.asarray(drawn / np.linalg.norm(drawn))
