"""What fits to the same rows can share, where they differ in the number of clusters or components.

Whoever fits several such machines leaves one `Store` with each before it is fitted; a fit takes it
away, so that it serves that fit alone, and is never copied or pickled. Without one a fit has a
store to itself, and nothing is found in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from mercer.problems import Eigenproblem, Modes
from mercer.solvers import Solution, Status

T = TypeVar("T")


class Store:
    """Results by name: made once, then found."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}
        self._pairs: dict[Hashable, tuple[int, Solution]] = {}

    def leave_with(self, machine: Reusing) -> None:
        """Let the next fit of a machine use what is here."""
        machine._store = self

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """Return what goes by a name, made if it is not here."""
        if name not in self._made:
            self._made[name] = make()
        return cast(T, self._made[name])

    def pairs(
        self, name: Hashable, problem: Eigenproblem, solve: Callable[[Eigenproblem], Solution]
    ) -> Solution:
        """Return the leading eigenpairs of one matrix: the first of those found for more.

        Pairs come in the order of their values, so a smaller number is the beginning of a larger.
        """
        return self.leading(name, problem.n_pairs, partial(solve, problem), _first_modes)

    def leading(
        self,
        name: Hashable,
        count: int,
        solve: Callable[[], Solution],
        first: Callable[[Any, int], Any],
    ) -> Solution:
        """Return a solution of `count` pairs: the first of those found for more, or solved anew."""
        asked, solution = self._pairs.get(name, (0, None))
        if solution is None or asked < count or solution.status is not Status.SOLVED:
            solution = solve()
            self._pairs[name] = count, solution
        return replace(solution, value=first(solution.value, count))


def _first_modes(modes: Modes, count: int) -> Modes:
    return Modes(modes.values[:count], modes.vectors[:, :count])


class Reusing:
    """A machine whose fits look for results in a store before they compute them."""

    _store: Store | None = None

    def _take_store(self) -> Store:
        """Return the store that was left for this fit, or an empty one."""
        store, self._store = self._store or Store(), None
        return store
