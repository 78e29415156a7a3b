"""What scikit-learn documents of its classes holds for the drop-in ones; refusals say why."""

import inspect

import numpy as np
import pytest
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from threadpoolctl import threadpool_limits

import mercer
from mercer.compat import sklearn as ours

NAMES = [name for name in ours.__all__ if hasattr(svm, name)]  # others have their own files
CLASSIFIERS = ["SVC", "NuSVC", "LinearSVC"]


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


rng = np.random.default_rng(0)
X = rng.standard_normal((90, 4))
Z = rng.standard_normal((40, 4))
t = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.2 * rng.standard_normal(90)
y2, y3 = (np.digitize(t, np.quantile(t, np.arange(1, k) / k)) for k in (2, 3))


def of(name):
    return getattr(svm, name), getattr(ours, name)


def target(name):
    return y3 if name in CLASSIFIERS else t


def values(machine, rows=Z):
    method = getattr(machine, "decision_function", machine.predict)
    return method(rows)


# --- probabilities -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
@pytest.mark.parametrize("y", [y2, y3])
def test_probabilities_on_request(name, y):
    machine = of(name)[1](probability=True, **({"nu": 0.3} if name == "NuSVC" else {}))
    with pytest.warns(FutureWarning, match=r"mercer.SVC\(probability=True\) stays"):
        machine.fit(X, y)
    p = machine.predict_proba(Z)
    assert p.shape == (40, len(np.unique(y)))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(machine.predict_log_proba(Z)), p)
    decision = machine.decision_function(Z)
    best = decision > 0 if decision.ndim == 1 else decision.argmax(axis=1)
    np.testing.assert_array_equal(p.argmax(axis=1), best)


def test_no_probabilities_unless_asked_for():
    for machine in (ours.SVC(), ours.SVC()):
        assert not hasattr(machine.fit(X, y2), "predict_proba")
        with pytest.raises(AttributeError, match="predict_proba"):
            machine.predict_proba(Z)
    with pytest.raises(NotFittedError, match="call fit again"):
        machine.set_params(probability=True).predict_proba(Z)


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_negative_weight_are_left_out(name):
    options = {"nu": 0.2} if name == "NuSVC" else {}
    weights = np.where(np.arange(90) % 5, 1.0, -2.0)
    machine = of(name)[1](**options)
    masked = values(machine.fit(X, target(name), sample_weight=weights))
    without = values(machine.fit(X[weights > 0], target(name)[weights > 0]))
    np.testing.assert_array_equal(masked, without)
    for wrong in (np.nan, -np.inf):
        with pytest.raises(ValueError, match="sample_weight must be finite"):
            machine.fit(X, target(name), sample_weight=np.where(weights > 0, 1.0, wrong))


@pytest.mark.parametrize("name", NAMES)
def test_weights_mean_repetition_to_the_last_bit(name):
    options = {"nu": 0.2} if name == "NuSVC" else {}
    y = np.round(target(name), 1)
    counts = np.random.default_rng(3).integers(0, 3, len(X))
    machine = of(name)[1](**options)
    by_weight = values(machine.fit(X, y, sample_weight=counts))
    by_copies = values(machine.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)))
    np.testing.assert_array_equal(by_weight, by_copies)


@pytest.mark.parametrize("name", ["SVC", "LinearSVC"])
def test_class_weight_moves_the_border(name):
    heavy = {0: 10.0, 1: 1.0}
    machine = of(name)[1]
    plain, moved = machine().fit(X, y2), machine(class_weight=heavy).fit(X, y2)
    assert (moved.predict(Z) == 0).sum() > (plain.predict(Z) == 0).sum()
    by_rows = machine().fit(X, y2, sample_weight=np.where(y2 == 0, 10.0, 1.0))
    if name == "LinearSVC":  # gamma="scale" counts rows by their weight
        np.testing.assert_allclose(values(by_rows), values(moved), atol=1e-6)
    if name == "SVC":
        assert moved.class_weight_.tolist() == [10.0, 1.0]


def test_balanced_classes_count_alike():
    y = np.where(np.arange(90) < 60, 0, 1)
    machine = ours.SVC(class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(machine.class_weight_, [0.75, 1.5])


def test_nu_is_lowered_where_class_weights_leave_no_room():
    with pytest.warns(UserWarning, match=r"nu=0\.3 cannot be met with this class_weight"):
        machine = ours.NuSVC(nu=0.3, class_weight={0: 100.0, 1: 1.0}).fit(X, y2)
    assert machine.machine_.nu < 0.03
    with pytest.raises(ValueError, match=r"nu=0\.9 is infeasible"):
        ours.NuSVC(nu=0.9).fit(X, np.where(np.arange(90) < 60, 0, 1))


def test_labels_of_any_kind():
    for labels in (np.array(["no", "yes"]), np.array([-1.0, 7.0]), np.array([True, False])):
        for name in CLASSIFIERS:
            machine = of(name)[1]().fit(X, labels[y2])
            assert set(machine.predict(Z)) == set(labels)
            np.testing.assert_array_equal(machine.classes_, np.unique(labels))


# --- novelty -------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_nu_bounds_outliers_and_support_vectors(nu):
    rows = np.random.default_rng(5).standard_normal((400, 2))
    machine = ours.OneClassSVM(nu=nu, tol=1e-6).fit(rows)
    outside = machine.decision_function(rows) < -1e-5
    assert outside.mean() <= nu <= len(machine.support_) / 400
    np.testing.assert_allclose(
        machine.score_samples(Z[:, :2]) - machine.offset_, machine.decision_function(Z[:, :2])
    )
    np.testing.assert_array_equal(machine.offset_, -machine.intercept_)
    labels = ours.OneClassSVM(nu=nu, tol=1e-6).fit_predict(rows)
    assert labels.dtype == np.intp
    assert set(labels) == {-1, 1}


# --- limits, endings, extras ---------------------------------------------------------------------


def test_a_limit_is_kept_and_told():
    with pytest.warns(ConvergenceWarning, match=r"terminated early \(max_iter=2\)"):
        machine = ours.SVC(C=1e3, max_iter=2, tol=1e-9).fit(X, y2)
    assert machine.fit_status_ == 1
    assert ours.SVC(max_iter=-1).fit(X, y2).fit_status_ == 0


@pytest.mark.parametrize("name", ["LinearSVC", "LinearSVR"])
def test_passes_of_linear_machines_are_limited(name):
    with pytest.warns(ConvergenceWarning, match="increase the number of iterations"):
        machine = of(name)[1](max_iter=2, tol=1e-9).fit(X, y2)
    assert machine.n_iter_ == 2
    assert not machine.certificate_.ok


@pytest.mark.parametrize("y", [y2, y3])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_coefficients_written_by_hand_are_used(y, kernel):
    rows, new = (X @ X.T, Z @ X.T) if kernel == "precomputed" else (X, Z)
    mine = ours.SVC(kernel=kernel, decision_function_shape="ovo").fit(rows, y)
    before = mine.decision_function(new)
    mine._dual_coef_ = mine._dual_coef_.copy()
    np.testing.assert_allclose(mine.decision_function(new), before, atol=1e-10)
    mine._intercept_ = mine._intercept_ + 1.0
    sign = -1.0 if y is y2 else 1.0
    np.testing.assert_allclose(mine.decision_function(new), before + sign, atol=1e-10)
    mine._n_support[0] += 1
    with pytest.raises(ValueError, match="internal representation of SVC was altered"):
        mine.predict(new)


def test_a_failed_fit_changes_nothing():
    machine = ours.SVC().fit(X, y2)
    before, held = machine.predict(Z), dict(vars(machine))
    with pytest.raises(ValueError, match="NaN"):
        machine.fit(np.full((4, 4), np.nan), [0, 1, 0, 1])
    np.testing.assert_array_equal(machine.predict(Z), before)
    assert vars(machine) == held


@pytest.mark.parametrize("name", NAMES)
def test_what_mercer_adds(name):
    machine = of(name)[1]()
    with pytest.raises(AttributeError, match="call fit first"):
        _ = machine.certificate_
    machine.fit(X, target(name))
    assert machine.certificate_.ok
    assert machine.solution_.status is mercer.Status.SOLVED
    if hasattr(machine, "machine_"):
        assert isinstance(machine.machine_, mercer.SVC | mercer.SVR | mercer.OneClassSVM)


def test_coefficients_become_sparse_and_back():
    machine = ours.LinearSVC().fit(X, y3)
    before = machine.decision_function(Z)
    np.testing.assert_allclose(machine.sparsify().decision_function(Z), before)
    np.testing.assert_allclose(machine.densify().decision_function(Z), before)


# --- refusals ------------------------------------------------------------------------------------

WRONG = {
    "C": [0.0, -1.0, "much"],
    "nu": [0.0, 1.5, "half"],
    "kernel": ["gauss", 3, None],
    "degree": [-1, 2.5],
    "gamma": [-0.1, "large", None],
    "coef0": ["a"],
    "epsilon": ["wide"],
    "tol": [0.0, -1e-3],
    "cache_size": [0.0],
    "shrinking": ["yes"],
    "max_iter": [-2, 1.5],
    "class_weight": ["equal", 3],
    "decision_function_shape": ["all"],
    "break_ties": ["no"],
    "probability": ["maybe"],
    "verbose": [-1],
    "random_state": ["seed"],
    "penalty": ["l0"],
    "loss": ["log"],
    "multi_class": ["ovo"],
    "fit_intercept": ["yes"],
    "dual": ["both"],
}
CASES = [
    (name, parameter, value)
    for name in NAMES
    for parameter, wrong in WRONG.items()
    if parameter in inspect.signature(getattr(ours, name)).parameters
    for value in wrong
]


@pytest.mark.parametrize(("name", "parameter", "value"), CASES)
def test_parameters_out_of_range_are_refused_as_there(name, parameter, value):
    for machine in of(name):
        with pytest.raises(ValueError, match=parameter) as refusal:
            machine(**{parameter: value}).fit(X, target(name))
        assert isinstance(refusal.value, TypeError)  # both, as scikit-learn's own


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_alone_is_refused(name):
    for machine in of(name):
        with pytest.raises(ValueError, match="class"):
            machine().fit(X, np.zeros(90))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"penalty": "l1", "loss": "hinge"}, "Unsupported .* penalty='l1' and loss='hinge'"),
        ({"loss": "hinge", "dual": False}, "loss='hinge' are not supported when dual=False"),
        ({"intercept_scaling": 0.0}, "'intercept_scaling' parameter of LinearSVC must be a float"),
    ],
)
def test_what_is_missing_says_so(options, reason):
    with pytest.raises(ValueError, match=reason):
        ours.LinearSVC(**options).fit(X, y2)


@pytest.mark.parametrize("options", [{"penalty": "l1"}, {"multi_class": "crammer_singer"}])
def test_what_is_no_box_programme_runs_on_liblinear(options):
    options |= {"random_state": 0, "dual": False, "max_iter": 100_000}
    theirs, mine = (c(**options).fit(X, y3) for c in of("LinearSVC"))
    np.testing.assert_array_equal(mine.coef_, theirs.coef_)
    np.testing.assert_array_equal(mine.decision_function(Z), theirs.decision_function(Z))
    for extra in ("certificate_", "solution_"):
        assert not hasattr(mine, extra)
    assert mine.set_params(penalty="l2", multi_class="ovr").fit(X, y3).certificate_.ok
    assert not hasattr(mine.set_params(**options).fit(X, y3), "certificate_")


@pytest.mark.parametrize("name", NAMES)
def test_wrong_rows_are_refused(name):
    theirs, mine = of(name)
    many = {"max_iter": 100_000, "random_state": 0} if name.startswith("Linear") else {}
    for machine in (theirs(**many), mine()):
        with pytest.raises(NotFittedError):
            machine.predict(X)
        machine.fit(X, target(name))
        for wrong in (X[:, :3], X[0], np.full((2, 4), np.inf)):
            with pytest.raises(ValueError, match=r"features|dimension|array|infinity"):
                machine.predict(wrong)
    with pytest.raises(ValueError, match="row 3, column 1"):
        bad = X.copy()
        bad[3, 1] = np.nan
        mine().fit(bad, target(name))
    with pytest.raises(ValueError, match="sample_weight"):
        mine().fit(X, target(name), sample_weight=np.full(90, -1.0))
    with pytest.raises(ValueError, match="sample_weight"):
        mine().fit(X, target(name), sample_weight=np.ones(5))
