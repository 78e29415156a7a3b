"""The engine of `WorkingSets`: on few rows as long as few matter, then rounds on all of them."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.gram.policy import LARGEST_STORED
from mercer.solvers.margin.choose_set import near_points, sample_points, standing
from mercer.solvers.margin.descent import BoxState
from mercer.solvers.margin.divide import LEAST_USED, SideBySide, clusters
from mercer.solvers.margin.rounds import Rounds
from mercer.solvers.margin.shared_products import SharedProducts
from mercer.solvers.margin.some_variables import among, moved_of, points_of, share_in_use

_LEAST_SAMPLED = 4096  # points: with fewer no sample is worth its rounds
_LOOSE = 0.025  # of the spread of F at the start: what the violation on a sample may be
# Of a sample in use, and of one an eighth as large, where more are: then all of K is worth storing,
# where it fits.
_MANY, _MANY_OF_FEW = 0.4, 0.6
_PROBE = 4  # times as many rows a sample must have for a smaller one to be worth its time
# Entries of K for each programme that cost no more than the sets of that programme: with fewer K is
# stored at once, as for many pairs of small classes.
_ENTRIES_PER_PART = 1.5e6
_NEARER = 4  # one in so many, at most, is near enough to look at first
_LOOKS = 6  # at all rows, from answers on few of them


class Sets(Rounds):
    """Rounds that start from answers on samples, on clusters, and near to what decides."""

    def descend(self, parts: list[BoxState], tol: float) -> None:
        """Solve set after set, those of all parts together, on few rows as long as few matter."""
        if not parts:
            return
        cold = all(not part.b.any() for part in parts)
        if self._stored is None and cold and self._is_soon_stored(parts):
            self._store()
        if self._stored is not None:
            self._on_stored(self._stored, parts, tol)
            return
        products = SharedProducts(self.source, [part.unwrapped.index for part in parts])
        if products.points <= self._few:
            self._at_once(parts, tol)
            return
        if cold and products.points >= _LEAST_SAMPLED:
            self._on_a_sample(parts, tol, products)
        if self._stored is None and self._looks(parts, tol, products):
            return
        self._rounds(parts, tol, products)

    def _looks(self, parts: list[BoxState], tol: float, products: SharedProducts) -> bool:
        """Solve among the points near to deciding, a few times; return whether all are settled."""
        left = list(range(len(parts)))
        for _ in range(_LOOKS):
            stands = {k: standing(parts[k]) for k in left}
            for k, stand in stands.items():
                parts[k].violation = stand.violation
            left = [k for k in left if parts[k].violation > tol]
            if not left:
                return True
            if self.watch.stopped or any(self.is_spent(parts[k]) for k in left):
                return False
            near = near_points([(parts[k], stands[k]) for k in left], self.source.n)
            count = np.count_nonzero(near)
            if count > max(self._few, products.points // _NEARER):
                return False
            some = among({k: parts[k] for k in left}, near)
            solve = self._at_once if count <= self._few else self._rounds
            solve([one for one, _ in some.values()], 0.5 * tol)
            self._adopt(parts, some, products)
        return False

    def _on_a_sample(self, parts: list[BoxState], tol: float, products: SharedProducts) -> None:
        """Start all parts from answers on clusters of the rows, or on a sample, or store K at once.

        A small sample tells how many rows matter. Where many do, and there are clusters, these are
        the start. Else most rows that matter are found on a fair sample, for an eighth of the
        price, or, if many do and K fits, K is stored, and pair steps begin anew.
        """
        whole = products.points == self.source.n <= LARGEST_STORED and self._fits(parts)
        loose = max(tol, _LOOSE * max(float(np.ptp(part.F)) for part in parts))
        fair, small = sample_points(self.source.n, products.blocks)
        if 2 * np.count_nonzero(fair) > products.points:  # of so many classes that none has many
            return
        if _PROBE * np.count_nonzero(small) <= np.count_nonzero(fair):
            few, some = self._solved_among(parts, small, loose)
            many = share_in_use(few, self.source.n) > LEAST_USED and not self.watch.stopped
            if many and self._in_clusters(parts, some, loose, products):
                return
            if whole and self._stores(parts, few, _MANY_OF_FEW):
                return
        few, some = self._solved_among(parts, fair, loose)
        if not (whole and self._stores(parts, few, _MANY)):
            self._adopt(parts, some, products)

    def _in_clusters(
        self,
        parts: list[BoxState],
        some: dict[int, tuple[BoxState, Array]],
        tol: float,
        products: SharedProducts,
    ) -> bool:
        """Start all parts from answers on clusters of the rows; return whether there are clusters.

        All parts stand at zero. If time runs out before the last cluster, they start from the
        answers at some points that are known instead.
        """
        seen = points_of(parts, self.source.n)
        groups = clusters(self.source, np.flatnonzero(seen), self._few, self.watch)
        if groups is None:
            return False
        found = SideBySide(parts, [one for one, _ in some.values()], seen)
        for points in groups:
            over = self.watch.tick(self.steps, found.worst)
            if over or any(map(self.is_spent, found.states)):
                self._adopt(parts, some, products)
                return True
            apart = found.apart(points)
            if apart:
                self._at_once([one for one, _ in apart.values()], tol)
            found.take(apart)
        self._adopt(parts, found.answers, products)
        return True

    def _solved_among(
        self, parts: list[BoxState], chosen: Array, tol: float
    ) -> tuple[list[BoxState], dict[int, tuple[BoxState, Array]]]:
        """Return the answers at some points alone, and which variables these are."""
        some = among(dict(enumerate(parts)), chosen)
        few = [one for one, _ in some.values()]
        self.descend(few, tol)
        return few, some

    def _stores(self, parts: list[BoxState], few: list[BoxState], many: float) -> bool:
        """Store K if more than a share of a sample is in use; return whether it was."""
        if self.watch.stopped or share_in_use(few, self.source.n) <= many:
            return False
        for part, one in zip(parts, few, strict=True):
            part.steps, part.rounds = one.steps, one.rounds
        self._store()
        return True

    def _adopt(
        self,
        parts: list[BoxState],
        some: dict[int, tuple[BoxState, Array]],
        products: SharedProducts,
    ) -> None:
        """Take over some variables of some parts; F of all variables moves by their sum."""
        steps = {k: moved_of(rows, one.b - parts[k].b[rows]) for k, (one, rows) in some.items()}
        changes = self._times(products, parts, steps)
        for k, (one, rows) in some.items():
            part = parts[k]
            part.F, part.b = part.F - changes[k], part.b.copy()
            part.b[rows] = one.b
            part.steps, part.rounds, part.error = one.steps, one.rounds, np.inf

    def _is_soon_stored(self, parts: list[BoxState]) -> bool:
        """Return whether K costs less than the sets of so many parts, and fits."""
        n = self.source.n
        cheap = _LEAST_SAMPLED <= n <= LARGEST_STORED and n**2 < _ENTRIES_PER_PART * len(parts)
        return cheap and bool(points_of(parts, n).all()) and self._fits(parts)
