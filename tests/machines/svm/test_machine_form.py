"""What programmes are like is told before K is made, so that a card can get ready for them."""

import numpy as np
import pytest

import mercer
from mercer.backends.box_programs import Form
from mercer.machines.svm import machine as margin_machine
from mercer.problems import Many

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 2))
LABELS = (X[:, 0] > -0.3).astype(int) + (X[:, 1] > 0.4)
MACHINES = [
    (mercer.SVC(), LABELS > 0),
    (mercer.SVC(slack="l2"), LABELS > 0),
    (mercer.SVC(nu=0.2), LABELS > 0),
    (mercer.SVC(), LABELS),
    (mercer.SVC(multiclass="ovr", slack="l2"), LABELS),
    (mercer.SVC(nu=0.1), LABELS),
    (mercer.SVR(), X[:, 0]),
    (mercer.SVR(epsilon=0.0, tube="l2"), X[:, 0]),
]


@pytest.mark.parametrize(("machine", "y"), MACHINES)
def test_the_form_is_that_of_the_programmes(machine, y, monkeypatch):
    told, asked = [], []

    def gram(*arguments, form, make=margin_machine.make_gram, **options):
        told.append(form)
        return make(*arguments, form=form, **options)

    def solve(problem, *arguments, answer=margin_machine.solve, **options):
        asked.append(problem)
        return answer(problem, *arguments, **options)

    monkeypatch.setattr(margin_machine, "make_gram", gram)
    monkeypatch.setattr(margin_machine, "solve", solve)
    machine.fit(X, y)
    (problem,) = asked
    parts = problem.problems if isinstance(problem, Many) else (problem,)
    sums = {1 if part.group is None else len(part.totals) for part in parts}
    tube = any(np.any(part.epsilon) for part in parts)
    shifted = any(part.unwrapped.shift is not None for part in parts)
    largest = max(len(part.linear) for part in parts)
    assert told == [Form(largest, *sums, tube, shifted)]


def test_machines_that_do_not_know_say_nothing():
    assert mercer.SVR(nu=0.5)._form(10) is None
    assert mercer.OneClassSVM()._form(10) is None
