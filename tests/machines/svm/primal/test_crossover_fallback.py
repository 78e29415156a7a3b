"""Descents after an interior point method that fell short: within budget and time only."""

import numpy as np
import pytest

from mercer import config, deadline
from mercer.gram import FactoredGram
from mercer.gram.policy import STORED_UNSEEN
from mercer.machines.svm import problem as svm
from mercer.machines.svm.descent import VIOLATION
from mercer.machines.svm.primal import crossover, interior_point
from mercer.machines.svm.primal.screening import FeatureProgramme
from mercer.solvers import InteriorPoint, Status, Watch


def problem(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    return svm.svc(FactoredGram(lambda Z: Z, X), y, 1.0)


@pytest.mark.parametrize(
    ("rows", "memory", "seconds", "stored"),
    [
        (300, None, None, True),
        (300, None, 60.0, True),
        (300, "50 kB", None, False),
        (300, None, 1e-5, False),
        (STORED_UNSEEN + 1, None, None, False),
    ],
)
def test_the_matrix_is_written_only_where_budget_and_time_allow(
    rows, memory, seconds, stored, monkeypatch
):
    written, dense = [], FactoredGram.dense
    monkeypatch.setattr(FactoredGram, "dense", lambda gram: written.append(gram) or dense(gram))
    asked = problem(rows)
    b = asked.feasible_near(np.zeros(rows))
    with config(memory=memory), deadline.within(seconds, "test"):
        found, _ = crossover.fall_back(
            asked, FeatureProgramme.of(asked), b, VIOLATION, 1e-3, Watch(), most=5
        )
    assert bool(written) is stored
    assert (asked.lower <= found).all()
    assert (found <= asked.upper).all()


def test_an_answer_outlives_a_fallback_without_time(monkeypatch):
    def late(*_):
        raise deadline.TimeLimitError("no time")

    asked = problem(200)
    known = InteriorPoint().run(asked, Watch())
    monkeypatch.setattr(interior_point, "meets", lambda *_: Status.INACCURATE)
    monkeypatch.setattr(interior_point, "fall_back", late)
    found = InteriorPoint().run(asked, Watch())
    assert found.status is Status.TIME_LIMIT
    assert np.array_equal(found.value.coef, known.value.coef)


@pytest.mark.parametrize("rows", [100, 4000])
def test_descents_that_gain_nothing_end(rows, monkeypatch):
    """About a second of work, whatever the tolerance: never a million steps on many rows."""
    monkeypatch.setattr(crossover, "_ENTRIES", 1e5)
    asked = problem(rows)
    b = asked.feasible_near(np.zeros(rows))
    P = FeatureProgramme.of(asked)
    _, steps = crossover.fall_back(asked, P, b, VIOLATION, 1e-300, Watch())
    assert steps <= 1e5 / rows


def test_steps_on_a_matrix_of_few_rows_are_counted(monkeypatch):
    """A second's worth of entries of six rows would be 10^8 steps, which take minutes."""
    monkeypatch.setattr(crossover, "_STEPS", 40)
    asked = problem(6)
    b = asked.feasible_near(np.zeros(6))
    _, steps = crossover.fall_back(asked, FeatureProgramme.of(asked), b, VIOLATION, 0.0, Watch())
    assert 0 < steps <= 40
