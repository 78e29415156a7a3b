"""Shashua, Introduction to Machine Learning, claim by claim, through the public objects."""

import math

import numpy as np
import pytest
from scipy.linalg import eigh, null_space, subspace_angles

from mercer import (
    CCA,
    PCA,
    SVC,
    BernoulliMixture,
    FisherDiscriminant,
    GaussianClassifier,
    GaussianMixture,
    KMeans,
    MaximumEntropy,
    MultinomialMixture,
    SpectralClustering,
)
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.machines.bayes.decision import JointTable
from mercer.theory import (
    HalfSpaces,
    Intervals,
    Rectangles,
    double_sampling_size,
    growth,
    is_shattered,
    margin_dimension,
    rectangle_sample_size,
    relative_entropy,
    sauer,
    vc_dimension,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3))
LABELS = np.where(X[:, 0] + 0.4 * rng.standard_normal(40) > 0, 1, -1)
KERNEL = Gaussian(1.5)
K = KERNEL(X)


# --- lecture 1: Bayes ----------------------------------------------------------------------------


def test_parameters_of_conditional_independence():
    """X and Y independent given H: rank one slices; s(k + r - 2) numbers and s - 1 for P(H)."""
    k, r, s = 3, 4, 2
    prior = rng.dirichlet(np.ones(s))
    x, y = rng.dirichlet(np.ones(k), size=s), rng.dirichlet(np.ones(r), size=s)
    table = np.einsum("h,hi,hj->ijh", prior, x, y)
    for h in range(s):
        assert np.linalg.matrix_rank(table[:, :, h]) == 1
    joint = JointTable(table * 1e6, names=("x", "y", "h"))
    assert joint.information("x", "y", given="h") == pytest.approx(0, abs=1e-12)
    free = s * (k + r - 2) + (s - 1)  # the text leaves out the last s - 1
    assert free == s * (k - 1) + s * (r - 1) + (s - 1)


def test_gaussian_likelihood():
    """mu is the mean, E the mean of (x - mu)(x - mu)', sigma^2 the mean over n columns too."""
    labels = np.zeros(len(X), dtype=int)
    labels[20:] = 1
    full = GaussianClassifier().fit(X, labels)
    first = X[:20] - X[:20].mean(axis=0)
    np.testing.assert_allclose(full.covariance_[0], first.T @ first / 20, atol=1e-12)
    round_ = GaussianClassifier("spherical").fit(X, labels)
    assert np.ravel(round_.covariance_[0])[0] == pytest.approx((first**2).mean())


def test_equal_covariances_give_a_hyperplane():
    """Claim 1: w = E^-1 (mu_1 - mu_2), through the middle of the means for equal priors."""
    machine = GaussianClassifier(shared=True, prior="uniform").fit(X, LABELS)
    means = np.array([X[c == LABELS].mean(axis=0) for c in (-1, 1)])
    spread = X - means[(LABELS > 0).astype(int)]
    w = np.linalg.solve(spread.T @ spread / len(X), means[1] - means[0])
    expected = (X - means.mean(axis=0)) @ w
    np.testing.assert_allclose(machine.decision_function(X), expected, atol=1e-8)


# --- lecture 2: maximum likelihood and maximum entropy -----------------------------------------


def test_empirical_distribution_is_most_likely():
    """Theorems 1 and 2: among all p on the simplex, f / sum f has the largest likelihood."""
    counts = np.array([5.0, 2, 0, 9])
    best = JointTable(counts).probabilities

    def likelihood(p):
        return (counts[counts > 0] * np.log(p[counts > 0])).sum()

    for p in rng.dirichlet(np.ones(4), size=200):
        assert likelihood(p) <= likelihood(best)
        assert relative_entropy(best, p) >= 0
    assert relative_entropy(best, best) == 0


def test_closest_to_uniform_is_the_largest_entropy():
    """D(p || uniform) = ln n - H(p)."""
    p = rng.dirichlet(np.ones(6))
    entropy = -(p * np.log(p)).sum()
    assert relative_entropy(p, np.full(6, 1 / 6)) == pytest.approx(math.log(6) - entropy)


def test_entropy_and_likelihood_are_dual():
    """Theorem 3: the Gibbs distribution that meets the expectations is the most likely one."""
    faces = np.arange(1, 7)
    counts = np.array([1.0, 2, 2, 4, 5, 6])
    die = MaximumEntropy().fit(faces, [faces @ counts / counts.sum()])

    def likelihood(mu):
        log_p = mu * faces - np.log(np.exp(mu * faces).sum())
        return counts @ log_p

    best = die.multipliers_[0]
    for mu in best + np.array([-0.3, -0.01, 0.01, 0.3]):
        assert likelihood(mu) < likelihood(best)


# --- lecture 3: expectation maximisation ---------------------------------------------------------


def test_step_of_two_coins():
    """The update of lambda, p and q from the posteriors mu_i is a fixed point of the fit."""
    chosen = np.random.default_rng(3).random(4000) < 0.35
    heads = np.where(chosen[:, None], 0.9, 0.25)
    tosses = (np.random.default_rng(4).random((4000, 3)) < heads).astype(float)
    machine = BernoulliMixture(2, smoothing=0.0, tol=1e-12, max_iter=5000).fit(tosses)
    posterior = machine.predict_proba(tosses)
    np.testing.assert_allclose(posterior.mean(axis=0), machine.weights_, atol=1e-5)
    shares = posterior.T @ tosses / posterior.sum(axis=0)[:, None]
    np.testing.assert_allclose(shares, machine.means_, atol=1e-5)


def test_step_of_spheres():
    """Updates of weight, centre and variance (divided by the number of columns), eq. 3.10."""
    rows = np.vstack([X, X + 6])
    machine = GaussianMixture(2, covariance="spherical", tol=1e-12, max_iter=5000).fit(rows)
    w = machine.predict_proba(rows)
    np.testing.assert_allclose(w.mean(axis=0), machine.weights_, atol=1e-6)
    centres = w.T @ rows / w.sum(axis=0)[:, None]
    np.testing.assert_allclose(centres, machine.means_, atol=1e-6)
    for j in range(2):
        squares = ((rows - centres[j]) ** 2).sum(axis=1)
        variance = w[:, j] @ squares / w[:, j].sum() / rows.shape[1]
        assert np.ravel(machine.covariances_[j])[0] == pytest.approx(variance, abs=1e-5)


def test_topics_are_a_table_of_low_rank():
    """P(w, d) = sum_j lambda_j u_j v_j': two topics of words that do not meet are found again."""
    table = np.zeros((6, 8))
    table[:3, :4], table[3:, 4:] = 5, 3
    machine = MultinomialMixture(2, smoothing=0.0, document_smoothing=0.0, n_init=5).fit(table.T)
    topics = machine.components_ > 1e-8
    assert sorted(topics.sum(axis=1)) == [3, 3]
    assert not (topics[0] & topics[1]).any()


# --- lecture 4: support vector machines and kernels --------------------------------------------


def test_nu_of_the_text_is_our_cost():
    """Eq. 4.3 to 4.7: nu weighs the sum of slacks and bounds the multipliers, as C does here."""
    nu = 0.8
    machine = SVC(KERNEL, C=nu, tol=1e-10).fit(X, LABELS)
    mu = np.zeros(len(X))
    mu[machine.support_] = np.abs(machine.dual_coef_.ravel())
    assert mu.max() <= nu * (1 + 1e-12)
    slack = np.maximum(0, 1 - LABELS * machine.decision_function(X))
    np.testing.assert_allclose(mu[slack > 1e-5], nu, rtol=1e-7)
    M = LABELS[:, None] * K * LABELS
    theta = mu.sum() - 0.5 * mu @ M @ mu
    assert theta == pytest.approx(0.5 * mu @ M @ mu + nu * slack.sum(), rel=1e-7)


def test_polynomial_map_of_degree_d():
    """C(k + d - 1, d) monomials of one degree, C(k + d, d) up to it, with their coefficients."""
    assert Polynomial(degree=4, offset=0.0).features(3)(X).shape[1] == math.comb(6, 4)
    assert Polynomial(degree=4, offset=1.0).features(3)(X).shape[1] == math.comb(7, 4)
    conic = Polynomial(degree=2, offset=0.5).features(2)(X[:, :2])
    np.testing.assert_allclose(conic @ conic.T, (X[:, :2] @ X[:, :2].T + 0.5) ** 2, atol=1e-12)


# --- lecture 5: principal components, discriminants, correlations ------------------------------


def test_components_are_eigenvectors_of_either_product():
    """U = A Q D^-1/2: the small product gives the eigenvectors of the large one."""
    A = (X - X.mean(axis=0)).T  # columns are points, as in the text
    values, Q = eigh(A.T @ A, subset_by_index=[37, 39])
    U = A @ Q / np.sqrt(values)
    large, vectors = eigh(A @ A.T)
    np.testing.assert_allclose(values, large, atol=1e-10)
    np.testing.assert_allclose(np.abs(vectors.T @ U), np.eye(3), atol=1e-10)
    machine = PCA(2).fit(X)
    assert subspace_angles(machine.components_.T, U[:, 1:]).max() < 1e-8
    y = machine.transform(X)
    assert abs(np.corrcoef(y.T)[0, 1]) < 1e-10  # what PCA decorrelates


def test_distance_to_the_subspace():
    """|phi(x) - U U' phi(x)|^2 = k(x, x) - y'y, without phi."""
    machine = PCA(5, KERNEL).fit(X)
    y = machine.transform(X)
    middle = np.eye(len(X)) - 1 / len(X)
    inside = np.diag(middle @ K @ middle) - (y**2).sum(axis=1)
    assert (inside > -1e-10).all()
    assert inside.sum() == pytest.approx(
        eigh(middle @ K @ middle, eigvals_only=True)[:-5].sum(), abs=1e-8
    )


def test_discriminant_values_are_real():
    """S_w^-1 S_b is not symmetric, yet similar to a symmetric matrix: its eigenvalues are real."""
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    machine = FisherDiscriminant(Linear(), penalty=0.0, weighting="classes").fit(X, classes)
    means = np.array([X[classes == c].mean(axis=0) for c in range(3)])
    within = np.zeros((3, 3))
    for c in range(3):
        rows = X[classes == c] - means[c]
        within += rows.T @ rows / len(rows)
    overall = means - X.mean(axis=0)
    found = np.linalg.eigvals(np.linalg.solve(within, overall.T @ overall))
    assert np.abs(np.imag(found)).max() < 1e-10
    assert (machine.ratios_ > 0).all()


def test_two_class_direction():
    """w is S_w^-1 (mu_1 - mu_2)."""
    machine = FisherDiscriminant(Linear(), penalty=0.0).fit(X, LABELS)
    means = np.array([X[c == LABELS].mean(axis=0) for c in (-1, 1)])
    spread = X - means[(LABELS > 0).astype(int)]
    w = np.linalg.solve(spread.T @ spread, means[1] - means[0])
    direction = np.ravel(machine.scalings_)
    assert abs(direction @ w) == pytest.approx(np.linalg.norm(direction) * np.linalg.norm(w))


def test_correlations_by_qr_and_svd():
    """cos of the principal angles are the singular values of Q_A' Q_B (not their squares)."""
    Y = X[:, :2] + rng.standard_normal((40, 2))
    A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
    QA, QB = np.linalg.qr(A)[0], np.linalg.qr(B)[0]
    singular = np.linalg.svd(QA.T @ QB, compute_uv=False)
    np.testing.assert_allclose(CCA(2, penalty=0.0).fit(X, Y).correlations_, singular, atol=1e-10)
    np.testing.assert_allclose(np.cos(subspace_angles(A, B))[::-1], singular, atol=1e-10)
    E = QA.T @ QB
    np.testing.assert_allclose(
        np.sort(eigh(E.T @ E, eigvals_only=True)), np.sort(singular**2), atol=1e-12
    )


# --- lecture 6: clustering -----------------------------------------------------------------------


def test_feasible_matrices_are_partitions():
    """Claims 4 and 5: G >= 0, G'G = I, GG'1 = 1, and the trace is what K-means maximises."""
    machine = KMeans(3, KERNEL, random_state=0).fit(X)
    member = np.eye(3)[machine.labels_]
    G = member / np.sqrt(member.sum(axis=0))
    np.testing.assert_allclose(G.T @ G, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(G @ G.T @ np.ones(40), 1, atol=1e-12)
    assert machine.inertia_ == pytest.approx(np.trace(K) - np.trace(G.T @ K @ G))


def test_ratio_cut_matrix():
    """K - D + I has rows that sum to one, and eigenvectors of D - K; entries may be negative."""
    D = np.diag(K.sum(axis=1))
    ratio = K - D + np.eye(40)
    np.testing.assert_allclose(ratio.sum(axis=1), 1, atol=1e-10)
    assert np.diag(ratio).min() < 0  # so it is not doubly stochastic, as claim 6 has it
    values, vectors = eigh(D - K)
    np.testing.assert_allclose(ratio @ vectors, vectors * (1 - values), atol=1e-9)
    assert values[0] == pytest.approx(0, abs=1e-10)
    machine = SpectralClustering(2, KERNEL, normalization="ratio", assign="sign").fit(X)
    expected = (vectors[:, 1] > 0).astype(int)
    agreement = (machine.labels_ == expected).mean()
    assert agreement in (0.0, 1.0)


def test_normalised_cut_matrix():
    """D^-1/2 K D^-1/2: eigenvalue one at D^1/2 1, and Nassoc + Ncut = k."""
    d = K.sum(axis=1)
    normalised = K / np.sqrt(np.outer(d, d))
    values, vectors = eigh(normalised)
    assert values[-1] == pytest.approx(1.0)
    np.testing.assert_allclose(np.abs(vectors[:, -1]), np.sqrt(d / d.sum()), atol=1e-8)
    labels = SpectralClustering(3, KERNEL, random_state=0).fit(X).labels_
    member = np.eye(3)[labels]
    inside = np.array([g @ K @ g / (g @ d) for g in member.T])
    cut = np.array([g @ K @ (1 - g) / (g @ d) for g in member.T])
    assert inside.sum() + cut.sum() == pytest.approx(3.0)
    assert inside.sum() <= values[-3:].sum() + 1e-10


# --- lectures 7 and 8: PAC learning ------------------------------------------------------------


def test_rectangles_are_learned():
    """4 (1 - eps/4)^m <= 4 e^(-eps m / 4) <= delta at m = (4 / eps) ln(4 / delta)."""
    eps, delta = 0.1, 0.05
    m = rectangle_sample_size(eps, delta).value
    assert m == math.ceil(4 / eps * math.log(4 / delta))
    assert 4 * (1 - eps / 4) ** m <= 4 * math.exp(-eps * m / 4) <= delta


def test_four_concepts_on_three_points():
    """A class of four cannot shatter three points: 2^3 is eight; VC <= log2 |C|."""
    dichotomies = {(1, 1, 1), (0, 1, 1), (1, 0, 0), (0, 0, 0)}
    assert len(dichotomies) < 2**3
    assert math.log2(4) == 2


def test_dimensions_of_the_examples():
    """Intervals 2, rectangles 4, half-planes 3; a cross of four points is shattered."""
    assert vc_dimension(Intervals(), largest=4) == 2
    cross = np.array([[0, 1.0], [1, 0], [0, -1], [-1, 0]])
    assert is_shattered(Rectangles(), cross)
    assert not is_shattered(Rectangles(), np.vstack([cross, [[0, 0]]]))
    assert is_shattered(HalfSpaces(), np.array([[0, 0], [1, 0], [0, 1.0]]))
    assert not is_shattered(HalfSpaces(), np.array([[0, 0], [1, 1], [1, 0], [0, 1.0]]))


def test_growth_turns_polynomial():
    """Sauer: 2^m up to d, then at most (e m / d)^d."""
    d = 3
    for m in (1, 2, 3):
        assert sauer(d, m) == 2**m
    for m in (4, 10, 50):
        assert sauer(d, m) < 2**m
        assert sauer(d, m) <= (math.e * m / d) ** d
    assert growth(Intervals(), 5) == sauer(2, 5)


def test_error_regions_by_symmetric_difference():
    """Points on which h and c differ are the symmetric difference, not the intersection."""
    sample = np.arange(10.0)
    h, c = sample > 3, sample > 5
    differ = set(sample[h != c])
    s, inside = set(sample[h]), set(sample[c])
    assert differ == s ^ inside
    assert differ != s & inside


def test_double_sampling_and_margins():
    """Accuracy and confidence cost rows; VC of margin gamma <= min(R^2 / gamma^2, n) + 1."""
    base = double_sampling_size(3, 0.1, 0.1).value
    assert double_sampling_size(3, 0.05, 0.1).value > base
    assert double_sampling_size(3, 0.1, 0.01).value > base
    assert margin_dimension(1.0, 0.5, 10).value == 5
    assert margin_dimension(1.0, 1e-3, 10).value == 11


# --- appendix -----------------------------------------------------------------------------


def test_gradient_lies_in_the_span_of_the_constraints():
    """At a constrained optimum the gradient is orthogonal to the null space of the constraints."""
    normal = np.array([[1.0, 2.0, -1.0]])
    P = np.diag([1.0, 2.0, 3.0])
    q = np.array([1.0, -1.0, 0.5])
    top = np.block([[P, normal.T], [normal, np.zeros((1, 1))]])
    x = np.linalg.solve(top, np.concatenate([-q, [1.0]]))[:3]
    np.testing.assert_allclose(null_space(normal).T @ (P @ x + q), 0, atol=1e-12)
