"""FisherDiscriminant: against brute force, scikit-learn, explicit features and Bayes' rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import FisherDiscriminant, certify
from mercer.gram import Need, make_gram
from mercer.kernels import Constant, Gaussian, Linear, Polynomial, Precomputed, Spectrum
from mercer.problems import Directions, Discriminant, as_directions
from mercer.solvers import CholeskyDiscriminant, PrimalDiscriminant, SolverError, Status, solve

pytestmark = pytest.mark.numerics

X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def groups(seed=0, n=90, d=3, classes=3, apart=2.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    return rng.standard_normal((n, d)) + apart * rng.standard_normal((classes, d))[y], y


def scatters(F, y, weighting, sample_weight=None):
    """S_W and S_B of features, written out from their definitions."""
    s = np.ones(len(y)) if sample_weight is None else sample_weight
    classes = np.unique(y)
    total = s.sum()
    means = np.array([np.average(F[y == c], axis=0, weights=s[y == c]) for c in classes])
    covs = [np.cov(F[y == c].T, aweights=s[y == c], bias=True) for c in classes]
    covs = [np.atleast_2d(c) for c in covs]
    shares = np.array([s[y == c].sum() for c in classes]) / total
    if weighting == "classes":
        shares = np.full(len(classes), 1 / len(classes))
    middle = shares @ means
    S_W = sum(p * c for p, c in zip(shares, covs, strict=True))
    S_B = sum(p * np.outer(m - middle, m - middle) for p, m in zip(shares, means, strict=True))
    return S_W, S_B, middle


def brute_force(F, y, penalty, weighting="counts", sample_weight=None):
    """The directions by a dense generalised eigenproblem, signs left open."""
    S_W, S_B, middle = scatters(F, y, weighting, sample_weight)
    beta = penalty * np.trace(S_W)
    values, W = linalg.eigh(S_B, S_W + beta * np.eye(len(S_W)))
    count = len(np.unique(y)) - 1
    return values[::-1][:count], W[:, ::-1][:, :count], middle


def assert_same_up_to_sign(actual, expected, tol=1e-8):
    signs = np.sign((actual * expected).sum(axis=0))
    assert_allclose(actual, signs * expected, rtol=0, atol=tol * np.abs(expected).max())


def monomials(X, degree=2, offset=1.0):
    """Features of (x'y + offset)^degree, written out for degree 2."""
    assert degree == 2
    n, d = X.shape
    cross = [np.sqrt(2) * X[:, i] * X[:, j] for i in range(d) for j in range(i)]
    parts = [np.full((n, 1), offset), np.sqrt(2 * offset) * X, X**2, np.column_stack(cross)]
    return np.hstack(parts)


# --- directions --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["counts", "classes"])
@pytest.mark.parametrize("penalty", [1e-4, 0.1])
def test_linear_equals_brute_force(weighting, penalty):
    X, y = groups(classes=4)
    machine = FisherDiscriminant(penalty=penalty, weighting=weighting).fit(X, y)
    values, W, middle = brute_force(X, y, penalty, weighting)
    assert_allclose(machine.ratios_, values, rtol=1e-9)
    assert_same_up_to_sign(machine.transform(X), (X - middle) @ W)
    assert_same_up_to_sign(machine.scalings_, W)
    assert machine.certificate_.ok


@pytest.mark.parametrize("weighting", ["counts", "classes"])
def test_kernel_equals_explicit_features(weighting):
    X, y = groups(1, n=40, d=4, classes=3)
    Z = groups(2, n=25, d=4)[0]
    # 15 features: with 40 rows the primal route, by solver= the route of the kernel matrix
    kernel = FisherDiscriminant(
        Polynomial(2), penalty=1e-2, weighting=weighting, solver=CholeskyDiscriminant()
    ).fit(X, y)
    primal = FisherDiscriminant(Polynomial(2), penalty=1e-2, weighting=weighting).fit(X, y)
    values, W, middle = brute_force(monomials(X), y, 1e-2, weighting)
    for machine in (kernel, primal):
        assert_allclose(machine.ratios_, values, rtol=1e-8)
        for rows in (X, Z):
            assert_same_up_to_sign(machine.transform(rows), (monomials(rows) - middle) @ W)
        assert machine.certificate_.ok
    assert kernel.solution_.solver == "CholeskyDiscriminant"
    assert primal.solution_.solver == "PrimalDiscriminant"


def test_more_features_than_rows():
    X, y = groups(3, n=30, d=80, classes=3)
    machine = FisherDiscriminant(penalty=1e-2).fit(X, y)
    values, W, middle = brute_force(X, y, 1e-2)
    assert machine.solution_.solver == "CholeskyDiscriminant"
    assert_allclose(machine.ratios_, values, rtol=1e-8)
    assert_same_up_to_sign(machine.transform(X), (X - middle) @ W)
    with pytest.raises(AttributeError, match="scalings_"):
        _ = machine.scalings_


def test_two_cigars():
    """Parallel cigars: the largest variance runs along them, the classes lie across."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.standard_normal((400, 2)) * [5.0, 0.3] + np.where(y[:, None] == 1, [0, 1.2], [0, -1.2])
    machine = FisherDiscriminant().fit(X, y)
    w = machine.scalings_[:, 0] / np.linalg.norm(machine.scalings_)
    assert abs(w[1]) > 0.99
    assert machine.score(X, y) > 0.99
    main = mercer.PCA(n_components=1).fit(X)
    along = main.transform(X)[:, 0]
    assert abs(np.corrcoef(along, y)[0, 1]) < 0.2


def test_directions_are_orthonormal_in_the_metric_and_ordered():
    X, y = groups(4, n=150, d=6, classes=5)
    machine = FisherDiscriminant(Gaussian(3.0), penalty=1e-2).fit(X, y)
    assert machine.transform(X).shape == (150, 4)
    assert (np.diff(machine.ratios_) <= 0).all()
    quantities = machine.certificate_.quantities
    assert quantities.residual < 1e-10 and quantities.orthogonality < 1e-10
    fewer = FisherDiscriminant(Gaussian(3.0), 2, penalty=1e-2).fit(X, y)
    assert_allclose(fewer.transform(X), machine.transform(X)[:, :2], atol=1e-9)
    assert fewer.certificate_.ok


def test_small_penalties_are_refined():
    X, y = groups(5, n=60, d=2, classes=3)
    K = Linear()(X, X)  # rank 2: the route of the matrix divides by a penalty that is tiny
    given_matrix = FisherDiscriminant(Precomputed(), penalty=1e-6).fit(K, y)
    primal = FisherDiscriminant(penalty=1e-6).fit(X, y)
    assert_allclose(given_matrix.ratios_, primal.ratios_, rtol=1e-8)
    assert_same_up_to_sign(given_matrix.transform(K), primal.transform(X), 1e-7)


# --- classification ----------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("prior", [None, "uneven"])
def test_equals_scikit_learn(classes, prior):
    X, y = groups(6, n=200, d=6, classes=classes, apart=1.0)
    prior = (
        None if prior is None else np.arange(1.0, classes + 1) / np.arange(1.0, classes + 1).sum()
    )
    ours = FisherDiscriminant(penalty=0.0, prior=prior).fit(X, y)
    # lsqr divides scatter by the number of rows, as we do, but weights classes by the prior
    if prior is None:
        theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
        assert_allclose(
            ours.decision_function(X) - _row_mean(ours.decision_function(X)),
            theirs.decision_function(X) - _row_mean(theirs.decision_function(X)),
            atol=1e-8,
        )
    svd = LinearDiscriminantAnalysis(solver="svd", priors=prior).fit(X, y)
    assert (ours.predict(X) == svd.predict(X)).mean() > 0.98
    if prior is None:
        ours_z, theirs_z = ours.transform(X), svd.transform(X)
        for k in range(classes - 1):
            assert abs(np.corrcoef(ours_z[:, k], theirs_z[:, k])[0, 1]) > 1 - 1e-10


def _row_mean(scores):
    return scores.mean(axis=1, keepdims=True) if scores.ndim == 2 else 0.0


@pytest.mark.parametrize("shrinkage", [0.1, 0.5])
def test_shrinkage_is_a_penalty(shrinkage):
    X, y = groups(7, n=80, d=5, classes=3)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(X, y)
    ours = FisherDiscriminant(penalty=shrinkage / (1 - shrinkage) / 5).fit(X, y)
    scores = ours._rule.scores(ours.transform(X)) - np.log(ours.prior_)
    scores = scores / (1 - shrinkage) + np.log(ours.prior_)
    assert_array_equal(ours.classes_[scores.argmax(axis=1)], theirs.predict(X))


def test_equal_covariances_give_the_rule_of_bayes():
    rng = np.random.default_rng(8)
    C = np.array([[2.0, 0.8], [0.8, 1.0]])
    L = np.linalg.cholesky(C)
    means = np.array([[0.0, 0.0], [2.0, 1.0]])
    y = (rng.random(20000) < 0.7).astype(int)
    X = rng.standard_normal((20000, 2)) @ L.T + means[y]
    machine = FisherDiscriminant(penalty=1e-8).fit(X, y)
    Z = rng.standard_normal((2000, 2)) * 2
    w = np.linalg.solve(C, means[1] - means[0])
    b = -(means[1] @ np.linalg.solve(C, means[1])) / 2 + np.log(0.7 / 0.3)
    exact = Z @ w + b
    assert np.abs(machine.decision_function(Z) - exact).max() < 0.25
    assert ((machine.decision_function(Z) > 0) == (exact > 0)).mean() > 0.99


def test_mahalanobis_rule_uses_the_width_of_each_class():
    rng = np.random.default_rng(9)
    X = np.concatenate([rng.normal(0, 0.2, 300), rng.normal(3, 2.0, 300)])[:, None]
    y = np.repeat(["narrow", "wide"], 300)
    machine = FisherDiscriminant(rule="mahalanobis", penalty=1e-9).fit(X, y)
    points = np.array([[0.1], [0.8], [1.4], [3.0], [-2.0]])
    mean, spread = [X[y == c].mean() for c in np.unique(y)], [X[y == c].std() for c in np.unique(y)]
    d = np.abs(points - mean) / spread
    assert_array_equal(machine.predict(points), np.unique(y)[d.argmin(axis=1)])
    assert machine.predict([[0.8]])[0] == "wide"
    assert FisherDiscriminant().fit(X, y).predict([[0.8]])[0] == "narrow"


@pytest.mark.parametrize("rule", ["gaussian", "mahalanobis"])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0)])
def test_probabilities_never_contradict_labels(rule, kernel):
    for classes in (2, 4):
        X, y = groups(10, n=100, classes=classes)
        machine = FisherDiscriminant(kernel, rule=rule).fit(X, y)
        P = machine.predict_proba(X)
        assert_allclose(P.sum(axis=1), 1.0)
        assert_array_equal(machine.classes_[P.argmax(axis=1)], machine.predict(X))
        assert_allclose(np.exp(machine.predict_log_proba(X)), P)
        values = machine.decision_function(X)
        assert values.shape == ((100,) if classes == 2 else (100, classes))


def test_kernel_beats_line_on_rings_and_digits():
    rng = np.random.default_rng(11)
    angle, y = rng.uniform(0, 2 * np.pi, 300), np.repeat([0, 1], 150)
    X = np.where(y, 3.0, 1.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    assert FisherDiscriminant(Gaussian(1.0)).fit(X, y).score(X, y) == 1.0
    assert FisherDiscriminant().fit(X, y).score(X, y) < 0.7
    D, t = load_digits(return_X_y=True)
    line = FisherDiscriminant().fit(D[:600], t[:600]).score(D[600:], t[600:])
    machine = FisherDiscriminant("gaussian").fit(D[:600], t[:600])
    assert machine.score(D[600:], t[600:]) > line + 0.02


# --- promises of all machines ------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["linear", Gaussian(2.0), Polynomial(2)]),
    st.sampled_from(["counts", "classes"]),
    st.sampled_from(["gaussian", "mahalanobis"]),
)
def test_weights_are_repetition(seed, kernel, weighting, rule):
    X, y = groups(seed, n=25, classes=3)
    weights = np.random.default_rng(seed).integers(0, 3, 25)
    weights[:3] = 1
    again = np.repeat(np.arange(25), weights)
    options = {"penalty": 1e-2, "weighting": weighting, "rule": rule}
    one = FisherDiscriminant(kernel, **options).fit(X, y, sample_weight=weights)
    two = FisherDiscriminant(kernel, **options).fit(X[again], y[again])
    assert_allclose(one.ratios_, two.ratios_, rtol=1e-7)
    assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-7)
    assert_same_up_to_sign(one.transform(X), two.transform(X), 1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_ways_to_give_the_same_data(seed):
    X, y = groups(seed, n=30, d=3, classes=3)
    Z = groups(seed + 1, n=10, d=3)[0]
    kernel = Gaussian(2.0)
    base = FisherDiscriminant(kernel, penalty=1e-2).fit(X, y)
    expected, wanted = base.transform(Z), base.predict_proba(Z)
    ways = [
        (FisherDiscriminant(kernel.__call__, penalty=1e-2).fit(X, y), Z),
        (FisherDiscriminant(Precomputed(), penalty=1e-2).fit(kernel(X, X), y), kernel(Z, X)),
        (FisherDiscriminant(kernel, penalty=1e-2).fit(sparse.csr_array(X), y), sparse.csr_array(Z)),
    ]
    order = np.random.default_rng(seed).permutation(30)
    ways.append((FisherDiscriminant(kernel, penalty=1e-2).fit(X[order], y[order]), Z))
    for machine, rows in ways:
        assert_same_up_to_sign(machine.transform(rows), expected, 1e-7)
        assert_allclose(machine.predict_proba(rows), wanted, atol=1e-8)
        assert machine.certificate_.ok


def test_sparse_features_in_the_primal():
    X = sparse.random_array((120, 15), density=0.3, format="csr", rng=0)
    y = (np.asarray(X[:, [0]].toarray()).ravel() > 0).astype(int) + np.arange(120) % 2
    dense = FisherDiscriminant(penalty=1e-2).fit(X.toarray(), y)
    machine = FisherDiscriminant(penalty=1e-2).fit(X, y)
    assert machine.solution_.solver == "PrimalDiscriminant"
    assert_allclose(machine.transform(X), dense.transform(X.toarray()), atol=1e-9)


def test_strings_and_pipelines():
    words = ["aaab", "abab", "aabb", "xyxy", "xxyy", "yyxx"]
    machine = FisherDiscriminant(Spectrum(2), penalty=0.1).fit(words, list("aaabbb"))
    assert machine.predict(["abaa", "yxyx"]).tolist() == ["a", "b"]
    pipe = make_pipeline(StandardScaler(), FisherDiscriminant(Gaussian(1.0)))
    grid = GridSearchCV(pipe, {"fisherdiscriminant__kernel__scale": [1.0, 3.0]}, cv=3)
    assert grid.fit(X_IRIS, Y_IRIS).best_score_ > 0.9
    names = FisherDiscriminant().fit(X_IRIS, Y_IRIS).get_feature_names_out()
    assert names.tolist() == ["fisherdiscriminant0", "fisherdiscriminant1"]


# --- hard data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0)])
@pytest.mark.parametrize("rule", ["gaussian", "mahalanobis"])
def test_b14_a_class_of_one_row_and_too_few_rows(kernel, rule):
    X, y = groups(12, n=20, d=30, classes=3)
    y[y == 2] = 1
    y[5] = 2
    machine = FisherDiscriminant(kernel, rule=rule).fit(X, y)
    assert np.isfinite(machine.transform(X)).all() and np.isfinite(machine.predict_proba(X)).all()
    assert machine.predict(X[5:6])[0] == 2
    assert machine.certificate_.ok


@pytest.mark.parametrize("rule", ["gaussian", "mahalanobis"])
def test_b14_no_scatter_within_classes(rule):
    X = np.repeat([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]], 4, axis=0)
    y = np.repeat([0, 1, 2], 4)
    machine = FisherDiscriminant(rule=rule).fit(X, y)
    assert machine.score(X, y) == 1.0
    assert np.isfinite(machine.transform(X)).all()
    with pytest.raises(np.linalg.LinAlgError, match=r"FisherDiscriminant: .*larger penalty"):
        FisherDiscriminant(penalty=0.0).fit(X, y)


def test_b14_equal_means():
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    for kernel in (Linear(), Precomputed()):
        rows = X @ X.T if isinstance(kernel, Precomputed) else X
        with pytest.raises(ValueError, match="FisherDiscriminant: the classes have equal means"):
            FisherDiscriminant(kernel).fit(rows, [0, 0, 1, 1])
    # in the space of squares they differ
    assert FisherDiscriminant(Polynomial(2)).fit(X, [0, 0, 1, 1]).score(X, [0, 0, 1, 1]) == 1.0


def test_means_that_depend_on_each_other_give_fewer_directions():
    X, y = groups(13, n=90, d=1, classes=4)
    machine = FisherDiscriminant().fit(X, y)
    assert machine.transform(X).shape == (90, 1)
    assert_array_equal(machine.ratios_.shape, (1,))


def test_singular_scatter_needs_a_penalty():
    X, y = groups(14, n=60, d=3)
    twice = np.hstack([X, X])
    machine = FisherDiscriminant(penalty=1e-8).fit(twice, y)
    assert_allclose(
        machine.predict_proba(twice),
        FisherDiscriminant(penalty=1e-9).fit(X, y).predict_proba(X),
        atol=1e-5,
    )
    with pytest.raises(np.linalg.LinAlgError, match="larger penalty"):
        FisherDiscriminant(penalty=0.0).fit(twice, y)


def test_scale_and_offset_of_the_rows_do_not_matter():
    base = FisherDiscriminant().fit(X_IRIS, Y_IRIS)
    for rows in (1e6 * X_IRIS, 1e-6 * X_IRIS, X_IRIS + 1e6):
        machine = FisherDiscriminant().fit(rows, Y_IRIS)
        assert_allclose(machine.ratios_, base.ratios_, rtol=1e-6)
        assert_allclose(machine.predict_proba(rows), base.predict_proba(X_IRIS), atol=1e-5)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"penalty": -1.0}, "penalty"),
        ({"penalty": "loo"}, "penalty"),
        ({"n_components": 3}, "n_components=3 must be at most 2"),
        ({"n_components": 0}, "n_components"),
        ({"weighting": "rows"}, "weighting"),
        ({"rule": "nearest"}, "rule"),
        ({"prior": [0.5, 0.5]}, "prior"),
        ({"prior": [0.5, 0.5, -0.1]}, "prior"),
        ({"prior": [0.2, 0.5, 0.3], "rule": "mahalanobis"}, "prior"),
        ({"solver": "cholesky"}, "solver"),
    ],
)
def test_refused_parameters(parameters, message):
    with pytest.raises(mercer.ParameterError, match=message):
        FisherDiscriminant(**parameters).fit(X_IRIS, Y_IRIS)


def test_refusals_of_solvers():
    with pytest.raises(SolverError, match="penalty > 0"):
        FisherDiscriminant(Gaussian(1.0), penalty=0.0).fit(X_IRIS, Y_IRIS)
    with pytest.raises(SolverError, match="feature map"):
        FisherDiscriminant(Gaussian(1.0), solver=PrimalDiscriminant()).fit(X_IRIS, Y_IRIS)
    with pytest.raises(ValueError, match="one class"):
        FisherDiscriminant().fit(X_IRIS, np.zeros(150))


def test_a_failed_fit_changes_nothing():
    machine = FisherDiscriminant().fit(X_IRIS, Y_IRIS)
    before = machine.transform(X_IRIS)
    with pytest.raises(ValueError, match="equal means"):
        machine.fit(np.vstack([X_IRIS, X_IRIS]), np.repeat([0, 1], 150))
    assert_array_equal(machine.transform(X_IRIS), before)


# --- certificates ------------------------------------------------------------------------------


def _problem(X, y, penalty):
    gram = make_gram(Linear(), X, Need.MATRIX)
    q, shares = np.full(len(y), 1 / len(y)), np.bincount(y) / len(y)
    return Discriminant(gram, y, q, shares, penalty, len(shares) - 1)


def test_the_certificate_judges_the_directions_of_others():
    theirs = LinearDiscriminantAnalysis(solver="svd").fit(X_IRIS, Y_IRIS)
    problem = _problem(X_IRIS, Y_IRIS, 0.0)
    verdict = certify(problem, as_directions(problem, theirs.scalings_))
    assert verdict.ok and verdict.quantities.residual < 1e-10
    ours = solve(problem).value
    assert_allclose(ours.values, as_directions(problem, theirs.scalings_).values, rtol=1e-9)
    turned = theirs.scalings_ @ np.array([[1.0, 0.3], [-0.3, 1.0]])
    assert not certify(problem, as_directions(problem, turned)).ok
    assert not certify(problem, Directions(ours.values * 1.001, weights=ours.weights)).ok
    assert not certify(problem, Directions(ours.values, weights=2 * ours.weights)).ok


def test_the_ratio_is_that_of_the_data():
    machine = FisherDiscriminant(penalty=0.1).fit(X_IRIS, Y_IRIS)
    z = machine.transform(X_IRIS)[:, 0]
    S_W, S_B, _ = scatters(z[:, None], Y_IRIS, "counts")
    assert_allclose(machine.certificate_.quantities.ratio, S_B[0, 0] / S_W[0, 0], rtol=1e-8)
    assert machine.ratios_[0] < machine.certificate_.quantities.ratio


def test_tiny_penalties_end_certified_or_warn():
    X, y = groups(15, n=80, d=2)
    try:
        machine = FisherDiscriminant(Gaussian(3.0), penalty=1e-9).fit(X, y)
    except ConvergenceWarning:
        return
    assert machine.certificate_.ok


def test_clone_and_refit_with_another_kernel():
    machine = clone(FisherDiscriminant()).fit(X_IRIS, Y_IRIS)
    machine.set_params(kernel=Gaussian(2.0)).fit(X_IRIS, Y_IRIS)
    assert machine.dual_coef_.shape == (150, 2)
    with pytest.raises(AttributeError, match="scalings_"):
        _ = machine.scalings_


# --- what solvers must do ----------------------------------------------------------------------


def test_an_indefinite_matrix_is_named():
    X, y = groups(16, n=40)
    K = np.round(3 * X @ X.T)  # rounding makes it indefinite
    machine = FisherDiscriminant(Precomputed(), penalty=1e-4)
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        machine.fit(K, y)
    assert machine.solution_.status is Status.NOT_CONVEX
    assert np.isfinite(machine.transform(K)).all()


def test_callbacks_are_told_and_memory_is_asked_for_first():
    seen = []
    FisherDiscriminant(Gaussian(1.0), callback=seen.append).fit(X_IRIS, Y_IRIS)
    assert [progress.iteration for progress in seen] == [1, 2]
    X, y = groups(17, n=3000)
    with mercer.config(memory="50MB"), pytest.raises(mercer.MemoryBudgetError, match="3000"):
        FisherDiscriminant(Gaussian(1.0), approximation=None).fit(X, y)


def test_the_centred_matrix_is_what_its_formula_says():
    from mercer.machines.discriminant.solvers import centred_matrix

    X, y = groups(18, n=150, classes=4)
    K = Gaussian(2.0)(X, X)
    q = np.random.default_rng(0).uniform(0.1, 1.0, 150)
    problem = Discriminant(make_gram(Gaussian(2.0), X, Need.MATRIX), y, q, np.full(4, 0.25), 0.3, 3)
    A = centred_matrix(problem, K @ problem.averages)
    away = np.eye(150) - (problem.averages @ np.eye(4)[:, y]).T
    expected = np.sqrt(q)[:, None] * (away @ K @ away.T) * np.sqrt(q) + 0.3 * np.eye(150)
    assert_allclose(np.tril(A), np.tril(expected), atol=1e-12)


def test_offsets_of_a_kernel_do_not_matter():
    X, y = groups(19, n=50)
    base = FisherDiscriminant(Gaussian(2.0), penalty=1e-2).fit(X, y)
    shifted = FisherDiscriminant(5.0 * Gaussian(2.0) + 100.0, penalty=1e-2).fit(X, y)
    assert_allclose(shifted.ratios_, base.ratios_, rtol=1e-8)
    assert_allclose(shifted.predict_proba(X), base.predict_proba(X), atol=1e-8)


# --- far origins, constants, certificates that see what is missing -------------------------------


def test_a_constant_column_needs_a_penalty():
    X, y = groups(20, n=200)
    for constant in (1.0, 0.1, 1e6):
        wide = np.hstack([X, np.full((200, 1), constant)])
        with pytest.raises(np.linalg.LinAlgError, match=r"FisherDiscriminant: .*larger penalty"):
            FisherDiscriminant(penalty=0.0).fit(wide, y)
        machine = FisherDiscriminant(penalty=1e-9).fit(wide, y)
        theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
        assert_allclose(machine.predict_proba(wide), theirs.predict_proba(X), atol=1e-5)


def test_a_far_origin_costs_nothing():
    X, y = groups(21, n=60, d=100)
    base = FisherDiscriminant().fit(X, y)
    moved = FisherDiscriminant().fit(X + 1e6, y)
    assert_allclose(moved.ratios_, base.ratios_, rtol=1e-6)
    assert_allclose(moved.transform(X[:9] + 1e6), base.transform(X[:9]), atol=1e-6)
    assert moved.certificate_.ok
    assert FisherDiscriminant().fit(X_IRIS + 1e7, Y_IRIS).certificate_.ok
    # nor does it turn directions round, for kernels as for rows
    given = FisherDiscriminant(Precomputed()).fit((X + 30) @ (X + 30).T, y)
    assert_allclose(given.transform((X + 30) @ (X + 30).T), base.transform(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*stopped making progress")  # not certified so far away
def test_sparse_columns_with_a_large_mean():
    X, y = groups(22, n=80)
    X[:, 2] += 1e7
    dense = FisherDiscriminant().fit(X, y)
    thin = FisherDiscriminant().fit(sparse.csr_array(X), y)
    assert_allclose(thin.penalty_, dense.penalty_, rtol=1e-7)
    assert_allclose(thin.ratios_, dense.ratios_, rtol=1e-6)


def test_the_certificate_misses_no_direction():
    X, y = groups(23, n=120, d=5, classes=4)
    for kernel in (Linear(), Gaussian(3.0)):
        q, shares = np.full(120, 1 / 120), np.bincount(y) / 120
        problem = Discriminant(make_gram(kernel, X, Need.MATRIX), y, q, shares, 0.01, 3)
        value = solve(problem).value
        assert certify(problem, value).ok

        def part(columns, value=value):
            held = {"coef": value.coef, "weights": value.weights}
            cut = {name: v if v is None else v[:, columns] for name, v in held.items()}
            return Directions(value.values[columns], **cut)

        for columns in ([0, 1], [2], [1, 2]):
            assert not certify(problem, part(columns)).ok
        first = Discriminant(problem.gram, y, q, shares, 0.01, 1)
        assert certify(first, part([0])).ok
        judged = certify(first, part([2]))
        assert not judged.ok and "not the best" in judged.statement


def test_errors_name_the_machine_and_the_remedy():
    with pytest.raises(ValueError, match="FisherDiscriminant: all rows are equal"):
        FisherDiscriminant(Gaussian(1.0)).fit(np.ones((10, 2)), [0, 1] * 5)
    with pytest.raises(SolverError, match="FisherDiscriminant: without a penalty"):
        FisherDiscriminant(Gaussian(1.0), penalty=0.0).fit(X_IRIS, Y_IRIS)
    even = FisherDiscriminant(prior="uniform").fit(X_IRIS[:120], Y_IRIS[:120])
    assert_allclose(even.prior_, 1 / 3)
    with pytest.raises(mercer.ParameterError, match="prior"):
        FisherDiscriminant(prior="even").fit(X_IRIS, Y_IRIS)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2, 1.0)])
def test_distances_in_units_of_a_singular_covariance_are_refused(kernel):
    X, _ = groups(n=30, d=2)
    y = np.arange(30) == 0  # one row has no covariance
    with pytest.raises(ValueError, match=r"(?s)^FisherDiscriminant.*penalty"):
        FisherDiscriminant(kernel, penalty=0.0, rule="mahalanobis").fit(X, y)


def test_labels_go_by_scores_where_probabilities_are_equal():
    X, y = groups(n=30, d=2, classes=2)
    machine = FisherDiscriminant(Linear(), penalty=1e300, rule="mahalanobis").fit(X, y)
    later = machine.decision_function(X) > 0
    assert_array_equal(machine.predict(X), machine.classes_[later.astype(int)])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_whose_squared_distances_overflow_have_scores():
    X, y = groups(n=30, d=2, classes=2)
    machine = FisherDiscriminant(Linear(), rule="mahalanobis").fit(X, y)
    far = 1e170 * X[:3]
    assert np.isfinite(machine.decision_function(far)).all()
    assert_allclose(machine.predict_proba(far).sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [10.0, 150.0, 2000.0])
def test_kernels_that_hardly_vary_are_judged_within_the_fit(seed, scale):
    """Directions are judged by squares of sums, which cancel long before the sums do."""
    rng = np.random.default_rng(seed)
    X, y = np.round(rng.standard_normal((20, 2))), np.arange(20) % 3
    for constant in (0.05, 5.0):
        machine = FisherDiscriminant(Gaussian(scale) + Constant(constant), penalty=1.0).fit(X, y)
        status = machine.solution_.status
        assert (status is Status.SOLVED) <= machine.certificate_.ok
