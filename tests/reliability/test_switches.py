"""Every estimator on both sides of every switch: SOLVED is certified, and files hold the answer.

Thresholds are lowered, and solvers chosen by hand, so that small fits take the ways of large ones.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from files.fitted import MACHINES, Data, rows_for
from files.same import answers, differences

import mercer
from mercer import solvers
from mercer.gram import policy
from mercer.resources import MemoryBudgetError, config
from mercer.solvers import Solver, Status, dispatch

pytestmark = pytest.mark.numerics

DATA = Data(130, 3, 3)
LOW = 8

# thresholds of `policy`: those of numbers of rows, features and entries
THRESHOLDS = (
    "FLOAT64_ROWS", "SHARED_FLOAT64_ROWS", "STORED_UNSEEN", "LARGEST_STORED", "SQUARED", "NARROW",
    "NARROW_ROWS", "SHARED_NARROW_ROWS", "DECOMPOSED_ROWS", "WRITTEN_OUT", "LAPACK_ROWS",
    "PROVEN_ROWS", "LARGEST_UNASKED", "FREE_ROWS",
)  # fmt: skip
OTHERS = ("ROWS_PER_FEATURE", "SHARED_ROWS_PER_FEATURE", "NONZERO_COST", "PANEL_COLUMNS")  # rates

SOLVERS = [
    kind
    for kind in (getattr(solvers, name) for name in solvers.__all__)
    if isinstance(kind, type) and issubclass(kind, Solver) and getattr(kind, "answers", None)
    if kind is not solvers.Each  # which has another solver do its work
]


def test_every_threshold_is_lowered():
    whole = {name for name, value in vars(policy).items() if name.isupper() and type(value) is int}
    assert whole == {*THRESHOLDS, *OTHERS}


@contextmanager
def lowered(names: tuple[str, ...], monkeypatch: Any) -> Iterator[None]:
    """Lower thresholds wherever they were imported."""
    with monkeypatch.context() as patch:
        for module in [m for name, m in sys.modules.items() if name.startswith("mercer")]:
            for name in names:
                if name in vars(module):
                    patch.setattr(module, name, LOW)
        yield


def judge(name: str, machine: Any, path: Any) -> None:
    """Compare status and certificate, and the machine with what its file holds."""
    solution = getattr(machine, "solution_", None)
    if getattr(solution, "status", None) is Status.SOLVED and hasattr(machine, "certificate_"):
        assert machine.certificate_.ok, f"{solution}\n{machine.certificate_}"
    mercer.save(machine, path)
    loaded, copied = mercer.load(path), pickle.loads(pickle.dumps(machine))
    assert not differences(copied, loaded, name)
    rows = rows_for(name, DATA)
    assert not differences(answers(copied, rows), answers(loaded, rows), name)


@pytest.mark.parametrize("name", MACHINES)
def test_beyond_every_threshold(name, tmp_path, monkeypatch):
    judge(name, MACHINES[name](DATA).fit(), tmp_path / "near.mercer")
    with lowered(THRESHOLDS, monkeypatch):
        judge(name, MACHINES[name](DATA).fit(), tmp_path / "beyond.mercer")


@pytest.mark.parametrize("name", MACHINES)
def test_in_little_memory(name, tmp_path):
    with config(memory="100 kB"):
        try:
            machine = MACHINES[name](DATA).fit()
        except MemoryBudgetError:
            return
    judge(name, machine, tmp_path / "little.mercer")


@pytest.mark.parametrize("name", MACHINES)
def test_with_every_solver(name, tmp_path, monkeypatch):
    plain, met, forced, used = dispatch.choose, set(), None, False

    def choose(problem: Any) -> Solver:
        nonlocal used
        met.add(type(problem))
        if forced is not None and forced.refuses(problem) is None:
            used = True
            return forced
        return plain(problem)

    for module in [m for key, m in sys.modules.items() if key.startswith("mercer")]:
        if vars(module).get("choose") is plain:
            monkeypatch.setattr(module, "choose", choose)
    MACHINES[name](DATA).fit()
    asked = tuple(met)
    for kind in SOLVERS:
        answered = kind.answers if isinstance(kind.answers, tuple) else (kind.answers,)
        if not any(issubclass(problem, answered) for problem in asked):
            continue
        forced, used = kind(), False
        try:
            machine = MACHINES[name](DATA).fit()
        except dispatch.SolverError:
            assert used  # which has no answer, and says so
            continue
        judge(name, machine, tmp_path / f"{kind.__name__}.mercer")
