"""Welling, A First Encounter with Machine Learning: each equation, through the public objects."""

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.preprocessing import StandardScaler

from mercer import (
    CCA,
    PCA,
    SVC,
    SVR,
    FisherDiscriminant,
    KernelRidge,
    KMeans,
    LogisticRegression,
    LogShift,
    NaiveBayes,
    SpectralClustering,
    Whiten,
)
from mercer.kernels import AllSubsets, Gaussian, Linear, Polynomial

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3))
Z = rng.standard_normal((7, 3))
LABELS = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.standard_normal(40) > 0.4, 1, -1)
TARGETS = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(40)
KERNEL = Gaussian(1.2)
K = KERNEL(X)


def test_centre_then_scale():
    """Eq. 1.1 to 1.4: subtract the mean, then divide by the root of the mean square."""
    centred = X - X.mean(axis=0)
    sphered = centred / np.sqrt((centred**2).mean(axis=0))
    np.testing.assert_allclose(StandardScaler().fit_transform(X), sphered)


def test_rotate_and_scale():
    """Section 1.2: centre, rotate to the axes, scale: the covariance becomes the identity."""
    white = Whiten().fit_transform(X)
    np.testing.assert_allclose(np.cov(white.T), np.eye(3), atol=1e-12)


def test_logarithm_of_a_shift():
    """Eq. 1.5: log(a + x)."""
    positive = np.exp(X)
    found = LogShift(shift=0.5).fit_transform(positive)
    np.testing.assert_allclose(found, np.log(0.5 + positive))


def test_random_projections_look_gaussian():
    """Chapter 2: the sum of many independent columns has the bell shape; one column has not."""
    coins = np.random.default_rng(1).choice([-1.0, 1.0], size=(4000, 100))
    direction = np.random.default_rng(2).standard_normal(100)
    projected = coins @ direction / np.linalg.norm(direction)
    kurtosis = (projected**4).mean() / (projected**2).mean() ** 2
    assert kurtosis == pytest.approx(3.0, abs=0.3)
    assert (coins[:, 0] ** 4).mean() / (coins[:, 0] ** 2).mean() ** 2 == 1.0
    assert 100 * 99 // 2 == 4950  # "4950 projections for 100 dimensional data"


def counts_of_mail():
    mail = np.array([[0, 1], [1, 2], [2, 0], [0, 0], [0, 1], [1, 0]])
    spam = np.array([1, 1, 1, 0, 0, 0])
    return mail, spam


def test_naive_bayes_counts():
    """Eq. 6.1 to 6.8 and 6.12, 6.13: shares, smoothed shares, sums of logarithms."""
    mail, spam = counts_of_mail()
    alpha, values = 0.5, 3
    machine = NaiveBayes(alpha, kinds="categorical").fit(mail, spam)
    new = np.array([1, 0])
    scores = []
    for label in (0, 1):
        rows = mail[spam == label]
        score = np.log(len(rows) / len(mail))
        for i, value in enumerate(new):
            seen = len(np.unique(mail[:, i]))
            assert seen == values
            score += np.log((alpha + (rows[:, i] == value).sum()) / (values * alpha + len(rows)))
        scores.append(score)
    found = machine.predict_log_proba([new])[0]
    assert found[1] - found[0] == pytest.approx(scores[1] - scores[0], abs=1e-12)


def test_threshold_of_naive_bayes():
    """Eq. 6.9, 6.10: label 1 where S1 > S0 + theta; all or nothing at theta of -inf and inf."""
    mail, spam = counts_of_mail()
    difference = np.diff(NaiveBayes(kinds="categorical").fit(mail, spam).predict_log_proba(mail))
    for theta in (-1.0, 0.3, 1.0):
        machine = NaiveBayes(kinds="categorical", threshold=theta).fit(mail, spam)
        assert (machine.predict(mail) == (difference[:, 0] > theta)).all()


def test_cost_and_gradient_of_least_squares():
    """Eq. 7.2 to 7.7: where plain gradient steps end, and LogisticRegression(loss="squared")."""
    N, w, alpha = len(X), np.zeros(3), 0.0
    for _ in range(4000):
        residual = LABELS - X @ w + alpha
        w, alpha = w + 0.3 * X.T @ residual / N, alpha - 0.3 * residual.mean()
    # the cost has no penalty; with the sum of squares in place of half the mean, nor have we
    machine = LogisticRegression(Linear(), loss="squared", penalty=1e-10)
    found = machine.fit(X, LABELS)
    np.testing.assert_allclose(found.coef_.ravel(), w, atol=1e-6)
    assert np.ravel(found.intercept_)[0] == pytest.approx(-alpha, abs=1e-6)


def test_bounded_loss():
    """Eq. 7.10: every term of the tanh cost lies between -1 and 1, never near 2."""
    margins = np.array([-1e9, -3.0, 0.0, 3.0, 1e9])
    assert np.abs(np.tanh(margins)).max() == 1.0
    machine = LogisticRegression(Linear(), loss="tanh").fit(X, LABELS)
    assert machine.score(X, LABELS) > 0.6


def test_hard_margin_conditions():
    """Eq. 8.5 to 8.18: w, the multipliers' signs, complementary slackness, b, margin 2 / |w|."""
    y = np.where(X[:, 0] > 0, 1, -1)
    rows = X + 1.0 * y[:, None] * [1, 0, 0]
    machine = SVC(Linear(), C=np.inf, tol=1e-10).fit(rows, y)
    multipliers = machine.dual_coef_.ravel() * y[machine.support_]
    assert (multipliers > 0).all()  # 8.15
    weights = machine.dual_coef_.ravel() @ rows[machine.support_]
    np.testing.assert_allclose(machine.coef_.ravel(), weights, atol=1e-8)  # 8.12
    assert machine.dual_coef_.sum() == pytest.approx(0, abs=1e-9)  # 8.13
    values = y * machine.decision_function(rows)
    assert values.min() > 1 - 1e-7  # 8.14
    np.testing.assert_allclose(values[machine.support_], 1, atol=1e-6)  # 8.16
    b = rows[machine.support_] @ weights - y[machine.support_]  # 8.18, their sign of b
    np.testing.assert_allclose(b, -np.ravel(machine.intercept_)[0], atol=1e-6)
    margin = machine.certificate_.quantities.margin
    assert 2 * margin == pytest.approx(2 / np.linalg.norm(weights), rel=1e-6)
    # the primal and the dual of 8.6 and 8.10 meet
    assert multipliers.sum() - 0.5 * weights @ weights == pytest.approx(
        0.5 * weights @ weights, rel=1e-6
    )


def test_soft_margin_zones():
    """Eq. 8.19 to 8.36: 0, between 0 and C, and C are behind, on and inside the margin."""
    C = 1.7
    machine = SVC(KERNEL, C=C, tol=1e-10).fit(X, LABELS)
    alpha = np.zeros(len(X))
    alpha[machine.support_] = np.abs(machine.dual_coef_.ravel())
    values = LABELS * machine.decision_function(X)
    slack = np.maximum(0, 1 - values)
    assert ((alpha >= 0) & (alpha <= C * (1 + 1e-12))).all()  # 8.36
    assert values[alpha == 0].min() > 1 - 1e-6
    free = (alpha > 1e-6) & (alpha < C - 1e-6)
    np.testing.assert_allclose(values[free], 1, atol=1e-5)
    np.testing.assert_allclose(alpha[slack > 1e-5], C, rtol=1e-6)
    assert (values < 0).sum() <= slack.sum()  # "an upper bound on the number of violations"
    signed = alpha * LABELS
    primal = 0.5 * signed @ K @ signed + C * slack.sum()  # 8.22
    dual = alpha.sum() - 0.5 * signed @ K @ signed  # 8.35
    assert primal == pytest.approx(dual, rel=1e-7)


def test_squared_tube():
    """Eq. 9.1 to 9.10: their C on half the sum of squares is twice ours; slack is alpha / C."""
    book, epsilon = 4.0, 0.1
    machine = SVR(KERNEL, C=book / 2, epsilon=epsilon, tube="l2", tol=1e-10).fit(X, TARGETS)
    beta = np.zeros(len(X))
    beta[machine.support_] = machine.dual_coef_
    assert beta.sum() == pytest.approx(0, abs=1e-9)
    outside = np.maximum(np.abs(TARGETS - machine.predict(X)) - epsilon, 0)
    np.testing.assert_allclose(outside, np.abs(beta) / book, atol=1e-6)  # 9.4
    dual = (  # 9.9
        -0.5 * beta @ (K + np.eye(len(X)) / book) @ beta
        + beta @ TARGETS
        - epsilon * np.abs(beta).sum()
    )
    primal = 0.5 * beta @ K @ beta + book / 2 * (outside**2).sum()  # 9.1
    assert primal == pytest.approx(dual, rel=1e-7)


def test_absolute_tube():
    """Eq. 9.11 to 9.14: the box replaces the squares."""
    C, epsilon = 1.5, 0.1
    machine = SVR(KERNEL, C=C, epsilon=epsilon, tol=1e-10).fit(X, TARGETS)
    beta = np.zeros(len(X))
    beta[machine.support_] = machine.dual_coef_
    assert np.abs(beta).max() <= C * (1 + 1e-12)
    outside = np.maximum(np.abs(TARGETS - machine.predict(X)) - epsilon, 0)
    primal = 0.5 * beta @ K @ beta + C * outside.sum()
    dual = -0.5 * beta @ K @ beta + beta @ TARGETS - epsilon * np.abs(beta).sum()
    assert primal == pytest.approx(dual, rel=1e-7)
    assert (beta[np.abs(TARGETS - machine.predict(X)) < epsilon - 1e-6] == 0).all()


def test_ridge_in_both_spaces():
    """Eq. 10.3, 10.5, 10.6, 10.14: one answer from d x d and from n x n."""
    penalty = 0.7
    primal = np.linalg.solve(penalty * np.eye(3) + X.T @ X, X.T @ TARGETS)
    dual = X.T @ np.linalg.solve(X @ X.T + penalty * np.eye(len(X)), TARGETS)
    np.testing.assert_allclose(primal, dual, atol=1e-12)
    linear = KernelRidge(penalty, Linear(), bias=False).fit(X, TARGETS)
    np.testing.assert_allclose(linear.predict(Z), Z @ primal, atol=1e-10)
    kernel = KernelRidge(penalty, KERNEL, bias=False).fit(X, TARGETS)
    alpha = np.linalg.solve(K + penalty * np.eye(len(X)), TARGETS)
    np.testing.assert_allclose(kernel.predict(Z), KERNEL(Z, X) @ alpha, atol=1e-10)


def test_ridge_as_a_constrained_problem():
    """Eq. 10.8 to 10.13: with B the norm at the optimum, primal and dual objectives meet."""
    penalty = 0.7
    alpha = np.linalg.solve(K + penalty * np.eye(len(X)), TARGETS)
    norm = alpha @ K @ alpha
    primal = ((TARGETS - K @ alpha) ** 2).sum()
    dual = (
        -(penalty**2) * alpha @ alpha
        + 2 * penalty * alpha @ TARGETS
        - penalty * alpha @ K @ alpha
        - penalty * norm
    )
    assert primal == pytest.approx(dual, rel=1e-10)
    np.testing.assert_allclose(TARGETS - K @ alpha, penalty * alpha, atol=1e-10)  # 10.11


def test_kmeans_as_a_trace():
    """Eq. 11.1 to 11.10 (arg min in 11.2): cost, means and tr K - tr L^1/2 Z'KZ L^1/2."""
    machine = KMeans(n_clusters=3, kernel=KERNEL, random_state=0).fit(X)
    member = np.eye(3)[machine.labels_]
    shares = np.diag(1 / member.sum(axis=0))
    cost = np.trace(K) - np.trace(np.sqrt(shares) @ member.T @ K @ member @ np.sqrt(shares))
    assert machine.inertia_ == pytest.approx(cost, rel=1e-10)
    projection = member @ shares @ member.T
    np.testing.assert_allclose(projection @ projection, projection, atol=1e-12)


def test_relaxed_clusters_are_eigenvectors():
    """Eq. 11.13 to 11.17: the k largest eigenvectors bound the trace; rows are normalised."""
    machine = SpectralClustering(
        n_clusters=3, kernel=KERNEL, normalization="plain", random_state=0
    ).fit(X)
    values, vectors = eigh(K, subset_by_index=[len(X) - 3, len(X) - 1])
    member = np.eye(3)[machine.labels_]
    scaled = member / np.sqrt(member.sum(axis=0))
    assert np.trace(scaled.T @ K @ scaled) <= values.sum() + 1e-10
    assert np.trace(vectors.T @ K @ vectors) == pytest.approx(values.sum())


def test_pca_in_the_span():
    """Eq. 12.1 to 12.10 and 12.11 to 12.18: eigenvectors through K, centred, for new rows too."""
    machine = PCA(3, KERNEL).fit(X)
    N = len(X)
    middle = np.eye(N) - 1 / N
    centred = middle @ K @ middle
    values, vectors = eigh(centred, subset_by_index=[N - 3, N - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    alpha = vectors / np.sqrt(values)  # 12.9
    new = KERNEL(Z, X)
    new_centred = new - new.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()  # 12.18
    expected = new_centred @ alpha
    np.testing.assert_allclose(np.abs(machine.transform(Z)), np.abs(expected), atol=1e-8)
    scores = machine.transform(X)
    np.testing.assert_allclose(scores.T @ scores / N, np.diag(values) / N, atol=1e-8)  # 12.4


def test_fisher_scatter():
    """Eq. 13.1 to 13.13: the total scatter is the sum, the ratio is the eigenvalue."""
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    total = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    means = np.array([X[classes == c].mean(axis=0) for c in range(3)])
    counts = np.bincount(classes)
    between = (means - X.mean(axis=0)).T @ np.diag(counts) @ (means - X.mean(axis=0))
    within = sum((X[classes == c] - means[c]).T @ (X[classes == c] - means[c]) for c in range(3))
    np.testing.assert_allclose(total, within + between, atol=1e-10)  # 13.6
    values = eigh(between, within, eigvals_only=True)[::-1][:2]
    machine = FisherDiscriminant(Linear(), penalty=0.0).fit(X, classes)
    np.testing.assert_allclose(machine.ratios_, values, rtol=1e-8)
    two = LABELS > 0  # S_B = N1 N2 / N S'_B
    split = X[two].mean(axis=0) - X[~two].mean(axis=0)
    both = sum(
        c.sum() * np.outer(X[c].mean(axis=0) - X.mean(axis=0), X[c].mean(axis=0) - X.mean(axis=0))
        for c in (two, ~two)
    )
    factor = two.sum() * (~two).sum() / len(X)
    np.testing.assert_allclose(both, factor * np.outer(split, split), atol=1e-10)


def test_fisher_scatter_of_a_kernel():
    """Eq. 13.15 to 13.19: scatter matrices of the coefficients, from the kernel only."""
    classes = (LABELS > 0).astype(int)
    N, counts = len(X), np.bincount(classes)
    means = np.array([K[classes == c].mean(axis=0) for c in (0, 1)])
    overall = K.mean(axis=0)
    between = sum(counts[c] * np.outer(means[c], means[c]) for c in (0, 1))
    between = between - N * np.outer(overall, overall)
    within = K @ K - sum(counts[c] * np.outer(means[c], means[c]) for c in (0, 1))
    features = np.linalg.cholesky(K + 1e-13 * np.eye(N))
    centres = np.array([features[classes == c].mean(axis=0) for c in (0, 1)])
    spread = features - centres[classes]
    np.testing.assert_allclose(within, features @ spread.T @ spread @ features.T, atol=1e-8)
    shift = centres - features.mean(axis=0)
    np.testing.assert_allclose(
        between, features @ shift.T @ np.diag(counts) @ shift @ features.T, atol=1e-8
    )


def test_correlations():
    """Eq. 14.1 to 14.6 (with S_D whitened): correlations are generalised eigenvalues."""
    Y = X @ rng.standard_normal((3, 2)) + rng.standard_normal((40, 2))
    machine = CCA(n_components=2, penalty=0.0).fit(X, Y)
    A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
    off = np.block([[np.zeros((3, 3)), A.T @ B], [B.T @ A, np.zeros((2, 2))]])
    diagonal = np.block([[A.T @ A, np.zeros((3, 2))], [np.zeros((2, 3)), B.T @ B]])
    values = eigh(off, diagonal, eigvals_only=True)[::-1]
    np.testing.assert_allclose(machine.correlations_, values[:2], atol=1e-10)
    np.testing.assert_allclose(values[:2], -values[::-1][:2], atol=1e-10)  # hence no square root


def test_kernel_correlations_need_a_penalty():
    """Eq. 14.9 to 14.14: full rank and no penalty gives 1; eta on the lengths gives less."""
    Y = rng.standard_normal((40, 2))
    eta = 0.5
    Ky = Gaussian(1.0)(Y)
    middle = np.eye(40) - 1 / 40
    Kx, Ky = middle @ K @ middle, middle @ Ky @ middle
    off = np.block([[np.zeros((40, 40)), Kx @ Ky], [Ky @ Kx, np.zeros((40, 40))]])
    ridge = eta * np.eye(40)
    zero = np.zeros((40, 40))
    diagonal = np.block([[Kx @ Kx + ridge, zero], [zero, Ky @ Ky + ridge]])
    wanted = eigh(off, diagonal, eigvals_only=True)[::-1][:2]
    machine = CCA(
        kernel_x=KERNEL,
        kernel_y=Gaussian(1.0),
        n_components=2,
        penalty=(np.sqrt(eta) / np.trace(Kx), np.sqrt(eta) / np.trace(Ky)),
        form="lengths",
    ).fit(X, Y)
    np.testing.assert_allclose(machine.correlations_, wanted, atol=1e-8)
    assert wanted[0] < 1


def test_polynomial_features():
    """Eq. B.1 to B.5 (with s <= d): (n + d)! / (n! d!) monomials with their coefficients."""
    kernel = Polynomial(degree=3, offset=2.0)
    features = kernel.features(3)(X)
    assert features.shape[1] == 20  # 6! / (3! 3!)
    np.testing.assert_allclose(features @ features.T, (2.0 + X @ X.T) ** 3, atol=1e-10)


def test_all_subsets():
    """Eq. B.6, B.7: the product of 1 + x_i y_i over the columns, 2^n features."""
    features = AllSubsets().features(3)(X)
    assert features.shape[1] == 8
    np.testing.assert_allclose(features @ features.T, (1 + X[:, None] * X).prod(axis=2), atol=1e-12)


def test_widths_of_the_gaussian():
    """Section B.3: K is the identity for a small width, all ones for a large one; unit lengths."""
    np.testing.assert_allclose(Gaussian(1e-3)(X), np.eye(len(X)), atol=1e-12)
    np.testing.assert_allclose(Gaussian(1e6)(X), 1, atol=1e-10)
    assert (np.diag(K) == 1).all()
    assert (K > 0).all()
