"""The drop-in classes find what scikit-learn's find: values, objectives, layout, signs."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from threadpoolctl import threadpool_limits

from mercer.compat import sklearn as ours

TOL = 1e-3  # scikit-learn's default
NEAR = 10 * TOL  # two answers, each optimal to TOL


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def dense(A):
    return A.toarray() if sparse.issparse(A) else np.asarray(A)


def kernel_of(options, d):
    """Write scikit-learn's kernels down once more, from their formulas."""
    gamma, degree, coef0 = (options.get(k) for k in ("gamma", "degree", "coef0"))
    return {
        "linear": linear_kernel,
        "rbf": lambda A, B: rbf_kernel(A, B, gamma),
        "poly": lambda A, B: polynomial_kernel(A, B, degree, gamma, coef0),
        "sigmoid": lambda A, B: sigmoid_kernel(A, B, gamma, coef0),
    }[options["kernel"]]


def problem(seed, classes=None):
    """Make rows, new rows, labels, targets, weights and parameters of a kernel."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(40, 90)), int(rng.integers(2, 6)), int(rng.integers(2, 5))
    k = classes or k
    X = rng.standard_normal((n, d))
    if seed % 3 == 0:
        X[rng.random(X.shape) < 0.4] = 0.0
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * rng.standard_normal(n)
    labels = np.digitize(score, np.quantile(score, np.arange(1, k) / k))
    options = [
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": float(rng.uniform(0.05, 1.0))},
        {"kernel": "poly", "gamma": 0.3, "degree": int(rng.integers(1, 4)), "coef0": 1.0},
        {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.0},
        {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 0.0},
    ][seed % 5]
    weights = rng.uniform(0.2, 2.0, n) if seed % 2 else None
    C = float(10 ** rng.uniform(-1, 1.5))
    return X, rng.standard_normal((30, d)), labels, score, weights, C, options


def fitted(name, seed, X, y, weights, **options):
    """Fit both, on sparse rows now and then."""
    rows = sparse.csr_array(X) if seed % 3 == 0 else X
    with warnings.catch_warnings():  # the sigmoid is no kernel, and we say so
        warnings.filterwarnings("ignore", ".*not positive semidefinite", ConvergenceWarning)
        return [getattr(lib, name)(**options).fit(rows, y, weights) for lib in (svm, ours)]


def new(seed, Z):
    return sparse.csr_array(Z) if seed % 3 == 0 else Z


def pair_coefs(machine, codes, n):
    """Read dual_coef_ in LIBSVM's layout: one signed vector of all rows for each pair."""
    table = dense(machine.dual_coef_)
    k = len(machine.classes_)
    pairs, of_class = [], codes[machine.support_]
    for i in range(k):
        for j in range(i + 1, k):
            b = np.zeros(n)
            first, second = of_class == i, of_class == j
            b[machine.support_[first]] = table[j - 1, first]
            b[machine.support_[second]] = table[i, second]
            pairs.append(((i, j), -b if k == 2 else b))  # two classes: positive for the second
    return pairs


SEEDS = range(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_svc_agrees_and_its_objective_is_no_worse(seed):
    X, Z, y, _, weights, C, options = problem(seed)
    rng = np.random.default_rng(seed)
    by_class = {c: float(rng.uniform(0.5, 2.0)) for c in np.unique(y)} if seed % 4 == 0 else None
    args = {"C": C, "class_weight": by_class, "decision_function_shape": "ovo", **options}
    theirs, mine = fitted("SVC", seed, X, y, weights, **args)
    gram = kernel_of(options, X.shape[1])
    K, K_new = gram(X, X), gram(Z, X)
    np.testing.assert_array_equal(mine.classes_, theirs.classes_)
    np.testing.assert_allclose(mine.class_weight_, theirs.class_weight_)
    values = [m.decision_function(new(seed, Z)) for m in (theirs, mine)]
    np.testing.assert_allclose(values[1], values[0], atol=NEAR * max(1, np.abs(values[0]).max()))
    own = pair_coefs(mine, y, len(X))
    for p, ((pair, b), (_, other)) in enumerate(
        zip(own, pair_coefs(theirs, y, len(X)), strict=True)
    ):
        sign = np.where(y == pair[0], 1.0, -1.0)
        objectives = [0.5 * v @ K @ v - sign @ v for v in (b, other)]
        assert objectives[0] <= objectives[1] + TOL * max(1.0, abs(objectives[1]))
        column = -values[1] if values[1].ndim == 1 else values[1][:, p]
        constant = -mine.intercept_[p] if values[1].ndim == 1 else mine.intercept_[p]
        np.testing.assert_allclose(K_new @ b + constant, column, atol=1e-8 * (1 + C))
    for shape, ties in (("ovr", False), ("ovr", True), ("ovo", False)):
        for m in (mine, theirs):
            m.set_params(decision_function_shape=shape, break_ties=ties)
        clear = np.abs(values[0].reshape(len(Z), -1)).min(axis=1) > NEAR
        found = [m.predict(new(seed, Z))[clear] for m in (theirs, mine)]
        np.testing.assert_array_equal(found[1], found[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_nu_svc_agrees(seed):
    X, Z, y, _, weights, _, options = problem(seed)
    if options["kernel"] in ("linear", "sigmoid", "poly"):
        options = {"kernel": "rbf", "gamma": 0.5}  # for others a share nu may have no margin
    options |= {"nu": 0.617, "tol": 1e-8, "decision_function_shape": "ovo"}
    theirs, mine = fitted("NuSVC", seed, X, y, weights, **options)
    values = [m.decision_function(new(seed, Z)) for m in (theirs, mine)]
    np.testing.assert_allclose(values[1], values[0], atol=1e-4 * np.abs(values[0]).max())
    np.testing.assert_array_equal(mine.n_support_.shape, theirs.n_support_.shape)


@pytest.mark.parametrize("name", ["SVR", "NuSVR"])
@pytest.mark.parametrize("seed", SEEDS)
def test_regression_agrees_and_its_objective_is_no_worse(name, seed):
    X, Z, _, t, weights, C, options = problem(seed)
    args = {"epsilon": 0.05} if name == "SVR" else {"nu": 0.317}
    theirs, mine = fitted(name, seed, X, t, weights, C=C, **args, **options)
    K = kernel_of(options, X.shape[1])(X, X)
    values = [m.predict(new(seed, Z)) for m in (theirs, mine)]
    np.testing.assert_allclose(values[1], values[0], atol=NEAR * max(1, np.abs(values[0]).max()))
    objectives = []
    for m in (mine, theirs):
        b = np.zeros(len(X))
        b[m.support_] = dense(m.dual_coef_)[0]
        width = args.get("epsilon", 0.0)
        objectives.append(0.5 * b @ K @ b - t @ b + width * np.abs(b).sum())
    assert objectives[0] <= objectives[1] + TOL * max(1.0, abs(objectives[1]))


@pytest.mark.parametrize("seed", SEEDS)
def test_one_class_agrees_and_its_objective_is_no_worse(seed):
    X, Z, _, _, weights, _, options = problem(seed)
    theirs, mine = fitted("OneClassSVM", seed, X, None, weights, nu=0.217, **options)
    values = [m.decision_function(new(seed, Z)) for m in (theirs, mine)]
    scale = max(1, np.abs(values[0]).max(), abs(theirs.offset_[0]))
    np.testing.assert_allclose(values[1], values[0], atol=NEAR * scale)
    np.testing.assert_allclose(mine.offset_, theirs.offset_, atol=NEAR * scale)
    K = kernel_of(options, X.shape[1])(X, X)
    coefs = [np.zeros(len(X)), np.zeros(len(X))]
    for b, m in zip(coefs, (mine, theirs), strict=True):
        b[m.support_] = dense(m.dual_coef_)[0]
    np.testing.assert_allclose(coefs[0].sum(), coefs[1].sum())
    objectives = [0.5 * b @ K @ b for b in coefs]
    assert objectives[0] <= objectives[1] + TOL * max(1.0, abs(objectives[1]))


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_gamma_means_the_same(kernel, gamma):
    X, Z, _, t, *_ = problem(1)
    options = {"kernel": kernel, "gamma": gamma, "tol": 1e-6, "coef0": 0.0}
    if kernel == "sigmoid":
        options |= {"gamma": 0.02} if gamma == 0.7 else {"C": 0.1}
    theirs, mine = fitted("SVR", 1, X, t, None, **options)
    np.testing.assert_allclose(mine._gamma, theirs._gamma, rtol=1e-12)
    if kernel != "sigmoid":
        np.testing.assert_allclose(mine.predict(Z), theirs.predict(Z), atol=1e-4)


def test_unusual_parameters_of_kernels():
    X, Z, _, t, *_ = problem(1)
    for options in (
        {"kernel": "poly", "gamma": 0.5, "degree": 0},
        {"kernel": "poly", "gamma": 0.0, "degree": 2, "coef0": 1.0},
        {"kernel": "rbf", "gamma": 0.0},
        {"kernel": "sigmoid", "gamma": 0.0, "coef0": 0.5},
        {"kernel": "poly", "gamma": 1e-3, "degree": 1, "coef0": -1.0},
    ):
        theirs, mine = fitted("SVR", 1, X, t, None, tol=1e-6, C=0.5, **options)
        np.testing.assert_allclose(mine.predict(Z), theirs.predict(Z), atol=1e-4)


# --- the linear machines: the primal objective, to nine digits -----------------------------------


def linear_cost(machine, X, targets, costs, scaling, loss, width=0.0):
    w, b = machine.coef_.ravel(), float(np.ravel(machine.intercept_)[0])
    f = X @ w + b
    short = 1 - targets * f if "hinge" in loss else np.abs(targets - f) - width
    slack = np.maximum(0.0, short)
    slack = slack**2 if "squared" in loss else slack
    return 0.5 * (w @ w + (b / scaling) ** 2) + costs @ slack


@pytest.mark.parametrize("shape", [(200, 4), (60, 120)], ids=["tall", "wide"])
@pytest.mark.parametrize("scaling", [1.0, 5.0, None])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_linear_svc_finds_the_optimum(loss, scaling, shape):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) + 0.5
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(len(X)) > 0.4, 1, 0)
    weights, C = rng.uniform(0.2, 2.0, len(X)), 3.0
    options = {"loss": loss, "C": C, "tol": 1e-8, "fit_intercept": scaling is not None}
    options["intercept_scaling"] = scaling or 1.0
    theirs = svm.LinearSVC(dual=True, random_state=0, max_iter=1_000_000, **options).fit(
        X, y, weights
    )
    for rows in (X, sparse.csr_array(X)):
        mine = ours.LinearSVC(**options).fit(rows, y, weights)
        costs = [
            linear_cost(m, X, 2 * y - 1, C * weights, options["intercept_scaling"], loss)
            for m in (mine, theirs)
        ]
        assert costs[0] <= costs[1] + 1e-8 * C * weights.sum()
        np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
        assert mine.certificate_.ok


@pytest.mark.parametrize("shape", [(200, 4), (60, 120)], ids=["tall", "wide"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_linear_svr_finds_the_optimum(loss, epsilon, shape):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    t = 2 * X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(len(X)) + 1.0
    options = {"loss": loss, "epsilon": epsilon, "C": 2.0, "tol": 1e-8}
    theirs = svm.LinearSVR(dual=True, random_state=0, max_iter=1_000_000, **options).fit(X, t)
    mine = ours.LinearSVR(**options).fit(X, t)
    costs = np.full(len(X), 2.0)
    found = [linear_cost(m, X, t, costs, 1.0, loss, epsilon) for m in (mine, theirs)]
    assert found[0] <= found[1] + 1e-8 * costs.sum()
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-4)
    assert mine.certificate_.ok


@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 2: 0.5}, "balanced"])
def test_linear_svc_of_many_classes(class_weight):
    X, Z, y, _, weights, *_ = problem(1, classes=4)
    options = {"class_weight": class_weight, "tol": 1e-8}
    theirs = svm.LinearSVC(dual=True, random_state=0, max_iter=100_000, **options).fit(
        X, y, weights
    )
    mine = ours.LinearSVC(**options).fit(X, y, weights)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(mine.decision_function(Z), theirs.decision_function(Z), atol=1e-6)
    np.testing.assert_array_equal(mine.predict(Z), theirs.predict(Z))
