"""Which machine and which kernels are compared for a table whose columns have become numbers.

The preparation looks at no target, so it is learnt once from all training rows; the folds of the
comparison then share one kernel matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data import Kind, TablePreparation
from mercer.kernels import Kernel, resolve
from mercer.machines import SVC, SVR, KernelRidge
from mercer.points import is_sparse
from mercer.selection.choosing.candidates import Candidate, families
from mercer.selection.choosing.table_candidates import sums_over_kinds
from mercer.selection.default_grids import known_axes

# Where a ridge regression factors a matrix of all rows, a support vector regression needs those
# outside its tube: at 16500 rows 1 s of processor time against 43 s, with R^2 0.836 against 0.840
# (California housing).
MOST_RIDGE_ROWS = 2000
_COSTS = (0.1, 1.0, 10.0, 100.0)  # of the regression, in units of the targets' spread
_TUBES = (0.05, 0.2)
# Plain kernels at C = 1000 are slow: without it a fit to 2532 rows of four classes took 20 s of
# processor time in place of 33 s, with the same choice (the poll in Chile of R's carData).
_MANY_ROWS = 1000
_LARGEST_COST = 100.0


@dataclass(frozen=True, eq=False)
class PreparedCandidate(Candidate):
    """A kernel family for rows that are prepared."""

    def pipeline(self, machine: Any) -> Any:
        """Return the machine itself."""
        return machine

    def grid(self, axes: dict[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return the points: every kernel with every setting of the machine."""
        return {**({"kernel": self.kernels} if self.kernels else {}), **axes}


def default_machine(task: str, rows: int) -> tuple[Any, str]:
    """Return the machine for a task, and why."""
    if task == "classification":
        return SVC(), "The machine is a support vector classifier (SVC)."
    if rows <= MOST_RIDGE_ROWS:
        return KernelRidge(), "The machine is a kernel ridge regression (KernelRidge)."
    return SVR(), (
        f"The machine is a support vector regression (SVR): with more than {MOST_RIDGE_ROWS} rows "
        "it is much faster than KernelRidge, and about as exact; machine=KernelRidge() asks for "
        "that."
    )


def settings_of(machine: Any, y: Array) -> dict[str, Sequence[Any]]:
    """Return what is tuned beside the kernel."""
    if isinstance(machine, SVR) and machine.nu is None:
        spread = float(np.std(y)) or 1.0
        return {
            "C": tuple(spread * cost for cost in _COSTS),
            "epsilon": tuple(spread * tube for tube in _TUBES),
        }
    rows = np.arange(len(y), dtype=np.float64)[:, None]
    axes: dict[str, Sequence[Any]] = dict(known_axes(machine, rows, y))
    axes.pop("kernel", None)
    if isinstance(machine, SVC) and "C" in axes and len(y) > _MANY_ROWS:
        axes["C"] = tuple(cost for cost in axes["C"] if cost <= _LARGEST_COST)
    return axes


def candidates_of(
    rows: Any, preparation: TablePreparation, kernels: Sequence[Any] | None
) -> list[Candidate]:
    """Return kernel families, from plain to rich.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Prepared training rows.
    preparation : TablePreparation
        Which knows the kinds of its columns.
    kernels : sequence of str or Kernel, or None
        Names of families, kernels, or texts of kernels; None takes all families.

    Returns
    -------
    list of Candidate
        At least one.
    """
    texts = any(block.kind is Kind.TEXT for block in preparation.blocks_)
    known = [
        PreparedCandidate(one.name, (), one.kernels)
        for one in families((), rows, dense=not texts and not is_sparse(rows))
    ]
    if len(preparation.blocks_) > 1:
        summed = sums_over_kinds(rows, preparation.blocks_)
        known.append(PreparedCandidate("sum over kinds of columns", (), summed))
    if kernels is None:
        return list(known)
    by_name = {one.name: one for one in known}
    asked = [kernels] if isinstance(kernels, str | Kernel) else list(kernels)
    found: list[Candidate] = []
    for one in asked:
        if isinstance(one, str) and one in by_name:
            found.append(by_name[one])
        else:
            found.append(PreparedCandidate(str(one), (), (_kernel(one, rows, by_name),)))
    if not found:
        raise ValueError("fit: kernels=[] names nothing to compare; leave it out for all families")
    return found


def _kernel(one: Any, rows: Any, known: dict[str, Any]) -> Kernel:
    try:
        found = resolve(one, rows)
        found(rows[:1], rows[:1])  # a kernel of other rows is refused before any fit
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"fit: kernels: {one!r} is neither a family ({', '.join(known)}) nor a kernel on these "
            f"rows ({error})"
        ) from error
    return found


def prepared_columns(preparation: TablePreparation) -> dict[str, list[int]]:
    """Return which columns of the prepared rows each column of the table became.

    Examples
    --------
    >>> from mercer.data import Table, TablePreparation
    >>> table = Table.of({"age": [20, None, 40], "town": ["Ulm", "Bern", "Ulm"]})
    >>> prepared_columns(TablePreparation().fit(table))
    {'age': [0, 1], 'town': [2, 3]}
    """
    plan, place = preparation.plan_, 0
    gaps = set(plan["gaps"])
    found: dict[str, list[int]] = {}

    def take(name: str, width: int) -> None:
        nonlocal place
        found.setdefault(name, []).extend(range(place, place + width))
        place += width

    for group, width in ((plan["numbers"], lambda _: 1), (plan["dates"], _date_width(plan))):
        for name in group:
            take(name, width(name))
        for name in group:
            take(name, int(name in gaps))
    for name, levels in plan["levels"].items():
        take(name, len(levels) + (name in gaps))
    for name, words in plan["words"].items():
        take(name, len(words))
    for name in plan["sparse"]:
        take(name, 1)
    return found


def _date_width(plan: dict[str, Any]) -> Any:
    return lambda name: 1 + 2 * len(plan["cycles"][name])
