"""Regularization paths of box programmes: every setting is what a fit of its own would be."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import svm as sklearn_svm

from mercer import certify, solve
from mercer.gram import Need, PrecomputedGram, make_gram
from mercer.gram.transformed import restricted
from mercer.kernels import Gaussian, Linear
from mercer.machines.svm import problem as svm
from mercer.machines.svm.path import warm_starts
from mercer.problems import MarginPath, PathDuals, PathSetting
from mercer.solvers import SMO, Each, SMOPath, SolverError, Status
from mercer.solvers.dispatch import choose

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
SIGNS = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=120) > 0, 1.0, -1.0)
T = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=120)
ONES = np.ones(120)
GRAM = make_gram(Gaussian(1.0), X, Need.BOX)
COSTS = (10.0, 0.1, 1.0, 1000.0)


def paths():
    """Return for every machine: a path, and what writes its programme at each setting."""
    yield (
        "svc",
        MarginPath((svm.svc(GRAM, SIGNS, ONES),), tuple(PathSetting(bound=C) for C in COSTS)),
        [svm.svc(GRAM, SIGNS, C * ONES) for C in COSTS],
    )
    yield (
        "svc l2",
        MarginPath(
            (svm.svc_l2(GRAM, SIGNS, ONES),), tuple(PathSetting(shift=1 / C) for C in COSTS)
        ),
        [svm.svc_l2(GRAM, SIGNS, C * ONES) for C in COSTS],
    )
    tubes = [(C, eps) for C in COSTS for eps in (0.3, 0.0, 0.05)]
    yield (
        "svr",
        MarginPath(
            (svm.svr(GRAM, T, ONES, 1.0),),
            tuple(PathSetting(bound=C, epsilon=eps) for C, eps in tubes),
        ),
        [svm.svr(GRAM, T, C * ONES, eps) for C, eps in tubes],
    )
    shares = (0.2, 0.5, 0.35)
    yield (
        "nu svc",
        MarginPath(
            (svm.nu_svc(GRAM, SIGNS, ONES, 0.2),),
            tuple(PathSetting(total=nu / 0.2) for nu in shares),
        ),
        [svm.nu_svc(GRAM, SIGNS, ONES, nu) for nu in shares],
    )
    both = [(C, nu) for C in (0.5, 20.0) for nu in shares]
    yield (
        "nu svr",
        MarginPath(
            (svm.nu_svr(GRAM, T, ONES, 0.2),),
            tuple(PathSetting(bound=C, total=C * nu / 0.2) for C, nu in both),
        ),
        [svm.nu_svr(GRAM, T, C * ONES, nu) for C, nu in both],
    )
    yield (
        "one class",
        MarginPath(
            (svm.one_class(GRAM, ONES, 0.2),),
            tuple(PathSetting(total=nu / 0.2) for nu in shares),
        ),
        [svm.one_class(GRAM, ONES, nu) for nu in shares],
    )


PATHS = {name: (path, alone) for name, path, alone in paths()}


@pytest.mark.parametrize("name", PATHS)
def test_every_setting_is_what_a_fit_of_its_own_gives(name):
    path, alone = PATHS[name]
    path = replace(path, rows=np.arange(0, 120, 7))
    solution = solve(path, SMOPath(1e-7))
    assert solution.status is Status.SOLVED and solution.value.solved.all()
    for s, problem in enumerate(alone):
        (found,) = solution.value.at(s).parts
        expected = solve(problem, SMO(1e-7)).value
        f = np.asarray(
            GRAM.dense()
            @ (found.coef[:120] + found.coef[120:] if len(found.coef) > 120 else found.coef)
        )
        g = np.asarray(
            GRAM.dense()
            @ (
                expected.coef[:120] + expected.coef[120:]
                if len(found.coef) > 120
                else expected.coef
            )
        )
        np.testing.assert_allclose(f, g, atol=2e-5)
        np.testing.assert_allclose(found.intercept, expected.intercept, atol=2e-5)
        np.testing.assert_allclose(solution.value.values[s, 0], f[path.rows], atol=1e-9)
        assert certify(problem, found).ok  # a dual of the path is one of the programme itself


@pytest.mark.parametrize("name", PATHS)
def test_the_certificate_judges_every_setting(name):
    path, alone = PATHS[name]
    path = replace(path, rows=np.arange(5))
    answer = solve(path).value
    judged = certify(path, answer)
    assert judged.ok, judged
    assert len(judged.quantities.violations) == len(alone) == judged.quantities.settings
    moved = answer.coef[0].copy()
    moved[1] *= 0.5  # one setting is spoilt
    spoilt = certify(path, replace(answer, coef=(moved,)))
    assert not spoilt.ok and spoilt.quantities.worst == 1
    wrong_values = certify(path, replace(answer, values=answer.values + 0.01))
    assert not wrong_values.ok and wrong_values.quantities.value_error == pytest.approx(0.01, 1e-3)


def test_objectives_are_those_of_scikit_learn():
    path, _ = PATHS["svc"]
    answer, K = solve(path, SMOPath(1e-6)).value, GRAM.dense()
    for s, C in enumerate(COSTS):
        other = sklearn_svm.SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, SIGNS)
        b = np.zeros(120)
        b[other.support_] = other.dual_coef_[0]
        ours = answer.coef[0][s]
        value = [SIGNS @ one - 0.5 * one @ K @ one for one in (ours, b)]
        assert value[0] == pytest.approx(value[1], rel=1e-6)


def test_pairs_of_classes_share_one_path():
    rows = [np.arange(0, 80), np.arange(40, 120)]
    problems = tuple(
        svm.svc(restricted(GRAM, index), SIGNS[index], np.ones(len(index))) for index in rows
    )
    path = MarginPath(problems, tuple(PathSetting(bound=C) for C in COSTS), np.arange(10))
    solution = solve(path, SMOPath(1e-6))
    assert solution.value.values.shape == (4, 2, 10) and certify(path, solution.value).ok
    for k, index in enumerate(rows):
        alone = solve(svm.svc(restricted(GRAM, index), SIGNS[index], 10.0 * np.ones(80)), SMO(1e-6))
        np.testing.assert_allclose(
            solution.value.values[0, k], GRAM.dense()[:10][:, index] @ alone.value.coef, atol=1e-4
        )


def test_a_float32_matrix_gives_answers_right_in_float64():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(700, 4))
    rows[:, -1] = (rng.random(700) < 0.02) * 30.0
    signs = np.where(rows[:, 0] * rows[:, 1] + rng.normal(size=700) > 0, 1.0, -1.0)
    gram = make_gram(Gaussian(3.0), rows, Need.BOX, dtype=np.float32)
    path = MarginPath(
        (svm.svc(gram, signs, np.ones(700)),),
        tuple(PathSetting(bound=C) for C in (1.0, 100.0, 3000.0)),
        np.arange(50),
    )
    matrix = Gaussian(3.0)(rows)
    for copy in (None, lambda work: matrix):
        solution = solve(path, SMOPath(float64=copy))
        assert solution.status.ok
        judged = certify(path, solution.value)
        assert judged.quantities.violation <= 1.2e-3 and judged.quantities.value_error < 1e-3


@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_the_tolerance_is_in_units_of_the_programme(scale):
    """Targets of a thousandth, and borders at a thousandth, are fitted as well as others."""
    gram = make_gram(scale * Gaussian(1.0), X, Need.BOX)
    tube = MarginPath((svm.svr(GRAM, scale * T, ONES, 1.0),), (PathSetting(0.1, 0.05 * scale),))
    inside = MarginPath((svm.one_class(gram, ONES, 0.1),), (PathSetting(), PathSetting(total=3.0)))
    for path in (tube, inside):
        assert certify(path, solve(path).value).ok


def test_grams_that_are_not_stored_are_answered_setting_by_setting():
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    path = MarginPath(
        (svm.svc(gram, SIGNS, ONES),), tuple(PathSetting(bound=C) for C in (1.0, 0.1)), np.arange(9)
    )
    assert isinstance(choose(path), Each)
    solution = solve(path)
    assert solution.status.ok and certify(path, solution.value).ok


def test_a_hard_margin_has_no_factor_and_is_answered_alone():
    path = MarginPath((svm.svc(GRAM, SIGNS, np.full(120, np.inf)),), (PathSetting(),))
    assert "Each(SMO())" in (SMOPath().refuses(path) or "")
    assert solve(path).value.solved.all()


def test_warm_starts_go_up_along_C_and_from_wide_tubes_to_narrow_ones():
    programme = svm.svr(GRAM, T, ONES, 1.0)
    settings = tuple(PathSetting(C, e) for e in (0.1, 0.5) for C in (10.0, 1.0, 1.0))
    ordered, starts, place = warm_starts(MarginPath((programme,), settings))
    found = [(s.epsilon, s.bound) for s in ordered]
    assert found == [(0.5, 1.0), (0.5, 10.0), (0.1, 1.0), (0.1, 10.0)]
    assert starts == (-1, 0, 0, 2) and place.tolist() == [3, 2, 2, 1, 0, 0]


def test_a_far_larger_C_starts_anew():
    path = MarginPath(
        (svm.svc(GRAM, SIGNS, ONES),), tuple(PathSetting(C) for C in (1.0, 20.0, 1e4))
    )
    assert warm_starts(path)[1] == (-1, 0, -1)


def test_one_share_of_many_costs_is_one_run():
    """C nu / base divided by C is nu / base but for rounding."""
    settings = tuple(PathSetting(bound=C, total=C * 0.3 / 0.1) for C in (0.1, 0.7, 3.3, 11.1))
    path = MarginPath((svm.nu_svr(GRAM, T, ONES, 0.1),), settings)
    assert warm_starts(path)[1] == (-1, 0, 1, 2)


def test_what_makes_no_sense_is_refused_by_its_place():
    programme = svm.nu_svc(GRAM, SIGNS, ONES, 0.5)
    good = PathSetting()
    for settings, rows, words in (
        ((), None, "no setting"),
        ((good, PathSetting(bound=0.0)), None, r"settings\[1\]"),
        ((good, PathSetting(total=9.0)), None, r"settings\[1\] is infeasible"),
        ((good,), np.array([120]), "rows must be numbers from 0 to 119"),
    ):
        with pytest.raises(SolverError, match=words):
            solve(MarginPath((programme,), settings, rows))
    other = svm.svc(make_gram(Gaussian(2.0), X, Need.BOX), SIGNS, ONES)
    with pytest.raises(SolverError, match="share a Gram"):
        solve(MarginPath((programme, other), (good,)))


def test_a_path_can_be_stopped_and_says_so():
    path, _ = PATHS["svc"]
    with pytest.warns(UserWarning, match="callback"):
        solution = solve(path, SMOPath(1e-9), callback=lambda _: True)
    assert solution.status is Status.STOPPED and not solution.value.solved.any()


def test_steps_that_ran_out_leave_settings_unsolved():
    path, _ = PATHS["svc"]
    with pytest.warns(UserWarning, match="of 4 settings"):
        solution = solve(path, SMOPath(1e-9, max_iter=3))
    value: PathDuals = solution.value
    assert not solution.status.ok and not value.solved.all()


def test_a_matrix_that_bends_down_is_no_proven_optimum():
    K = np.tanh(X @ X.T - 1)
    path = MarginPath((svm.svc(PrecomputedGram(K), SIGNS, ONES),), (PathSetting(),))
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        solution = solve(path)
    assert solution.status is Status.NOT_CONVEX and not certify(path, solution.value).ok
