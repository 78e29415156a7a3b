"""The primal side of a box programme whose Gram is factored, and which of its rows are decided.

With unknowns v = (weights, offsets) and residuals t = p - A v, the dual variable of a row is
known: b(t), piecewise linear. Far from the corners of b(t) a row stays on its piece while v
moves a little, so it acts as a constant pull (flat pieces) or a fixed quadratic (where slack is
squared). Only rows near a corner need a solver. What was assumed is checked afterwards, on all
rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram
from mercer.machines.svm.primal.barrier import LinearRows, RowBlock, implied_bounds
from mercer.machines.svm.problem import BoxQP
from mercer.rows.device_arrays import looked_up
from mercer.rows.points import is_sparse, to_host

_IDLE = 1e12  # times all others: a shift beyond which a row is left out, to be set at the end
_FEW = 10_000  # rows whose mean stands for that of all


@dataclass(frozen=True, eq=False)
class Piece:
    """Where each row stands on its b(t).

    Attributes
    ----------
    b : (n,) array
        b(t); infinite beyond the last corner of a row without bound or shift.
    distance_to_corner : (n,) array
        Distance from t to the nearest corner; infinite where there is none.
    curved : (n,) bool array
        Whether b moves with t here.
    """

    b: Array
    distance_to_corner: Array
    curved: Array


@dataclass(frozen=True, eq=False)
class Outside:
    """What rows that stay on their pieces add to the primal objective: v'Mv/2 - g'v.

    Attributes
    ----------
    matrix : (m, m) array or None
        M, of squared slack; None where no row has it.
    pulled : (m,) array
        g.
    held : (groups,) bool array
        The offsets that no row can move.
    """

    matrix: Array | None
    pulled: Array
    held: Array


@dataclass(frozen=True, eq=False)
class FeatureProgramme:
    """min |w|^2/2 + total'r + sum_i phi_i(p_i - F_i w - r_g(i)), the primal of a `BoxQP`.

    Attributes
    ----------
    rows : LinearRows
        A.
    linear, lower, upper, shift, epsilon : (n,) array
        As in the box programme.
    totals : (groups,) array
        What the variables of each group sum to.
    outside : Outside or None
        What rows do that were left out because they are known; None where all are here.
    """

    rows: LinearRows
    linear: Array
    lower: Array
    upper: Array
    shift: Array
    epsilon: Array
    totals: Array
    outside: Outside | None = None

    @classmethod
    def of(cls, problem: BoxQP) -> FeatureProgramme:
        """Read a box programme."""
        under, n = problem.unwrapped, len(problem.linear)
        assert isinstance(under.base, FactoredGram)
        group = np.zeros(n, dtype=np.int8) if problem.group is None else problem.group
        F, index = under.base.placed, under.index
        centre = np.zeros(F.shape[1])
        if len(problem.totals) and group.min(initial=0) >= 0 and not is_sparse(F):
            some = F[:: max(1, len(F) // _FEW)]  # any will do
            centre = np.asarray(some.mean(axis=0, dtype=np.float64))
        rows = LinearRows(F, index, group.astype(np.int8), len(problem.totals), centre)
        epsilons = np.array(problem.epsilons)
        shift = np.zeros(n) if under.shift is None else under.shift
        lower, upper = implied_bounds(problem)
        idle = _idle(rows, shift)
        if idle.any():
            lower, upper = np.where(idle, 0.0, lower), np.where(idle, 0.0, upper)
            shift = np.where(idle, 0.0, shift)
        found = cls(rows, problem.linear, lower, upper, shift, epsilons, problem.totals)
        return found._settled()

    def _settled(self) -> FeatureProgramme:
        """Put all vectors where products with them are made: few rows are the host's."""
        put = self.rows.placed
        return replace(
            self,
            rows=self.rows.settled(),
            linear=put(self.linear),
            lower=put(self.lower),
            upper=put(self.upper),
            shift=put(self.shift),
            epsilon=put(self.epsilon),
        )

    def here(self) -> FeatureProgramme:
        """Return the same with all vectors on the host."""
        rows = replace(
            self.rows,
            index=None if self.rows.index is None else to_host(self.rows.index),
            group=to_host(self.rows.group),
            stays=False,
        )
        vectors = ("linear", "lower", "upper", "shift", "epsilon")
        return replace(self, rows=rows, **{name: to_host(getattr(self, name)) for name in vectors})

    def sample(self, which: Array, ratio: Array) -> FeatureProgramme:
        """Take some rows, each counting `ratio` times."""
        return replace(
            self,
            rows=self.rows.take(which),
            linear=self.linear[which],
            lower=self.lower[which] * ratio,
            upper=self.upper[which] * ratio,
            shift=self.shift[which] / ratio,
            epsilon=self.epsilon[which],
        )._settled()

    @cached_property
    def _is_split(self) -> Array:
        return (self.epsilon > 0) & (self.lower < 0) & (self.upper > 0)

    @cached_property
    def _split(self) -> Array:
        return np.flatnonzero(self._is_split)

    @cached_property
    def _corners(self) -> tuple[Array, Array]:
        """Return the residuals at which rows reach their upper and their lower bounds."""
        epsilon, any_epsilon = self.epsilon, bool(self.epsilon.any())
        up = np.where(self.upper > 0, epsilon, -epsilon) if any_epsilon else epsilon
        down = np.where(self.lower < 0, -epsilon, epsilon) if any_epsilon else epsilon
        return _corner(self.shift, self.upper, up), _corner(self.shift, self.lower, down)

    def duals_at(self, t: Array) -> Piece:
        """Compute b(t), the dual variables at residuals t, and the distance to its corners."""
        high, low = self._corners
        above, below = t >= high, t <= low
        b = np.where(above, self.upper, self.lower)
        distance_to_corner = np.minimum(np.abs(t - high), np.abs(t - low))
        curved = np.zeros_like(above)
        between = np.flatnonzero(~(above | below))
        if len(between):
            epsilon = self.epsilon[between]
            sides = (self.lower[between] < 0) & (self.upper[between] > 0)
            sign = np.where(sides, t[between] > 0, self.upper[between] > 0)
            past = t[between] - np.where(sign, epsilon, -epsilon)
            beyond = (past * np.where(sign, 1.0, -1.0) > 0) | (epsilon == 0)
            moves = (self.shift[between] > 0) & beyond
            bent = np.where(moves, self.shift[between], 1.0)
            b[between] = np.where(moves, past / bent, 0.0)
            curved[between] = moves
        if len(self._split):
            inner = np.abs(np.abs(t[self._split]) - self.epsilon[self._split])
            distance_to_corner[self._split] = np.minimum(distance_to_corner[self._split], inner)
        fixed = self._fixed
        if len(fixed):
            b[fixed], distance_to_corner[fixed], curved[fixed] = self.lower[fixed], np.inf, False
        return Piece(b, distance_to_corner, curved)

    @cached_property
    def _fixed(self) -> Array:
        return np.flatnonzero(self.lower == self.upper)

    def residuals(self, v: Array) -> Any:
        """Return the residuals t = p - A v."""
        return self.linear - self.rows.matvec(v)

    def even_residuals(self) -> float:
        """Return the spread of residuals where all variables of a group have equal shares of it.

        Where nothing is asked of rows, as in one-class machines, this is the only size there is: it
        grows with the number of rows, as the sums do.
        """
        group, box = self.rows.group, np.isfinite(self.upper) & (self.upper > 0)
        room = np.where(box & (group >= 0), self.upper, 0.0)
        sums = self.rows.sums(room)
        shares = np.append(self.totals / np.where(sums > 0, sums, np.inf), 0.0)
        pulled = self.rows.features.rmatvec(room * looked_up(shares, group))
        reached = self.rows.values(pulled)
        spread = float(reached.std()) if len(reached) else 0.0
        return spread if np.isfinite(spread) else 0.0

    def value(self, v: Array, t: Array, b: Array) -> float:
        """Return the primal objective at v, where t and b belong to it."""
        w = v[: len(v) - len(self.totals)]
        beside = 0.0
        if self.outside is not None and self.outside.matrix is not None:
            beside = 0.5 * float(v @ self.outside.matrix @ v)
        with np.errstate(invalid="ignore", over="ignore"):
            loss = t * b - self.epsilon * np.abs(b) - 0.5 * self.shift * b * b
        pulled = float(self.pull() @ v)
        return float(0.5 * w @ w + beside - pulled + np.nan_to_num(loss, nan=0.0).sum())

    def pull(self) -> Array:
        """Return what sums and known rows pull by: the objective's linear term, negated."""
        of_totals = np.concatenate([self.rows.centre * self.totals.sum(), -self.totals])
        return of_totals if self.outside is None else of_totals + self.outside.pulled

    def bend(self) -> Array:
        """Return the second derivatives of the objective without its rows: weights, known rows."""
        bare = np.diag(np.append(np.ones(self.rows.width - len(self.totals)), 0.0 * self.totals))
        beside = None if self.outside is None else self.outside.matrix
        return bare if beside is None else bare + beside

    @cached_property
    def _held(self) -> Array:
        """Return the offsets that no row can move with."""
        if self.outside is not None:
            return self.outside.held
        return np.asarray(self.rows.sums((self.lower < self.upper).astype(np.float64)) == 0)

    def everything(self, piece: Piece) -> tuple[Array, RowBlock]:
        """Return all rows that can move to the solver, and their numbers."""
        if not len(self._fixed):
            return np.arange(len(self.linear)), self.whole()
        open_rows = np.flatnonzero(self.lower < self.upper)
        return open_rows, self.near(open_rows, piece)

    def whole(self) -> RowBlock:
        """Return all rows to the solver."""
        matrix = self.bend()
        matrix.flat[:: len(matrix) + 1] += np.append(
            np.zeros(len(matrix) - len(self.totals)), self._held
        )
        return RowBlock(
            self.rows,
            self.linear,
            self.lower,
            self.upper,
            self.shift,
            self.epsilon,
            matrix,
            self.pull(),
        )

    def near(self, which: Array, piece: Piece) -> RowBlock:
        """Return some rows to the solver; all others stay on their pieces."""
        return self.inner(which, piece).whole()

    def inner(self, which: Array, piece: Piece) -> FeatureProgramme:
        """Return the programme of some rows; all others stay on their pieces."""
        others = np.ones_like(piece.curved)
        others[which] = False
        curved = np.flatnonzero(others & piece.curved)
        pull = np.where(others & ~piece.curved, piece.b, 0.0)
        matrix = None if self.outside is None else self.outside.matrix
        if len(curved):
            # b = (t - beyond)/shift, so p - beyond = shift b + A v is what the quadratic aims at
            inverse = np.zeros_like(self.linear)
            inverse[curved] = 1.0 / self.shift[curved]
            aim = np.where(self.upper > 0, self.epsilon, -self.epsilon)
            aim = np.where((self.lower < 0) & (piece.b < 0), -self.epsilon, aim)
            pull[curved] = (self.linear - aim)[curved] * inverse[curved]
            added = self.rows.weighted_gram(curved, inverse[curved])
            matrix = added if matrix is None else matrix + added
        pulled = self.rows.rmatvec(pull)
        if self.outside is not None:
            pulled = pulled + self.outside.pulled
        return replace(
            self,
            rows=self.rows.take(which),
            linear=self.linear[which],
            lower=self.lower[which],
            upper=self.upper[which],
            shift=self.shift[which],
            epsilon=self.epsilon[which],
            outside=Outside(matrix, pulled, self._held),
        )._settled()


def _idle(rows: LinearRows, shift: Array) -> Array:
    """Return which rows weigh so little that all of them together move nothing."""
    least = float(shift.min(initial=np.inf))
    return np.asarray(shift > _IDLE * max(1, rows.count) * max(rows.longest() ** 2, least))


def _corner(shift: Array, bound: Array, epsilon: Array) -> Array:
    """Return the residual at which a row reaches its bound; at once where nothing bends it."""
    with np.errstate(invalid="ignore"):
        return np.where(shift > 0, shift * bound, 0.0) + epsilon
