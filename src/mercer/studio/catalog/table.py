"""All machines of the studio, and all tasks."""

from __future__ import annotations

from mercer.studio.catalog.classifiers import CLASSIFIERS
from mercer.studio.catalog.entry import Entry
from mercer.studio.catalog.regressors import REGRESSORS
from mercer.studio.catalog.unlabelled import UNLABELLED
from mercer.studio.refusal import RefusalError

TASKS = {
    "classes": "points of several classes",
    "regression": "a number y at each x: a curve",
    "targets": "a number at points of the plane",
    "unlabelled": "points alone: clusters, novelty, density, components",
}

MACHINES: dict[str, Entry] = {
    entry.name: entry for entry in (*CLASSIFIERS, *REGRESSORS, *UNLABELLED)
}


def entry_of(name: object, task: str) -> Entry:
    """Return a machine of the studio by its name; the first of the task where there is none.

    Examples
    --------
    >>> entry_of("SVC", "classes").title
    'Support vector machine'
    """
    if name is None:
        return next(entry for entry in MACHINES.values() if task in entry.tasks)
    entry = MACHINES.get(name) if isinstance(name, str) else None
    if entry is None:
        raise RefusalError(f"the studio has no machine {str(name)[:40]!r}", parameter="machine")
    if task not in entry.tasks:
        raise RefusalError(
            f"{name} is not for {TASKS[task]}; take one of "
            + ", ".join(one.name for one in MACHINES.values() if task in one.tasks),
            parameter="machine",
        )
    return entry
