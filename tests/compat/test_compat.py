"""The drop-in classes look and behave as scikit-learn's: signatures, attributes, shapes, errors."""

import copy
import inspect
import pickle
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from mercer.compat import sklearn as ours
from mercer.kernels import Gaussian

NAMES = [name for name in ours.__all__ if hasattr(svm, name)]  # others have their own files
CLASSIFIERS = ["SVC", "NuSVC", "LinearSVC"]
SWAPPED = import_module("mercer.compat.sklearn.patch").MODULES
KERNEL_MACHINES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]
ATTRIBUTES = (
    "classes_ class_weight_ support_ support_vectors_ n_support_ dual_coef_ coef_ intercept_ "
    "offset_ fit_status_ n_iter_ shape_fit_ n_features_in_"
).split()


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


rng = np.random.default_rng(0)
X = rng.standard_normal((90, 4))
Z = rng.standard_normal((40, 4))
t = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.2 * rng.standard_normal(90)
score = X[:, 0] + 0.4 * rng.standard_normal(90)
y2, y3, y4 = (np.digitize(score, np.quantile(score, np.arange(1, k) / k)) for k in (2, 3, 4))


def of(name):
    """Return both classes of a name."""
    return getattr(svm, name), getattr(ours, name)


def target(name):
    return y3 if name in CLASSIFIERS else t


def dense(A):
    return A.toarray() if sparse.issparse(A) else np.asarray(A)


def dot(A, B):
    return dense(A @ B.T)


# --- the protocol --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", [None, "fit", "predict", "decision_function", "score_samples"])
def test_signatures_are_the_same(name, method):
    theirs, mine = of(name)
    if method is not None:
        assert hasattr(mine, method) == hasattr(theirs, method)
        if not hasattr(theirs, method):
            return
        theirs, mine = getattr(theirs, method), getattr(mine, method)
    parameters = [
        [(p.name, p.kind, p.default) for p in inspect.signature(c).parameters.values()]
        for c in (theirs, mine)
    ]
    assert parameters[1] == parameters[0]


# one check takes the mean off a precomputed matrix, which is indefinite then, and we say so;
# another weighs classes 10^7 to 1, which no share nu allows
@pytest.mark.filterwarnings(
    "ignore:.*not positive semidefinite:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.filterwarnings("ignore:.*cannot be met with this class_weight:UserWarning")
# data of one check have, in some pair of classes, a margin at this nu that is almost rounding
@pytest.mark.filterwarnings("ignore:SMO. stopped making progress")
# one check sets max_iter=1000 with class weights of 1e3 and 1e-4: rounding decides whether NuSVC
# takes more steps (700 to 4000 for samples moved by 1e-15); scikit-learn's own takes 1178
@pytest.mark.filterwarnings("ignore:Solver terminated early")
@parametrize_with_checks(
    [
        ours.SVC(),
        ours.SVC(kernel="linear", break_ties=True),
        ours.SVC(kernel="precomputed"),
        ours.NuSVC(nu=0.3),  # what the sizes of classes in the checks allow
        ours.SVR(),
        ours.SVR(kernel="linear"),
        ours.NuSVR(),
        ours.OneClassSVM(),
        ours.LinearSVC(),
        ours.LinearSVC(loss="hinge"),
        ours.LinearSVR(),
        ours.LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
    ]  # no list of expected failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", NAMES)
def test_clone_copy_and_pickle(name):
    fitted = of(name)[1]().fit(X, target(name))
    assert clone(fitted).get_params() == of(name)[0]().get_params()
    assert not hasattr(clone(fitted), "n_iter_")
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(twin.predict(Z), fitted.predict(Z))
        assert repr(twin.certificate_) == repr(fitted.certificate_)
    assert fitted.certificate_.ok
    assert fitted.solution_.status.ok


def test_grids_pipelines_and_tables():
    grid = {"svc__C": [0.1, 1.0, 10.0], "svc__kernel": ["rbf", "linear"]}
    search = GridSearchCV(make_pipeline(StandardScaler(), ours.SVC()), grid, cv=3).fit(X, y3)
    assert search.best_score_ > 0.6
    scores = cross_val_score(ours.SVC(kernel="precomputed"), rbf_kernel(X), y2, cv=3)
    assert scores.min() > 0.6
    table = pd.DataFrame(X, columns=list("abcd"))
    machine = ours.SVR().fit(table, t)
    assert machine.feature_names_in_.tolist() == list("abcd")
    with pytest.warns(UserWarning, match="valid feature names"):
        machine.predict(X)


# --- attributes, shapes and signs ----------------------------------------------------------------


def alike(theirs, mine, name):
    """Compare type, dtype and shape of a fitted attribute."""
    assert hasattr(mine, name) == hasattr(theirs, name), name
    if not hasattr(theirs, name):
        return None
    a, b = getattr(theirs, name), getattr(mine, name)
    assert type(a) is type(b), name
    assert getattr(a, "dtype", None) == getattr(b, "dtype", None), name
    assert getattr(a, "shape", None) == getattr(b, "shape", None), name
    return a, b


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed", dot])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", KERNEL_MACHINES)
def test_attributes_are_the_same(name, kind, kernel):
    if kind is sparse.csr_array and kernel == "precomputed":
        return
    options = {"kernel": kernel, "tol": 1e-8}
    options |= {"nu": 0.617} if "C" not in inspect.signature(of(name)[0]).parameters else {"C": 3.0}
    if name == "NuSVR":
        options["nu"] = 0.317
    moved = X + 2.0 * (name == "OneClassSVM")  # away from the origin, or all rows are alike
    rows = moved @ moved.T if kernel == "precomputed" else kind(moved)
    for y in (y2, y3, y4) if name in CLASSIFIERS else (t,):
        theirs, mine = (c(**options).fit(rows, y) for c in of(name))
        for attribute in ATTRIBUTES:
            pair = alike(theirs, mine, attribute)
            if pair is None or attribute == "n_iter_":
                continue
            a, b = map(dense, pair) if attribute != "shape_fit_" else pair
            scale = max(1.0, float(np.abs(np.asarray(a, dtype=float)).max(initial=0.0)))
            np.testing.assert_allclose(b, a, atol=1e-3 * scale, err_msg=attribute)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["LinearSVC", "LinearSVR"])
def test_attributes_of_linear_machines_are_the_same(name, fit_intercept):
    for y in (y2, y3) if name == "LinearSVC" else (t,):
        options = {"fit_intercept": fit_intercept, "max_iter": 100_000, "random_state": 0}
        theirs, mine = (c(**options).fit(X, y) for c in of(name))
        for attribute in ("classes_", "coef_", "intercept_", "n_iter_", "n_features_in_"):
            alike(theirs, mine, attribute)
        assert mine.predict(Z).dtype == theirs.predict(Z).dtype


@pytest.mark.parametrize("y", [y2, y3, y4])
def test_decision_functions_have_the_same_shapes_and_signs(y):
    k = len(np.unique(y))
    for shape in ("ovo", "ovr"):
        theirs, mine = (c(decision_function_shape=shape, tol=1e-6).fit(X, y) for c in of("SVC"))
        a, b = theirs.decision_function(Z), mine.decision_function(Z)
        expected = (40,) if k == 2 else (40, k if shape == "ovr" else k * (k - 1) // 2)
        assert a.shape == b.shape == expected
        np.testing.assert_allclose(b, a, atol=1e-4)
    mine = ours.LinearSVC().fit(X, y)
    assert mine.decision_function(Z).shape == ((40,) if k == 2 else (40, k))


def test_support_vectors_are_sorted_by_class_then_row():
    machine = ours.SVC().fit(X, y3)
    codes = y3[machine.support_]
    assert (np.diff(codes) >= 0).all()
    assert all((np.diff(machine.support_[codes == c]) > 0).all() for c in range(3))
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    np.testing.assert_array_equal(machine.n_support_, np.bincount(codes))


@pytest.mark.parametrize("y", [y2, y4])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_coef_belongs_to_the_linear_kernel(kind, y):
    theirs, mine = (c(kernel="linear", tol=1e-7).fit(kind(X), y) for c in of("SVC"))
    a, b = alike(theirs, mine, "coef_")
    np.testing.assert_allclose(dense(b), dense(a), atol=1e-4)
    if kind is np.asarray:
        with pytest.raises(ValueError, match="read-only"):
            mine.coef_[0, 0] = 1.0
    assert not hasattr(ours.SVC().fit(X, y), "coef_")


def test_a_value_of_zero_is_decided_as_libsvm_does():
    rows, labels = np.array([[-1.0], [1.0]]), [0, 1]
    for machine in of("SVC"):
        fitted = machine(kernel="linear").fit(rows, labels)
        assert fitted.decision_function([[0.0]]) == 0.0
        assert fitted.predict([[0.0]]) == [1]


def test_ties_go_to_the_first_class_or_are_broken():
    angle = 2 * np.pi * np.arange(3) / 3
    rows = np.repeat(np.c_[np.cos(angle), np.sin(angle)], 10, axis=0)
    rows += 0.3 * np.random.default_rng(1).standard_normal(rows.shape)
    labels = np.repeat([0, 1, 2], 10)
    grid = np.random.default_rng(2).uniform(-0.3, 0.3, (500, 2))
    for ties in (False, True):
        theirs, mine = (
            c(kernel="linear", break_ties=ties, tol=1e-9).fit(rows, labels) for c in of("SVC")
        )
        np.testing.assert_array_equal(mine.predict(grid), theirs.predict(grid))
    np.testing.assert_array_equal(mine.predict(grid), mine.decision_function(grid).argmax(axis=1))
    with pytest.raises(ValueError, match="break_ties must be False"):
        mine.set_params(decision_function_shape="ovo").predict(grid)


# --- kernels and rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNEL_MACHINES)
def test_all_ways_to_give_a_kernel_agree(name):
    machine, y = of(name)[1], target(name)
    options = {"nu": 0.3} if name == "NuSVC" else {}
    gamma = 1.0 / (4 * X.var())

    def function(A, B):
        return rbf_kernel(A, B, gamma)

    usual = machine(tol=1e-8, **options).fit(X, y).predict(Z)
    others = [
        machine(kernel=function, tol=1e-8, **options).fit(X, y).predict(Z),
        machine(kernel="precomputed", tol=1e-8, **options)
        .fit(function(X, X), y)
        .predict(function(Z, X)),
        machine(tol=1e-8, **options).fit(sparse.csr_matrix(X), y).predict(sparse.csr_matrix(Z)),
        machine(tol=1e-8, **options).fit(X.tolist(), y.tolist()).predict(Z.tolist()),
        machine(kernel=Gaussian(np.sqrt(0.5 / gamma)), tol=1e-8, **options).fit(X, y).predict(Z),
    ]
    for other in others:
        np.testing.assert_allclose(other, usual, atol=1e-6)


def test_functions_see_what_the_user_gave():
    words = ["apple", "apply", "ample", "zebra", "zeal", "zero"]

    def shared(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)

    machine = ours.SVC(kernel=shared).fit(words, [0, 0, 0, 1, 1, 1])
    assert machine.predict(["maple", "zebu"]).tolist() == [0, 1]
    assert machine.shape_fit_ == (6,)
    with pytest.raises(ValueError, match=r"kernel must give a matrix of shape \(6, 6\)"):
        ours.SVC(kernel=lambda A, B: np.ones(3)).fit(words, [0, 0, 0, 1, 1, 1])


def test_constant_rows_have_gamma_one():
    rows = np.full((6, 2), 0.1)
    with pytest.warns(UserWarning, match=r"gamma=1\.0 is taken"):
        machine = ours.SVC().fit(rows, [0, 1, 1, 0, 1, 1])
    assert machine._gamma == 1.0
    assert np.isfinite(machine.decision_function(rows)).all()
    assert machine.predict(rows[:1]).tolist() == [1]


def test_sparse_matrices_keep_the_configured_interface():
    machine = ours.SVC(kernel="linear").fit(sparse.csr_array(X), y3)
    assert all(
        sparse.isspmatrix_csr(table)
        for table in (machine.support_vectors_, machine.dual_coef_, machine.coef_)
    )
    with pytest.raises(TypeError, match="Sparse precomputed"):
        ours.SVC(kernel="precomputed").fit(sparse.csr_array(X @ X.T), y3)


@pytest.mark.parametrize("name", SWAPPED)
def test_a_class_is_one_of_theirs(name):
    theirs, mine = getattr(import_module(SWAPPED[name]), name), getattr(ours, name)
    assert issubclass(mine, theirs)
    assert mine._get_param_names() == theirs._get_param_names()
    assert mine._parameter_constraints == theirs._parameter_constraints


@pytest.mark.parametrize(
    ("machine", "method"),
    [
        (ours.LinearSVC(), "predict"),
        (ours.LinearSVR(), "predict"),
        (ours.LinearDiscriminantAnalysis(), "decision_function"),
        (ours.LinearDiscriminantAnalysis(), "transform"),
        (ours.CCA(1), "predict"),
        (ours.KMeans(2), "predict"),
    ],
)
def test_wrong_entries_are_named_where_methods_are_inherited(machine, method):
    machine.fit(X, y2)
    rows = Z.tolist()
    rows[3][1] = np.inf
    with pytest.raises(
        ValueError, match=r"infinity: 1 bad value\(s\), the first in row 3, column 1"
    ):
        getattr(machine, method)(rows)
    rows[3][1] = 10**400
    with pytest.raises(ValueError, match="row 3, column 1 of X is beyond float64"):
        getattr(machine, method)(rows)


@pytest.mark.parametrize("method", ["predict", "decision_function", "transform"])
def test_linear_discriminants_take_dense_rows_only(method):
    machine = ours.LinearDiscriminantAnalysis().fit(X, y2)
    with pytest.raises(TypeError, match="dense data is required"):
        getattr(machine, method)(sparse.csr_array(Z))
