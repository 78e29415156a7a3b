"""Smola and Vishwanathan, and two courses of lectures, through the public objects."""

import math

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from mercer import (
    PCA,
    SVC,
    KernelRidge,
    KMeans,
    LogisticRegression,
    NearestMean,
    NearestNeighbors,
    OneClassSVM,
    Perceptron,
    ProbabilisticPCA,
    Whiten,
)
from mercer.kernels import Gaussian, Linear, Polynomial, is_valid
from mercer.theory import novikoff

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3))
Z = rng.standard_normal((9, 3))
LABELS = np.where(X[:, 0] > 0, 1, -1)
SEPARABLE = X + 0.5 * LABELS[:, None] * [1, 0, 0]


# --- Smola and Vishwanathan: nearest means, perceptron, K-means ----------------------------------


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)], ids=str)
def test_nearest_mean_as_an_expansion(kernel):
    """Eq. 1.22 to 1.24 with the half of the errata: sum a_i k(x_i, x) + b, a_i = y_i / m_y."""
    machine = NearestMean(kernel).fit(X, LABELS)
    plus, minus = LABELS == 1, LABELS == -1
    coef = np.where(plus, 1 / plus.sum(), -1 / minus.sum())
    K = kernel(X)
    b = 0.5 * (K[np.ix_(minus, minus)].mean() - K[np.ix_(plus, plus)].mean())
    f = kernel(Z, X) @ coef + b
    found = machine.decision_function(Z)
    assert (np.sign(found) == np.sign(f)).all()
    np.testing.assert_allclose(found / found[0], f / f[0], rtol=1e-8)  # up to a factor


def test_distances_from_inner_products():
    """Eq. 1.19 to 1.21: |mu - x|^2 = |mu|^2 + |x|^2 - 2 <mu, x>."""
    mean = X.mean(axis=0)
    expected = ((Z - mean) ** 2).sum(axis=1)
    np.testing.assert_allclose(mean @ mean + (Z**2).sum(axis=1) - 2 * Z @ mean, expected)


def test_perceptron_algorithm():
    """Algorithm 1.3, eq. 1.25, 1.26: on a mistake w += y x and b += y; w is a sum of rows."""
    w, b = np.zeros(3), 0.0
    for x, y in zip(SEPARABLE, LABELS, strict=True):
        if y * (w @ x + b) <= 0:
            w, b = w + y * x, b + y
    machine = Perceptron(max_epochs=1, shuffle=False)
    for x, y in zip(SEPARABLE, LABELS, strict=True):
        machine.partial_fit([x], [y], classes=[-1, 1])
    np.testing.assert_allclose(np.ravel(machine.coef_), w, atol=1e-12)
    assert np.ravel(machine.intercept_)[0] == pytest.approx(b)


def test_kernel_perceptron_is_the_perceptron():
    """Algorithm 1.4 with the linear kernel gives the values of algorithm 1.3."""
    primal = Perceptron(shuffle=False).fit(SEPARABLE, LABELS)
    rows = SEPARABLE @ SEPARABLE.T
    dual = Perceptron("precomputed", shuffle=False).fit(rows, LABELS)
    np.testing.assert_allclose(
        primal.decision_function(Z), dual.decision_function(Z @ SEPARABLE.T), atol=1e-9
    )


def test_novikoffs_theorem():
    """Theorem 1.7: at most (1 + R^2)(1 + b*^2) / gamma^2 mistakes, for any separating w*, b*."""
    best = SVC(Linear(), C=np.inf).fit(SEPARABLE, LABELS)
    w, b = np.ravel(best.coef_), np.ravel(best.intercept_)[0]
    size = np.linalg.norm(w)
    gamma = (LABELS * (SEPARABLE @ w + b)).min() / size
    radius = np.linalg.norm(SEPARABLE, axis=1).max()
    bound = (1 + radius**2) * (1 + (b / size) ** 2) / gamma**2
    machine = Perceptron(shuffle=False).fit(SEPARABLE, LABELS)
    assert machine.mistakes_ <= bound
    # the same by the theorem without an offset, on rows with a column of ones
    lifted = np.hstack([SEPARABLE, np.ones((40, 1))])
    direction = np.append(w, b) / np.linalg.norm(np.append(w, b))
    margin = (LABELS * (lifted @ direction)).min()
    length = np.linalg.norm(lifted, axis=1).max()
    assert machine.mistakes_ <= novikoff(length, margin).value


def test_kmeans_by_hand():
    """Section 1.3.5: rows go to the nearest mean, means to the middle of their rows."""
    machine = KMeans(3, random_state=0).fit(X)
    means = np.array([X[machine.labels_ == j].mean(axis=0) for j in range(3)])
    nearest = ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == machine.labels_).all()


# --- course lectures: principal components, ridge, kernels, margins ------------------------------


def test_components_of_largest_variance():
    """Lecture 10.1: S u = lambda u, Var = u'Su, the projection decorrelates, shares explained."""
    machine = PCA(2).fit(X)
    S = np.cov(X.T, bias=True)
    values, vectors = eigh(S)
    assert subspace_angles(machine.components_.T, vectors[:, 1:]).max() < 1e-8
    scores = machine.transform(X)
    np.testing.assert_allclose(np.cov(scores.T, bias=True), np.diag(values[:0:-1]), atol=1e-10)
    share = machine.explained_variance_ratio_
    np.testing.assert_allclose(share, values[:0:-1] / np.trace(S), atol=1e-10)


def test_smallest_reconstruction_error():
    """Lecture 10.2: what is left out is the sum of the discarded eigenvalues."""
    machine = PCA(2).fit(X)
    back = machine.inverse_transform(machine.transform(X))
    left = ((X - back) ** 2).sum(axis=1).mean()
    assert left == pytest.approx(eigh(np.cov(X.T, bias=True), eigvals_only=True)[0])


def test_whitening():
    """z = Lambda^-1/2 U'(x - mean)."""
    values, vectors = eigh(np.cov(X.T))
    z = (X - X.mean(axis=0)) @ vectors / np.sqrt(values)
    np.testing.assert_allclose(np.abs(Whiten().fit_transform(X)), np.abs(z[:, ::-1]), atol=1e-10)


def test_encoder_and_decoder_of_pca():
    """z = W x + b with W = U' and b = -U' mean (the text has no minus); x = U z + mean."""
    machine = PCA(2).fit(X)
    U = machine.components_.T
    np.testing.assert_allclose(X @ U - U.T @ machine.mean_, machine.transform(X), atol=1e-12)


def test_probabilistic_components():
    """The catch-up: maximum likelihood of a Gaussian with covariance W W' + sigma^2 I."""
    machine = ProbabilisticPCA(2).fit(X)
    values = eigh(np.cov(X.T, bias=True), eigvals_only=True)
    assert machine.noise_variance_ == pytest.approx(values[0])


def test_kernel_projection():
    """z_i(x) = sum_n a_in k(x, x_n): the projection is in terms of the rows."""
    kernel = Gaussian(1.0)
    machine = PCA(2, kernel).fit(X)
    K = kernel(Z, X)
    centred = K - K.mean(axis=1, keepdims=True) - kernel(X).mean(axis=0) + kernel(X).mean()
    np.testing.assert_allclose(centred @ machine.dual_coef_, machine.transform(Z), atol=1e-8)


def test_primal_and_dual_ridge():
    """Lecture 11.1: w = (Phi'Phi + lambda)^-1 Phi't and a = (K + lambda)^-1 t predict alike."""
    t = X[:, 0] ** 2 + X[:, 1]
    kernel, penalty = Polynomial(degree=2, offset=1.0), 0.3
    phi = kernel.features(3)
    design = phi(X)
    w = np.linalg.solve(design.T @ design + penalty * np.eye(design.shape[1]), design.T @ t)
    machine = KernelRidge(penalty, kernel, bias=False).fit(X, t)
    np.testing.assert_allclose(machine.predict(Z), phi(Z) @ w, atol=1e-8)
    a = np.linalg.solve(kernel(X) + penalty * np.eye(40), t)
    np.testing.assert_allclose(machine.predict(Z), kernel(Z, X) @ a, atol=1e-8)


def test_infinite_map_of_the_gaussian():
    """Lecture 11.2: e^(-x^2/2) x^k / sqrt(k!) and its products sum to the kernel."""
    x, y = 0.7, -1.3
    terms = [math.exp(-(x * x + y * y) / 2) * (x * y) ** k / math.factorial(k) for k in range(40)]
    assert sum(terms) == pytest.approx(Gaussian(1.0)([[x]], [[y]])[0, 0], abs=1e-15)


def test_map_of_degree_two():
    """(1 + x'z)^2 in two columns has the six features of the slide, up to their order."""
    row = np.array([[0.3, -1.1]])
    a, b = row[0]
    root = math.sqrt(2)
    slide = sorted([1, root * a, root * b, a * a, b * b, root * a * b])
    found = Polynomial(degree=2, offset=1.0).features(2)(row)
    np.testing.assert_allclose(np.sort(np.ravel(found)), slide, atol=1e-12)


def test_matrices_of_maps_are_positive():
    """z'Kz = |Phi' z|^2 (the text has |Phi z|^2, whose shapes do not fit)."""
    phi = Polynomial(degree=2, offset=1.0).features(3)(X)
    z = rng.standard_normal(40)
    assert z @ phi @ phi.T @ z == pytest.approx(np.sum((phi.T @ z) ** 2))
    assert phi.shape[1] != len(z)
    assert is_valid(Gaussian(1.0), X)


def test_margin_of_the_canonical_form():
    """Course lecture 11.3 and classifier lecture: min t_n y(x_n) = 1 and the margin is 1 / |w|."""
    machine = SVC(Linear(), C=np.inf, tol=1e-9).fit(SEPARABLE, LABELS)
    assert (LABELS * machine.decision_function(SEPARABLE)).min() == pytest.approx(1, abs=1e-6)
    w = np.linalg.norm(machine.coef_)
    assert machine.certificate_.quantities.margin == pytest.approx(1 / w, rel=1e-6)


def test_novelty_detection():
    """Named in lecture 11.3: at most a share nu of the rows is left outside."""
    machine = OneClassSVM(Gaussian(1.0), nu=0.2, tol=1e-8).fit(X)
    assert (machine.decision_function(X) < -1e-6).mean() <= 0.2


# --- classifier lecture: linear classifiers and kernels ------------------------------------------


def test_update_as_a_gradient_step():
    """theta + (y - sign(theta'x)) / 2 x is the step of the perceptron, no step where right."""
    for theta in rng.standard_normal((20, 3)):
        for x, y in zip(X[:5], LABELS[:5], strict=True):
            sign = 1 if theta @ x > 0 else -1
            by_rule = theta + y * x if sign != y else theta
            np.testing.assert_allclose(theta + (y - sign) / 2 * x, by_rule)


def test_step_of_logistic_regression():
    """The gradient of the log loss in one row is (p - y) x, with y of 0 or 1."""
    machine = LogisticRegression(penalty=1.0).fit(X, LABELS)
    p = machine.predict_proba(X)[:, 1]
    gradient = X.T @ (p - (LABELS > 0))
    # sum of log losses + penalty / 2 |w|^2, or with another factor: parallel to w at the optimum
    w = np.ravel(machine.coef_)
    cosine = -gradient @ w / np.linalg.norm(gradient) / np.linalg.norm(w)
    assert cosine == pytest.approx(1.0, abs=1e-6)
    assert (p - (LABELS > 0)).sum() == pytest.approx(0, abs=1e-5)


def test_distance_to_a_hyperplane():
    """|w'z + b| / |w|."""
    machine = SVC(Linear()).fit(X, LABELS)
    w, b = np.ravel(machine.coef_), np.ravel(machine.intercept_)[0]
    foot = Z - ((Z @ w + b) / (w @ w))[:, None] * w
    np.testing.assert_allclose(machine.decision_function(foot), 0, atol=1e-10)
    distance = np.abs(machine.decision_function(Z)) / np.linalg.norm(w)
    np.testing.assert_allclose(np.linalg.norm(Z - foot, axis=1), distance, atol=1e-10)


def test_cost_over_n():
    """The lecture's C / n: their C = n is our C = 1, and the error is at most the mean slack."""
    theirs = 25.0
    machine = SVC(Gaussian(1.0), C=theirs / len(X), tol=1e-9).fit(X, LABELS)
    values = LABELS * machine.decision_function(X)
    assert np.mean(values < 0) <= np.maximum(0, 1 - values).mean()
    assert np.abs(machine.dual_coef_).max() <= theirs / len(X) * (1 + 1e-12)


def test_a_circle_becomes_a_plane():
    """w = (-tau, 0, 0, 0, 1, 1) on 1, x1, x2, x1 x2, x1^2, x2^2 parts a disc from its outside."""
    tau = 1.0
    inside = (X[:, :2] ** 2).sum(axis=1) < tau
    a, b = X[:, 0], X[:, 1]
    design = np.column_stack([np.ones(40), a, b, a * b, a * a, b * b])
    assert ((design @ [-tau, 0, 0, 0, 1, 1] < 0) == inside).all()
    machine = SVC(Polynomial(degree=2, offset=1.0), C=np.inf).fit(X[:, :2], inside)
    assert machine.score(X[:, :2], inside) == 1.0


def test_neighbours_in_feature_space():
    """|Phi(x) - Phi(x_i)|^2 = k(x, x) - 2 k(x, x_i) + k(x_i, x_i)."""
    kernel = Polynomial(degree=2, offset=1.0)
    phi = kernel.features(3)
    by_map = ((phi(Z)[:, None] - phi(X)) ** 2).sum(axis=2)
    diagonal = np.diag(kernel(Z))[:, None] - 2 * kernel(Z, X) + np.diag(kernel(X))
    np.testing.assert_allclose(by_map, diagonal, atol=1e-9)
    machine = NearestNeighbors(1, kernel).fit(X, LABELS)
    assert (machine.predict(Z) == LABELS[by_map.argmin(axis=1)]).all()


def test_dimension_of_the_quadratic_kernel():
    """d + d (d - 1) / 2 features for (u'v)^2."""
    for d in (2, 3, 6):
        size = Polynomial(degree=2, offset=0.0).features(d)(np.ones((1, d))).shape[1]
        assert size == d + d * (d - 1) // 2
