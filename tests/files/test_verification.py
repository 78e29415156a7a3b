"""A stored machine is judged by data: right ones pass, a wrong digit anywhere is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from files.fitted import MACHINES, SMALL, Made, Stream, fit

import mercer
from mercer.files import verify
from mercer.kernels import Gaussian
from mercer.solvers import SMO

DATA = SMALL
REFITTED = {"AxisAlignedRectangle", "BagOfWords", "LogShift"}  # nothing to certify


@pytest.mark.parametrize("name", MACHINES)
def test_what_was_saved_is_verified(name, tmp_path):
    case = MACHINES[name](DATA)
    if isinstance(case, Made):
        return
    mercer.save(fit(name, DATA), tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    if isinstance(case, Stream):
        with pytest.raises(ValueError, match=r"was fitted to a stream and its rows are gone"):
            verify(loaded, *case.data)
        return
    found = verify(loaded, *case.data)
    assert found.ok, str(found)
    assert (found.certificate is None) == (name in REFITTED)
    assert "all that is stored follows from" in found.statement


CHANGES = {
    "dual_coef_": lambda m: m.dual_coef_.__setitem__(0, m.dual_coef_[0] * (1 + 1e-6)),
    "support_vectors_": lambda m: m.support_vectors_.__setitem__((0, 0), 0.123),
    "_expansion.coef": lambda m: m._expansion.coef.__setitem__(0, m._expansion.coef[0] + 1e-7),
    "_expansion.points": lambda m: m._expansion.points.__setitem__((2, 1), 5.0),
    "_expansion.offset": lambda m: m._expansion.offset.__setitem__(0, 1.0),
    "intercept_": lambda m: setattr(m, "intercept_", m.intercept_ + 1e-6),
    "support_": lambda m: m.support_.__setitem__(0, m.support_[0] + 1),
    "kernel_": lambda m: setattr(m, "kernel_", Gaussian(1.0 + 1e-6)),
    "n_support_": lambda m: m.n_support_.__setitem__(0, 99),
    "classes_": lambda m: m.classes_.__setitem__(0, -7),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_wrong_digit_is_seen(name):
    machine = mercer.SVC(Gaussian(1.0)).fit(DATA.X, DATA.y)
    machine = _apart(machine)
    CHANGES[name](machine)
    found = verify(machine, DATA.X, DATA.y)
    assert not found.ok
    assert name in found.differences


def _apart(machine):
    """Return the machine with every array its own, as they are after `load`."""
    expansion = machine._expansion
    machine._expansion = replace(expansion, points=expansion.points.copy())
    machine.support_vectors_ = machine.support_vectors_.copy()
    machine.dual_coef_ = machine.dual_coef_.copy()
    return machine


@pytest.mark.parametrize("shift", [0.5, 2.0, -1.0])
def test_an_answer_that_is_not_optimal_is_seen_although_all_forms_agree(shift):
    machine = mercer.SVC(Gaussian(1.0)).fit(DATA.X, DATA.y)
    dual = machine.solution_.value
    other = replace(dual, coef=dual.coef * shift)
    machine.solution_ = replace(machine.solution_, value=other)
    machine.dual_coef_ = machine.dual_coef_ * shift
    machine._expansion = replace(machine._expansion, coef=machine._expansion.coef * shift)
    found = verify(machine, DATA.X, DATA.y)
    assert not found.certificate.ok
    assert "not certified" in found.statement


@pytest.mark.parametrize(
    "name", ["SVC", "SVR", "KernelRidge", "KernelRidge linear", "PCA", "KMeans", "NearestMean",
             "GaussianMixture", "LogisticRegression", "CCA", "compat.SVC", "Pipeline"],
)  # fmt: skip
def test_a_wrong_digit_in_the_data_is_seen(name):
    case = MACHINES[name](DATA)
    machine = case.fit()
    row = int(machine.support_[0]) if hasattr(machine, "support_") else 3
    X = case.data[0].copy()
    X[row, 0] += 0.3
    assert not verify(machine, X, *case.data[1:]).ok


def test_wrong_labels_and_other_weights_are_seen():
    machine = mercer.KernelRidge(0.1, Gaussian(1.0)).fit(DATA.X, DATA.targets)
    wrong = DATA.targets.copy()
    wrong[7] += 1e-3
    assert not verify(machine, DATA.X, wrong).certificate.ok
    assert not verify(machine, DATA.X, DATA.targets, DATA.weights + 1).ok


def test_a_tolerance_can_be_asked_for():
    machine = mercer.SVC(Gaussian(1.0)).fit(DATA.X, DATA.y)
    found = verify(machine, DATA.X, DATA.y, tol=1e-15)
    assert found.tol == 1e-15
    assert not found.ok
    with pytest.raises(ValueError, match="NearestMean has no parameter tol"):
        verify(mercer.NearestMean().fit(DATA.X, DATA.y), DATA.X, DATA.y, tol=0.1)


def test_nothing_is_solved(monkeypatch):
    machine = mercer.SVC(Gaussian(1.0)).fit(DATA.X, DATA.y)
    monkeypatch.setattr(SMO, "run", lambda *asked: pytest.fail("solved"))
    assert verify(machine, DATA.X, DATA.y).ok


def test_models_of_tables_say_what_to_pass():
    with pytest.raises(ValueError, match=r"verify\(model.machine"):
        verify(object(), DATA.X)


def test_it_prints_what_was_found():
    machine = mercer.SVC(Gaussian(1.0)).fit(DATA.X, DATA.y)
    assert str(verify(machine, DATA.X, DATA.y)).startswith("verified: ")


@pytest.mark.parametrize("name", ["compat.GaussianNB", "compat.GaussianMixture"])
def test_what_was_fitted_again_is_said(name):
    case = MACHINES[name](DATA)
    found = verify(case.fit(), *case.data)
    assert found.ok and "was fitted again, since" in found.statement
    assert "follows from this fit" in found.statement


def test_what_was_judged_as_it_is_stored_was_not_fitted_again():
    machine = mercer.SVC(Gaussian(1.0)).fit(DATA.X, DATA.y)
    assert "fitted again" not in verify(machine, DATA.X, DATA.y).statement


SIZED = ("KernelRidge linear", "NaiveBayes", "MaximumEntropy", "SVC", "GaussianMixture",
         "MultinomialMixture", "MultipleKernel")  # fmt: skip


@pytest.mark.parametrize("name", SIZED)
def test_data_of_another_size(name):
    case = MACHINES[name](DATA)
    machine, (X, *rest) = case.fit(), case.data
    n = X.shape[0]
    few = [one[:-5] if getattr(one, "shape", (0,))[0] == n else one for one in rest]
    assert not verify(machine, X[:-5], *few).ok
    if name != "MaximumEntropy":  # whose columns are checked against its targets first
        with pytest.raises(ValueError, match=r"columns, and .* was fitted to"):
            verify(machine, X[:, :-1], *rest)
