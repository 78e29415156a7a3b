"""Box programmes on a K that is not stored: pair steps inside small sets of rows, chosen anew.

Again and again rows that violate the conditions, and those that are still free, form a set W. K
between them is computed and the programme in these variables solved, the others held. Then F is
corrected for what moved, by products that store nothing. The set must hold all free variables with
room to spare, or it crawls.

At first all this is done on a sample of the rows, then on those near to deciding, and F of all rows
is looked at only when these are settled. Where many rows turn out to matter, clusters of them that
are solved apart are the start (`divide`), if there are any and all sums are zero: nu machines, one
class and balls start elsewhere. Else K of all rows is stored if it fits the memory budget, and pair
steps go on there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.gram import CachedGram, LazyGram
from mercer.problems import BoxQP, Many
from mercer.solvers.base import Solution, Solver, Status, Watch
from mercer.solvers.margin.descent import VIOLATION, Criterion, begin
from mercer.solvers.margin.set_engine import Sets
from mercer.solvers.margin.smo import (
    answer,
    conclude,
    limit_of,
    programmes,
    refusal,
    resting,
    starts,
)

# Sets for each row, when nobody says: five times as many as the slowest that ended took. One is
# worth a thousand pair steps in time, so that a limit of those alone would take hours to reach.
_SETS_PER_ROW, _LEAST_SETS = 20, 1000


@dataclass(frozen=True)
class WorkingSets(Solver):
    """Pair steps inside sets of rows, for a K too large to store or of which few rows matter.

    Parameters
    ----------
    tol : float
        What the criterion may be at the end.
    max_iter : int or None
        Largest number of pair steps of a programme; None takes max(10^7, 100 n), in at most
        max(10^3, 20 n) sets.
    criterion : Violation or Gap
        What `tol` speaks of.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    criterion: Criterion = VIOLATION

    answers = (BoxQP, Many)

    def _obstacle(self, problem: BoxQP | Many) -> str | None:
        """Take feasible box programmes on one Gram that can be evaluated in parts."""
        refused = refusal("WorkingSets", problem)
        if refused is not None:
            return refused
        if not isinstance(programmes(problem)[0].unwrapped.base, LazyGram | CachedGram):
            return (
                "WorkingSets is for a Gram that is not stored; use SMO(), and store a Gram of your "
                "own for it: PrecomputedGram(gram.dense())"
            )
        return None

    def run(self, problem: Any, watch: Watch, start: Any = None) -> Solution:
        """Choose, solve and correct sets until the tolerance, a limit or the callback ends it."""
        problems, begins = programmes(problem), starts(problem, start)
        if watch.tick(0, np.inf):
            parts = [resting(p, b) for p, b in zip(problems, begins, strict=True)]
            return conclude(self, problem, parts, [Status.STOPPED] * len(parts), watch)
        base: Any = problems[0].unwrapped.base
        engine = Sets(base.source, watch, self.max_iter or limit_of(problems))
        if self.max_iter is None:
            engine.most = max(_LEAST_SETS, _SETS_PER_ROW * base.source.n)
        parts = [begin(engine, p, b) for p, b in zip(problems, begins, strict=True)]
        ends = answer(engine, parts, self.criterion, self.tol)
        return conclude(self, problem, parts, ends, watch, engine.crawled(parts, ends))
