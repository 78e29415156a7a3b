"""Machines on features of more rows than are looked at one by one: samples first, all rows last."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, KMeans, OneClassSVM
from mercer.gram import FactoredGram
from mercer.machines.clustering import seeding
from mercer.machines.svm import problem as svm
from mercer.machines.svm.primal import interior_point
from mercer.machines.svm.primal.interior_point import effective_rows
from mercer.machines.svm.primal.screening import FeatureProgramme
from mercer.problems import Partition
from mercer.solvers.base import Status
from mercer.solvers.linear_algebra import weighted_gram


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 6))
    return X, (X @ rng.standard_normal(6) + rng.standard_normal(len(X)) > 0).astype(int)


@pytest.mark.parametrize("machine", [SVC("linear"), SVC("linear", slack="l2"), SVR("linear")])
def test_programmes_of_few_rows_within_one_another_have_one_answer(rows, machine, monkeypatch):
    """Rows far from a corner are left out of ever smaller programmes, which answer for all."""
    X, y = rows
    every = _values(clone(machine).fit(X, y), X)
    monkeypatch.setattr(interior_point, "_FEWEST", 100)
    monkeypatch.setattr(interior_point, "_FEW_PER_UNKNOWN", 2)
    sizes: list[int] = []
    follow = interior_point.barrier

    def counted(part, *given):
        sizes.append(len(part.linear))
        return follow(part, *given)

    monkeypatch.setattr(interior_point, "barrier", counted)
    nested = clone(machine).fit(X, y)
    assert nested.certificate_.ok
    assert max(sizes) < len(X) // 20
    assert np.allclose(_values(nested, X), every, atol=1e-5)


def _values(machine, X):
    return machine.predict(X) if isinstance(machine, SVR) else machine.decision_function(X)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_a_classifier_of_many_rows_is_the_one_of_all_of_them(rows, slack, scale, monkeypatch):
    X, y = rows
    X, C = X * scale, 1.0 / scale**2
    found = SVC("linear", C=C, slack=slack).fit(X, y)
    monkeypatch.setattr(interior_point, "can_round", lambda P: False)
    direct = SVC("linear", C=C, slack=slack).fit(X, y)
    assert found.solution_.status is direct.solution_.status is Status.SOLVED
    assert found.certificate_.ok
    np.testing.assert_allclose(
        found.decision_function(X), direct.decision_function(X), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("machine", [SVR("linear", epsilon=0.2), OneClassSVM("linear", nu=0.3)])
def test_tubes_and_one_class_of_many_rows_are_certified(rows, machine):
    X, y = rows
    machine.fit(X) if isinstance(machine, OneClassSVM) else machine.fit(X, X[:, 0] + y)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok


def test_weights_are_repetition_on_many_rows(rows):
    X, y = rows
    times = np.where(np.arange(len(y)) % 3 == 0, 2, 1)
    weighted = SVC("linear").fit(X, y, sample_weight=times)
    repeated = SVC("linear").fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(
        weighted.decision_function(X[:50]), repeated.decision_function(X[:50]), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("heavy", [1e4, 1e12])
@pytest.mark.parametrize("machine", [SVC("linear"), SVR("linear", epsilon=0.0)])
def test_one_row_that_outweighs_all_others_costs_no_more_than_the_interior_point_method(
    rows, machine, heavy
):
    """Samples say nothing of such rows: all go to the interior point method at once."""
    X, y = np.round(rows[0], 1), rows[1]
    weights = np.where(np.arange(len(y)) == 7, heavy, 1.0)
    found = clone(machine).fit(X, y, sample_weight=weights)
    assert found.solution_.status is Status.SOLVED
    assert found.certificate_.ok
    assert found.solution_.iterations < 60


def test_effective_rows_of_even_and_uneven_weights(rows):
    X, y = rows
    sides = np.where(y > 0, 1.0, -1.0)
    weights = 10.0 ** np.random.default_rng(0).uniform(-8.0, 8.0, len(y))
    for build in (svm.svc, svm.svc_l2):
        even = FeatureProgramme.of(build(FactoredGram(lambda Z: Z, X), sides, np.ones(len(y))))
        uneven = FeatureProgramme.of(build(FactoredGram(lambda Z: Z, X), sides, weights))
        assert np.isclose(effective_rows(even), len(y))
        assert np.isclose(effective_rows(uneven), weights.sum() ** 2 / (weights**2).sum())


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e-8])
@pytest.mark.parametrize("machine", [SVC("linear"), SVR("linear", epsilon=0.0)])
def test_rows_too_short_to_matter_leave_the_constant_that_costs_least(rows, machine, scale):
    """Features do nothing within the box: what is left of the programme is its sum."""
    X, y = scale * rows[0], rows[1]
    found = clone(machine).fit(X, y)
    assert found.solution_.status is Status.SOLVED
    assert found.certificate_.ok
    assert found.solution_.iterations < 100
    assert np.ptp(_values(found, X)) < 1e-3


def test_sparse_columns_far_from_zero_end_soon_if_not_well(rows):
    """Kernels of 10^16 leave no digits to prove an answer by; no steps are wasted on that.

    Of dense rows the origin is moved (tests/machines/base/test_origin.py); sparse ones would be
    filled in by it.
    """
    with pytest.warns(ConvergenceWarning, match="Scale the features"):
        found = SVC("linear").fit(sparse.csr_array(rows[0] + 1e8), rows[1])
    assert found.solution_.status is Status.INACCURATE
    assert found.solution_.iterations < 1000


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_a_constant_column_changes_nothing(rows, constant):
    X, y = rows
    machine = SVC("linear").fit(np.column_stack([X, np.full(len(X), constant)]), y)
    plain = SVC("linear").fit(X, y)
    assert machine.solution_.status is Status.SOLVED
    assert (
        np.mean(
            machine.predict(np.column_stack([X, np.full(len(X), constant)])) == plain.predict(X)
        )
        > 0.999
    )


def test_a_limit_ends_a_search_of_many_rows_with_an_admissible_answer(rows):
    X, y = rows
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        machine = SVC("linear", max_iter=3).fit(X, y)
    assert machine.solution_.status is Status.ITERATION_LIMIT
    assert np.isfinite(machine.decision_function(X[:5])).all()


def test_starts_on_a_sample_end_as_low_as_on_all_rows(monkeypatch):
    rng = np.random.default_rng(1)
    centres = 6.0 * rng.standard_normal((5, 3))
    X = centres[rng.integers(0, 5, 6000)] + rng.standard_normal((6000, 3))
    whole = KMeans(5, kernel="linear", random_state=0).fit(X)
    monkeypatch.setattr(seeding, "_ROWS", 500)
    monkeypatch.setattr(seeding, "_ROWS_PER_CLUSTER", 10)
    asked = []
    is_sampled = seeding.is_sampled
    monkeypatch.setattr(
        "mercer.machines.clustering.lloyd.is_sampled",
        lambda p: asked.append(is_sampled(p)) or asked[-1],
    )
    sampled = KMeans(5, kernel="linear", random_state=0).fit(X)
    assert asked == [True]
    assert sampled.certificate_.ok
    np.testing.assert_allclose(sampled.inertia_, whole.inertia_, rtol=1e-6)


def test_a_sample_with_all_weight_on_one_row_gives_way_to_all_rows(monkeypatch):
    monkeypatch.setattr(seeding, "_ROWS", 50)
    monkeypatch.setattr(seeding, "_ROWS_PER_CLUSTER", 1)
    X = np.random.default_rng(2).standard_normal((2000, 2))
    weights = np.full(2000, 1e-12)
    weights[7] = 1.0
    machine = KMeans(4, kernel="linear", random_state=0).fit(X, sample_weight=weights)
    assert len(np.unique(machine.labels_)) == 4


def test_sums_of_features_are_those_of_the_indicator():
    rng = np.random.default_rng(3)
    F, labels, w = rng.standard_normal((60, 4)), rng.integers(0, 3, 60), rng.random(60) + 0.1
    problem = Partition(FactoredGram.of(lambda Z: Z, F), 3, w)
    Z = problem.indicator(labels)
    np.testing.assert_allclose(problem.feature_sums(labels), Z.T @ F)
    np.testing.assert_allclose(problem.within(labels), np.diag(Z.T @ F @ F.T @ Z))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_weighted_gram_of_weights_of_either_sign(sign):
    rng = np.random.default_rng(4)
    F, h = rng.standard_normal((700, 9)), sign * rng.random(700)
    np.testing.assert_allclose(weighted_gram(F, h), F.T @ (h[:, None] * F), rtol=1e-12, atol=1e-10)
