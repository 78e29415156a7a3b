"""Learning a kernel: alignment, weights of sums, one scale per feature, against other sources."""

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.gaussian_process.kernels import ConstantKernel as Variance
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer import PCA, SVC, KernelRidge
from mercer.certificates import certify
from mercer.deadline import TimeLimitError
from mercer.gram import PrecomputedGram
from mercer.kernels import (
    Constant,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    Tanimoto,
    exp,
)
from mercer.machines.kernel_learning.problem import LeaveOneOut, Likelihood, Relevance, Scaled
from mercer.machines.kernel_learning.scales import scale_family
from mercer.machines.kernel_learning.solvers import measured
from mercer.machines.svm import problem as svm
from mercer.problems import KernelCombination
from mercer.selection import (
    MultipleKernel,
    Tuned,
    alignment,
    combine,
    cross_validate,
    learn_scales,
)
from mercer.solvers import SimplexNewton, Status, Watch, solve
from mercer.solvers.bounded_descent import BestSeen, bounded_descent

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 4))
LABELS = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.2 * RNG.normal(size=60) > 0, "yes", "no")
NUMBERS = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=60)
THREE = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.4, 0.6])
KERNELS = [Gaussian(1.0), Gaussian(3.0).on([0, 1]), Linear(), Laplacian(2.0).on([2, 3])]


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def cosine(A, B):
    return np.sum(A * B) / np.sqrt(np.sum(A * A) * np.sum(B * B))


def one_hot(y):
    return (np.asarray(y)[:, None] == np.unique(y)).astype(float)


def on_one_scale(kernels, X):
    """Return matrices divided by their variances in feature space, by explicit formulas."""
    return [K / (np.trace(K) / len(K) - K.mean()) for K in (k(X) for k in kernels)]


# --- alignment -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_alignment_is_the_cosine_of_centred_matrices(kernel):
    K = centred(kernel(X))
    for y in (LABELS, THREE):
        Y = one_hot(y)
        assert alignment(kernel, X, y) == pytest.approx(cosine(K, centred(Y @ Y.T)), abs=1e-12)
    expected = cosine(K, centred(np.outer(NUMBERS, NUMBERS)))
    assert alignment(kernel, X, NUMBERS) == pytest.approx(expected, abs=1e-12)


def test_alignment_without_centring():
    K, signs = Gaussian(1.0)(X), np.where(LABELS == "yes", 1.0, -1.0)
    found = alignment(Gaussian(1.0), X, LABELS, centered=False)
    assert found == pytest.approx(cosine(K, np.outer(signs, signs)), abs=1e-12)
    ideal = np.where(THREE[:, None] == THREE, 1.0, -0.5)
    found = alignment(Gaussian(1.0), X, THREE, centered=False)
    assert found == pytest.approx(cosine(K, ideal), abs=1e-12)


def test_alignment_of_the_ideal_kernel_is_one():
    signs = np.where(LABELS == "yes", 1.0, -1.0)
    assert alignment(Precomputed(), np.outer(signs, signs), LABELS) == pytest.approx(1.0)
    assert alignment("precomputed", -np.outer(signs, signs), LABELS) == pytest.approx(-1.0)
    assert alignment(Constant(2.0), X, LABELS) == 0.0


def test_alignment_of_any_rows():
    words = ["spam ham", "ham", "eggs", "spam spam", "eggs ham", "spam"]
    y = [0, 0, 1, 0, 1, 1]
    K, Y = Spectrum(2)(words), one_hot(y)
    expected = cosine(centred(K), centred(Y @ Y.T))
    assert alignment(Spectrum(2), words, y) == pytest.approx(expected)
    binary = (X > 0.3).astype(float)
    dense, thin = alignment(Tanimoto(), binary, THREE), sparse.csr_array(binary)
    assert alignment(Tanimoto(), thin, THREE) == pytest.approx(dense)
    targets = np.column_stack([NUMBERS, X[:, 3]])
    expected = cosine(centred(X @ X.T), centred(targets @ targets.T))
    assert alignment("linear", X, targets) == pytest.approx(expected)


def test_counts_are_labels_unless_said():
    counts = RNG.poisson(3.0, size=60)
    as_numbers = cosine(centred(X @ X.T), centred(np.outer(counts, counts)))
    assert alignment(Linear(), X, counts, target="numbers") == pytest.approx(as_numbers)
    assert alignment(Linear(), X, counts) == alignment(Linear(), X, counts.astype(str))


def test_alignment_by_blocks_equals_the_whole():
    many = RNG.normal(size=(1500, 3))
    y = many[:, 0] > 0
    whole = alignment(Gaussian(1.0), many, y)
    with mercer.config(memory=8 * 10**6):  # the matrix takes 18
        assert alignment(Gaussian(1.0), many, y) == pytest.approx(whole, abs=1e-10)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=20, max_size=20), st.randoms())
def test_weights_of_alignment_are_repetition_and_order_does_not_matter(counts, random):
    if len(set(THREE[:20][np.array(counts) > 0])) < 2:
        return
    many = np.repeat(np.arange(20), counts)
    random.shuffle(many)
    weighted = alignment(Gaussian(1.0), X[:20], THREE[:20], sample_weight=counts)
    assert weighted == pytest.approx(alignment(Gaussian(1.0), X[many], THREE[many]), abs=1e-10)
    weighted = alignment(Linear(), X[:20], NUMBERS[:20], sample_weight=counts)
    assert weighted == pytest.approx(alignment(Linear(), X[many], NUMBERS[many]), abs=1e-10)


def test_alignment_refuses():
    with pytest.raises(ValueError, match="alignment: centered='yes'"):
        alignment(Linear(), X, LABELS, centered="yes")
    with pytest.raises(ValueError, match="alignment: y is constant"):
        alignment(Linear(), X, np.full(60, 0.5))
    with pytest.raises(ValueError, match="alignment needs two classes"):
        alignment(Linear(), X, np.ones(60))
    with pytest.raises(ValueError, match="target='words' must be 'auto'"):
        alignment(Linear(), X, LABELS, target="words")
    with pytest.raises(ValueError, match="alignment: y is missing"):
        alignment(Linear(), X, None)


# --- weights by alignment --------------------------------------------------------------------


@pytest.mark.parametrize("y", [LABELS, THREE, NUMBERS], ids=["two", "three", "numbers"])
def test_aligned_weights_beat_every_other_sum(y):
    found = combine(KERNELS, X, y)
    Y = one_hot(y) if y is not NUMBERS else NUMBERS[:, None]
    target = centred(Y @ Y.T)
    parts = [centred(K) for K in on_one_scale(KERNELS, X)]

    def reached(d):
        return cosine(sum(w * K for w, K in zip(d, parts, strict=True)), target)

    best = minimize(
        lambda d: -reached(d), np.full(4, 0.25), bounds=[(1e-9, 1)] * 4, method="L-BFGS-B"
    )
    assert found.certificate.ok
    assert found.certificate.quantities.alignment == pytest.approx(-best.fun, abs=1e-6)
    assert reached(found.weights) == pytest.approx(alignment(found.kernel, X, y), abs=1e-10)
    assert all(reached(d) <= reached(found.weights) + 1e-12 for d in RNG.dirichlet(np.ones(4), 300))
    assert found.weights.sum() == pytest.approx(1.0)


def test_aligned_weights_by_enumeration_of_supports():
    found = combine(KERNELS, X, NUMBERS)
    parts = np.array([centred(K).ravel() for K in on_one_scale(KERNELS, X)])
    M, a = parts @ parts.T, parts @ centred(np.outer(NUMBERS, NUMBERS)).ravel()
    best, weights = -np.inf, None
    for mask in range(1, 16):
        used = [k for k in range(4) if mask >> k & 1]
        d = np.zeros(4)
        d[used] = np.linalg.solve(M[np.ix_(used, used)], a[used])
        if (d >= 0).all() and a @ d / np.sqrt(d @ M @ d) > best:
            best, weights = a @ d / np.sqrt(d @ M @ d), d / d.sum()
    assert found.weights == pytest.approx(weights, abs=1e-8)


def test_aligned_weights_with_copies_and_with_a_kernel_that_is_a_sum():
    kernels = [Gaussian(1.0), Gaussian(1.0), Linear(), Gaussian(1.0) + Linear()]
    found = combine(kernels, X, LABELS)
    alone = combine(kernels[:1] + kernels[2:3], X, LABELS)
    assert found.certificate.ok
    assert found.certificate.quantities.alignment == pytest.approx(
        alone.certificate.quantities.alignment, abs=1e-9
    )


def test_an_answer_that_is_not_best_is_not_certified():
    found = combine(KERNELS, X, LABELS)
    worse = combine(KERNELS[::-1], X, LABELS)
    assert worse.weights[::-1] == pytest.approx(found.weights, abs=1e-10)
    problem = KernelCombination(
        tuple(PrecomputedGram(K) for K in on_one_scale(KERNELS, X)),
        np.ones(4),
        lambda gram: svm.svc(gram, np.where(LABELS == "yes", 1.0, -1.0), np.full(60, 5.0)),
    )
    value = solve(problem, SimplexNewton(tol=1e-8)).value
    assert certify(problem, value, 1e-7).ok
    shifted = type(value)(0.9 * value.weights + 0.025, value.duals)
    assert not certify(problem, shifted, 1e-3).ok


# --- weights by the margin -------------------------------------------------------------------


def mkl_by_cone(matrices, signs, C):
    """Solve max sum(alpha) - t/2 with alpha'Y K_m Y alpha <= t by a generic conic solver."""
    n = len(signs)
    rows, right, cones = [], [], []
    rows.append(np.append(signs, 0.0)[None, :])
    right.append(np.zeros(1))
    cones.append(clarabel.ZeroConeT(1))
    eye = np.hstack([np.eye(n), np.zeros((n, 1))])
    rows += [-eye, eye]
    right += [np.zeros(n), C]
    cones.append(clarabel.NonnegativeConeT(2 * n))
    for K in matrices:  # |F alpha|^2 <= t: (t + 1, t - 1, 2 F alpha) in the cone
        values, vectors = np.linalg.eigh(K)
        F = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T * signs
        top = np.zeros((2, n + 1))
        top[:, -1] = -1.0
        rows.append(np.vstack([top, np.hstack([-2 * F, np.zeros((n, 1))])]))
        right.append(np.concatenate([[1.0, -1.0], np.zeros(n)]))
        cones.append(clarabel.SecondOrderConeT(n + 2))
    cost = np.append(-np.ones(n), 0.5)
    options = clarabel.DefaultSettings()
    options.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((n + 1, n + 1)),
        cost,
        sparse.csc_matrix(np.vstack(rows)),
        np.concatenate(right),
        cones,
        options,
    )
    return -solver.solve().obj_val


@pytest.mark.parametrize("C", [0.3, 5.0, 200.0])
def test_margin_weights_reach_the_value_of_a_conic_solver(C):
    found = combine(KERNELS, X, LABELS, method="margin", C=C, tol=1e-7)
    signs = np.where(LABELS == "yes", 1.0, -1.0)
    expected = mkl_by_cone(on_one_scale(KERNELS, X), signs, np.full(60, C))
    measured = found.certificate.quantities
    assert found.certificate.ok
    assert found.solution.status is Status.SOLVED
    assert measured.primal == pytest.approx(expected, rel=2e-6)
    assert measured.dual <= expected * (1 + 1e-6)


def test_margin_weights_with_squared_slack_and_weights():
    w = RNG.integers(0, 3, size=60).astype(float)
    w[:4] = 1.0
    options = {"method": "margin", "C": 2.0, "slack": "l2", "tol": 1e-7}
    found = combine(KERNELS, X, LABELS, sample_weight=w, **options)
    kept = w > 0
    signs = np.where(LABELS == "yes", 1.0, -1.0)[kept]
    repeated = np.repeat(np.arange(60), w.astype(int))
    sizes = [1 / (np.trace(K) / len(K) - K.mean()) for K in (k(X[repeated]) for k in KERNELS)]

    def value(d):
        K = sum(a * s * k(X[kept]) for a, s, k in zip(d, sizes, KERNELS, strict=True))
        Q = K + np.diag(0.5 / (2.0 * w[kept]))
        machine = SVC(Precomputed(), C=np.inf, tol=1e-8).fit(Q, signs)
        b = np.zeros(kept.sum())
        b[machine.support_] = machine.dual_coef_
        return b @ signs - 0.5 * b @ Q @ b

    best = found.certificate.quantities.primal
    assert value(found.weights) == pytest.approx(best, rel=1e-5)
    assert all(value(d) >= best * (1 - 1e-6) for d in RNG.dirichlet(np.ones(4), 10))


def test_one_kernel_is_the_plain_machine():
    found = combine([Gaussian(1.5)], X, LABELS, method="margin", C=3.0, tol=1e-8)
    assert found.weights.tolist() == [1.0]
    machine = SVC(found.kernel, C=3.0, tol=1e-7).fit(X, LABELS)
    expected = machine.certificate_.quantities.dual
    assert found.certificate.quantities.dual == pytest.approx(expected, rel=1e-6)
    plain = SVC(Gaussian(1.5), C=3.0).fit(X, LABELS)
    same = SVC(combine([Gaussian(1.5)], X, LABELS, normalize=False).kernel, C=3.0).fit(X, LABELS)
    assert same.decision_function(X) == pytest.approx(plain.decision_function(X), abs=5e-3)


def test_two_copies_of_a_kernel_have_the_objective_of_one():
    once = combine([Gaussian(1.0), Linear()], X, LABELS, method="margin", tol=1e-7)
    twice = combine([Gaussian(1.0), Gaussian(1.0), Linear()], X, LABELS, method="margin", tol=1e-7)
    assert twice.certificate.ok
    first, second = once.certificate.quantities.primal, twice.certificate.quantities.primal
    assert second == pytest.approx(first, rel=1e-6)
    assert twice.weights[:2].sum() == pytest.approx(once.weights[0], abs=1e-3)


def test_the_sum_is_no_worse_than_any_part_nor_the_mean():
    best = combine(KERNELS, X, LABELS, method="margin", C=5.0, tol=1e-6)
    parts = [combine([k], X, LABELS, method="margin", C=5.0, tol=1e-6) for k in KERNELS]
    assert all(p.certificate.quantities.primal >= best.certificate.quantities.dual for p in parts)
    mean = sum((0.25 * p.kernel for p in parts[1:]), 0.25 * parts[0].kernel)
    machine = SVC(mean, C=5.0, tol=1e-6).fit(X, LABELS)
    assert machine.certificate_.quantities.primal >= best.certificate.quantities.dual


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_many_classes_share_the_weights(multiclass):
    options = {"method": "margin", "C": 2.0, "multiclass": multiclass}
    found = combine(KERNELS, X, THREE, tol=1e-6, **options)
    machine = SVC(found.kernel, C=2.0, multiclass=multiclass, tol=1e-6).fit(X, THREE)
    total = machine.certificate_.quantities.dual
    assert found.certificate.quantities.primal == pytest.approx(total, rel=1e-5)
    for d in RNG.dirichlet(np.ones(4), 5):
        factors = d * found.factors.sum() / found.factors.sum()
        sizes = [np.trace(k(X)) / 60 - k(X).mean() for k in KERNELS]
        terms = [float(f / s) * k for f, s, k in zip(factors, sizes, KERNELS, strict=True)]
        other = SVC(terms[0] + terms[1] + terms[2] + terms[3], C=2.0, multiclass=multiclass)
        assert other.fit(X, THREE).certificate_.quantities.primal >= 0.9999 * total


def test_class_weights_are_sample_weights():
    weight = {"yes": 3.0, "no": 1.0}
    options = {"method": "margin", "C": 2.0, "tol": 1e-7, "normalize": False}
    found = combine(KERNELS, X, LABELS, class_weight=weight, **options)
    rows = combine(KERNELS, X, LABELS, sample_weight=[weight[v] for v in LABELS], **options)
    assert found.weights == pytest.approx(rows.weights, abs=1e-5)
    balanced = combine(KERNELS, X, LABELS, class_weight="balanced", **options)
    assert balanced.certificate.ok


@pytest.mark.parametrize("method", ["alignment", "margin"])
def test_weights_are_repetition_and_row_order_does_not_matter(method):
    counts = RNG.integers(0, 3, size=60)
    many = RNG.permutation(np.repeat(np.arange(60), counts))
    options = {"method": method, "C": 2.0, "tol": 1e-6}
    weighted = combine(KERNELS, X, LABELS, sample_weight=counts, **options)
    repeated = combine(KERNELS, X[many], LABELS[many], **options)
    assert weighted.weights == pytest.approx(repeated.weights, abs=1e-7)
    assert weighted.factors == pytest.approx(repeated.factors, abs=1e-7)


def test_given_matrices():
    kernels = [Gaussian(1.0), Linear()]
    matrices = [k(X) for k in kernels]
    by_rows = combine(kernels, X, LABELS, method="margin", tol=1e-7)
    by_matrix = combine(Precomputed(), matrices, LABELS, method="margin", tol=1e-7)
    assert by_matrix.weights == pytest.approx(by_rows.weights, abs=1e-5)
    assert by_matrix.kernel == Precomputed()
    assert by_matrix.matrix(matrices) == pytest.approx(by_rows.kernel(X), abs=1e-4)
    machine = SVC(by_matrix.kernel).fit(by_matrix.matrix(matrices), LABELS)
    assert machine.score(by_matrix.matrix(matrices), LABELS) > 0.8
    with pytest.raises(ValueError, match="3 matrices for 2 kernels"):
        by_matrix.matrix([*matrices, matrices[0]])
    assert "matrix 0" in str(by_matrix)


def test_matrices_that_do_not_fit_are_evaluated_anew():
    rows = RNG.normal(size=(300, 3))
    y = rows[:, 0] * rows[:, 1] > 0
    kernels = [Gaussian(s).on([a, b]) for s in (0.5, 1.0, 2.0) for a, b in ((0, 1), (1, 2))] * 2
    stored = combine(kernels, rows, y, method="margin", tol=1e-6)
    with mercer.config(memory=5 * 8 * 300**2):
        anew = combine(kernels, rows, y, method="margin", tol=1e-6)
        with pytest.raises(MemoryError, match="combine: method='margin' on 1000 rows"):
            combine(kernels, RNG.normal(size=(1000, 3)), np.arange(1000) % 2, method="margin")
    first, second = stored.certificate.quantities.primal, anew.certificate.quantities.primal
    assert second == pytest.approx(first, rel=1e-5)


def test_a_float32_start_ends_in_float64():
    rows = RNG.normal(size=(1100, 3))
    y = rows[:, 0] * rows[:, 1] + 0.3 * RNG.normal(size=1100) > 0
    found = combine(KERNELS[:3], rows, y, method="margin", C=50.0, tol=1e-6)
    assert found.solution.status is Status.SOLVED
    assert found.certificate.ok


def test_kernels_of_large_values_are_soon_answered():
    kernels = [Polynomial(2), Polynomial(3).on([0, 1]), Gaussian(1.0)]
    options = {"method": "margin", "C": 50.0, "normalize": False, "tol": 1e-6}
    for slack in ("l1", "l2"):
        found = combine(kernels, 3.0 * X, LABELS, slack=slack, **options)
        assert found.certificate.ok, str(found.certificate)
        assert found.solution.seconds < 20


def test_a_gap_far_below_the_usual():
    found = combine(KERNELS, X, LABELS, method="margin", C=5.0, tol=1e-10)
    assert found.solution.status is Status.SOLVED
    assert found.certificate.quantities.relative_gap <= 1e-10


def test_columns_that_tell_nothing_get_no_weight():
    rows = RNG.normal(size=(200, 12))
    y = rows[:, 3] + np.sin(2 * rows[:, 7]) > 0
    found = combine([Gaussian(1.0).on([j]) for j in range(12)], rows, y, method="margin", C=1.0)
    assert set(found.used[:2].tolist()) == {3, 7}
    assert found.weights[[3, 7]].sum() > 0.8
    assert (found.weights == 0).sum() > 3
    assert "of 12 kernels" in str(found)


# --- weights by ridge ------------------------------------------------------------------------


def ridge_value(d, matrices, targets, penalty, w, bias):
    C = sum(a * K for a, K in zip(d, matrices, strict=True)) + np.diag(penalty / w)
    G = np.linalg.inv(C)
    if bias:
        u = G.sum(axis=1)
        G = G - np.outer(u, u) / u.sum()
    return 0.5 * np.trace(targets.T @ G @ targets)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("penalty", [0.05, 2.0])
def test_ridge_weights_reach_the_value_of_a_generic_solver(bias, penalty):
    targets = np.column_stack([NUMBERS, X[:, 2] ** 2])
    matrices, w = on_one_scale(KERNELS, X), np.ones(60)
    found = combine(KERNELS, X, targets, method="ridge", penalty=penalty, bias=bias, tol=1e-9)
    best = minimize(
        ridge_value,
        np.full(4, 0.25),
        args=(matrices, targets, penalty, w, bias),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda d: d.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert found.certificate.ok
    assert found.certificate.quantities.primal == pytest.approx(best.fun, rel=1e-7)
    value = ridge_value(found.weights, matrices, targets, penalty, w, bias)
    assert found.certificate.quantities.primal == pytest.approx(value, rel=1e-7)


def test_the_gap_of_ridge_is_that_of_frank_and_wolfe():
    found = combine(KERNELS, X, NUMBERS, method="ridge", penalty=0.5, tol=1e-3)
    matrices, step = on_one_scale(KERNELS, X), 1e-6
    args = (matrices, NUMBERS[:, None], 0.5, np.ones(60), True)
    slopes = np.array(
        [
            (
                ridge_value(found.weights + step * e, *args)
                - ridge_value(found.weights - step * e, *args)
            )
            / (2 * step)
            for e in np.eye(4)
        ]
    )
    expected = found.weights @ slopes - slopes.min()
    assert found.certificate.quantities.kernel_gap == pytest.approx(expected, abs=1e-5)


def test_weights_of_ridge_are_repetition():
    counts = RNG.integers(0, 3, size=60)
    many = np.repeat(np.arange(60), counts)
    options = {"method": "ridge", "penalty": 0.5, "tol": 1e-8}
    weighted = combine(KERNELS, X, NUMBERS, sample_weight=counts, **options)
    repeated = combine(KERNELS, X[many], NUMBERS[many], **options)
    assert weighted.weights == pytest.approx(repeated.weights, abs=1e-6)
    first, second = weighted.certificate.quantities, repeated.certificate.quantities
    assert first.primal == pytest.approx(second.primal, rel=1e-8)


def test_the_sum_of_ridge_is_a_kernel_for_the_machine():
    found = combine(KERNELS, X, NUMBERS, method="ridge", penalty=0.3, tol=1e-8)
    machine = KernelRidge(0.3, kernel=found.kernel).fit(X, NUMBERS)
    value = 0.5 * NUMBERS @ machine.dual_coef_
    assert value == pytest.approx(found.certificate.quantities.primal, rel=1e-6)


# --- stopping and refusing -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["margin", "ridge"])
def test_a_stopped_search_keeps_what_it_has(method):
    y = LABELS if method == "margin" else NUMBERS
    with pytest.warns(Warning, match="the callback asked to stop"):
        found = combine(KERNELS, X, y, method=method, C=50.0, tol=1e-9, callback=lambda _: True)
    assert found.solution.status is Status.STOPPED
    assert found.weights.sum() == pytest.approx(1.0)
    assert not found.certificate.ok
    with pytest.warns(Warning, match="the time limit"):
        found = combine(KERNELS, X, y, method=method, tol=1e-9, time_limit=1e-9)
    assert found.solution.status is Status.TIME_LIMIT
    with pytest.warns(Warning, match="the iteration limit"):
        combine(KERNELS, X, y, method=method, C=50.0, tol=1e-9, max_iter=1)


def test_progress_is_told():
    seen = []
    combine(KERNELS, X, LABELS, method="margin", callback=lambda p: seen.append(p.measure))
    assert seen[-1] <= 1e-4 < seen[0]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"method": "magic"}, "combine: method='magic' must be"),
        ({"C": -1.0, "method": "margin"}, "combine: C=-1.0 must be a positive"),
        ({"C": np.inf, "method": "margin"}, "combine: C=inf must be a positive, finite"),
        ({"slack": "l3", "method": "margin"}, "combine: slack='l3'"),
        ({"penalty": 0, "method": "ridge"}, "combine: penalty=0 must be"),
        ({"tol": 0.0}, "combine: tol=0.0"),
        ({"kernels": []}, "combine: kernels is empty"),
        ({"kernels": [Linear(), Precomputed()]}, r"Precomputed\(\) cannot be one kernel among"),
        ({"kernels": [Sigmoid()]}, "combine: kernel 0, Sigmoid.* is not positive semidefinite"),
        ({"kernels": [Linear(), Constant(1.0)]}, "combine: kernel 1, .* is constant"),
        ({"class_weight": {"yes": -1}, "method": "margin"}, "combine: class_weight"),
        ({"target": "x"}, "combine: target='x'"),
    ],
)
def test_combine_refuses(change, match):
    options = {"kernels": KERNELS, "X": X, "y": LABELS, **change}
    with pytest.raises(ValueError, match=match):
        combine(**options)


def test_combine_refuses_one_kernel_and_wrong_matrices():
    with pytest.raises(TypeError, match=r"combine: kernels=.* must be a list"):
        combine(Linear(), X, LABELS)
    with pytest.raises(ValueError, match=r"matrix 1 of X has shape \(60, 4\)"):
        combine(Precomputed(), [X @ X.T, X], LABELS)
    with pytest.raises(ValueError, match="combine"):
        combine(KERNELS, X, LABELS, method="ridge")
    with pytest.raises(TypeError, match=r"combine: kernels=array\(2\.\) must be a list"):
        combine(np.array(2.0), X, LABELS)
    with pytest.raises(ValueError, match="must be a sequence of square matrices"):
        combine(Precomputed(), np.array(2.0), LABELS)


@pytest.mark.parametrize("size", [1e150, 1e-150])
def test_weights_do_not_depend_on_the_unit_of_the_targets(size):
    """Squares of targets near the end of float64 overflow: SOLVED must still be certified."""
    options = {"method": "ridge", "penalty": 1e-6, "normalize": False}
    plain, found = (combine(KERNELS, X, s * NUMBERS, **options) for s in (1.0, size))
    assert found.certificate.ok
    np.testing.assert_allclose(found.weights, plain.weights, atol=1e-3)


# --- the estimator ---------------------------------------------------------------------------


def test_multiple_kernel_is_combine_and_the_machine():
    machine = MultipleKernel(SVC(C=4.0), KERNELS, tol=1e-6).fit(X, LABELS)
    found = combine(KERNELS, X, LABELS, method="margin", C=4.0, tol=1e-6)
    assert machine.weights_ == pytest.approx(found.weights, abs=1e-9)
    plain = SVC(found.kernel, C=4.0).fit(X, LABELS)
    assert machine.decision_function(X) == pytest.approx(plain.decision_function(X), abs=1e-6)
    assert machine.kernel_ == machine.machine_.kernel
    assert machine.certificate_.ok
    assert machine.solution_.status is Status.SOLVED
    ridge = MultipleKernel(KernelRidge(penalty=0.5), KERNELS).fit(X, NUMBERS)
    assert ridge.combined_.method == "ridge"
    assert ridge.score(X, NUMBERS) > 0.8
    assert MultipleKernel(SVC(nu=0.3), KERNELS).fit(X, LABELS).combined_.method == "alignment"
    loo = MultipleKernel(KernelRidge(penalty="loo"), KERNELS).fit(X, NUMBERS)
    assert loo.combined_.method == "alignment"


def test_multiple_kernel_in_a_tuned_grid():
    tuned = Tuned(MultipleKernel(SVC(), KERNELS), {"machine__C": [0.1, 5.0]}, cv=3).fit(X, LABELS)
    scores = [
        cross_validate(MultipleKernel(SVC(C=C), KERNELS), X, LABELS, cv=3).mean for C in (0.1, 5.0)
    ]
    assert tuned.cv_results_["mean_test_score"] == pytest.approx(scores)


def test_multiple_kernel_refuses():
    from sklearn.linear_model import Ridge

    with pytest.raises(TypeError, match="has no parameter kernel"):
        MultipleKernel(Ridge(), KERNELS).fit(X, NUMBERS)
    with pytest.raises(TypeError, match="learns without a target"):
        MultipleKernel(PCA(), KERNELS).fit(X, NUMBERS)
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = MultipleKernel(SVC(), KERNELS).weights_


@pytest.mark.parametrize(
    "machine",
    [
        MultipleKernel(SVC(), [Gaussian(1.0), Linear()]),
        MultipleKernel(KernelRidge(), [Gaussian(1.0), Linear()]),
    ],
    ids=["SVC", "KernelRidge"],
)
@pytest.mark.filterwarnings("ignore")
def test_multiple_kernel_is_an_estimator(machine):
    check_estimator(machine, on_skip=None)


# --- one scale per feature -------------------------------------------------------------------

RADIAL = [
    Gaussian(1.0),
    Laplacian(2.0),
    Matern(0.5, 2.0),
    Matern(1.5, 2.0),
    Matern(2.5, 2.0),
    Matern(3.2, 2.0),
    Matern(np.inf, 2.0),
    RationalQuadratic(0.7, 2.0),
    0.5 * Gaussian(1.0) + 0.1 * Linear(),
    Polynomial(2) * Matern(1.5, 2.0),
    (Gaussian(1.0) + 0.3 * Linear()).normalized(),
]


def relevance(kernel, measure, bias=True, weights=None, targets=None, rows=X):
    w = np.ones(len(rows)) if weights is None else weights
    family = scale_family(kernel, rows, None, w)
    d = len(family.start)
    Y = NUMBERS[:, None] if targets is None else targets
    low, high = np.full(d + 1, -20.0), np.full(d + 1, 20.0)
    return Relevance(rows, family.formula, Y, w, measure, bias, low, high, low[None] * 0)


@pytest.mark.parametrize("measure", [LeaveOneOut(), Likelihood()], ids=["loo", "likelihood"])
@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_slopes_are_those_of_finite_differences(kernel, measure):
    problem = relevance(kernel, measure)
    logs = np.log([1.5, 0.8, 3.0, 2.0, 0.2])

    def value(at):
        return measured(problem, problem.at(at), slopes=False)[0]

    step = 1e-5
    expected = [(value(logs + step * e) - value(logs - step * e)) / (2 * step) for e in np.eye(5)]
    found = measured(problem, problem.at(logs))
    assert found[0] == value(logs)
    assert found[1] == pytest.approx(expected, abs=2e-7)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("measure", [LeaveOneOut(), Likelihood()], ids=["loo", "likelihood"])
def test_slopes_with_weights_and_several_targets(measure, bias):
    w = RNG.uniform(0.3, 2.5, size=60)
    targets = np.column_stack([NUMBERS, X[:, 2]])
    problem = relevance(Gaussian(1.0), measure, bias, w, targets)
    logs, step = np.log([1.5, 0.8, 3.0, 2.0, 0.2]), 1e-5

    def value(at):
        return measured(problem, problem.at(at), slopes=False)[0]

    expected = [(value(logs + step * e) - value(logs - step * e)) / (2 * step) for e in np.eye(5)]
    assert measured(problem, problem.at(logs))[1] == pytest.approx(expected, abs=2e-7)


@pytest.mark.parametrize("bias", [True, False])
def test_the_error_is_that_of_leaving_each_row_out(bias):
    scales, penalty = np.array([1.5, 0.8, 3.0, 2.0]), 0.2
    problem = relevance(Gaussian(1.0), LeaveOneOut(), bias)
    found = np.exp(measured(problem, Scaled(scales, penalty), slopes=False)[0])
    errors = []
    for i in range(60):
        others = np.arange(60) != i
        machine = KernelRidge(penalty, kernel=Gaussian(scales), bias=bias).fit(
            X[others], NUMBERS[others]
        )
        errors.append(machine.predict(X[i : i + 1])[0] - NUMBERS[i])
    assert found == pytest.approx(np.mean(np.square(errors)), rel=1e-9)


def test_the_likelihood_is_that_of_a_gaussian_process():
    scales, penalty = np.array([1.5, 0.8, 3.0, 2.0]), 0.2
    problem = relevance(Gaussian(1.0), Likelihood(), False)
    value = measured(problem, Scaled(scales, penalty), slopes=False)[0]
    C = Gaussian(scales)(X) + penalty * np.eye(60)
    variance = NUMBERS @ np.linalg.solve(C, NUMBERS) / 60
    kernel = Variance(variance) * RBF(scales) + WhiteKernel(variance * penalty)
    process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, NUMBERS)
    expected = process.log_marginal_likelihood_value_
    assert problem.measure.reported(problem, value) == pytest.approx(expected, rel=1e-9)


def test_the_likelihood_with_a_bias_is_that_of_contrasts():
    scales, penalty = np.array([1.5, 0.8, 3.0, 2.0]), 0.2
    problem = relevance(Gaussian(1.0), Likelihood(), True)
    value = measured(problem, Scaled(scales, penalty), slopes=False)[0]
    contrasts = np.linalg.svd(np.eye(60) - 1 / 60)[0][:, :59]  # orthonormal, free of the mean
    C = contrasts.T @ (Gaussian(scales)(X) + penalty * np.eye(60)) @ contrasts
    y = contrasts.T @ NUMBERS
    variance = y @ np.linalg.solve(C, y) / 59
    expected = -0.5 * (59 * np.log(2 * np.pi * variance) + np.linalg.slogdet(C)[1] + 59)
    # the flat law of the mean adds log(n) / 2
    found = problem.measure.reported(problem, value)
    assert found == pytest.approx(expected - 0.5 * np.log(60), rel=1e-9)


@pytest.mark.parametrize("measure", [LeaveOneOut(), Likelihood()], ids=["loo", "likelihood"])
def test_weights_of_measures_are_repetition(measure):
    counts = RNG.integers(1, 4, size=60)
    many = np.repeat(np.arange(60), counts)
    scaled = Scaled(np.array([1.5, 0.8, 3.0, 2.0]), 0.2)
    weighted = relevance(Gaussian(1.0), measure, True, counts.astype(float))
    repeated = relevance(Gaussian(1.0), measure, True, None, NUMBERS[many][:, None], X[many])
    first, second = measured(weighted, scaled), measured(repeated, scaled)
    assert first[0] == pytest.approx(second[0], rel=1e-9)
    assert first[1] == pytest.approx(second[1], abs=1e-8)


@pytest.mark.parametrize("objective", ["loo", "likelihood"])
def test_features_that_matter_are_found(objective):
    rows = RNG.normal(size=(120, 6))
    y = np.sin(2 * rows[:, 1]) + 0.5 * rows[:, 4] ** 2 + 0.05 * RNG.normal(size=120)
    found = learn_scales(rows, y, objective=objective, starts=2)
    assert set(np.argsort(-found.relevance)[:2]) == {1, 4}
    assert found.relevance[[1, 4]].sum() > 0.9
    assert found.scales[[0, 2, 3, 5]].min() > 3 * found.scales[[1, 4]].max()
    assert found.certificate.ok, str(found.certificate)
    machine = KernelRidge(found.penalty, kernel=found.kernel).fit(rows, y)
    new = RNG.normal(size=(200, 6))
    truth = np.sin(2 * new[:, 1]) + 0.5 * new[:, 4] ** 2
    plain = KernelRidge("loo", kernel="gaussian").fit(rows, y)
    error, other = (np.mean((m.predict(new) - truth) ** 2) for m in (machine, plain))
    assert error < 0.5 * other
    assert "feature 1" in str(found)


def test_the_error_reported_is_that_of_the_machine():
    found = learn_scales(X, NUMBERS, starts=1)
    machine = KernelRidge("loo", kernel=found.kernel, penalties=[found.penalty]).fit(X, NUMBERS)
    assert found.value == pytest.approx(machine.loo_scores_[0], rel=1e-9)
    assert found.certificate.quantities.value_error < 1e-8


def test_a_fixed_penalty_stays_and_seeds_repeat():
    found = learn_scales(X, NUMBERS, penalty=0.3, starts=2, random_state=4)
    assert found.penalty == pytest.approx(0.3, rel=1e-12)
    again = learn_scales(X, NUMBERS, penalty=0.3, starts=2, random_state=4)
    assert np.array_equal(found.scales, again.scales)


def test_scales_do_not_see_units_and_row_order():
    units, order = np.array([1.0, 100.0, 0.01, 1.0]), RNG.permutation(60)
    found = learn_scales(X, NUMBERS, starts=1, tol=1e-6)
    other = learn_scales(X[order] * units, 7.0 * NUMBERS[order] + 3.0, starts=1, tol=1e-6)
    assert other.value == pytest.approx(49.0 * found.value, rel=1e-6)
    assert other.relevance == pytest.approx(found.relevance, abs=1e-3)


def test_scales_of_some_columns_and_sparse_rows():
    kernel = Gaussian(1.0).on([0, 1]) + 0.1 * Linear()
    found = learn_scales(X, NUMBERS, kernel=kernel, starts=1)
    assert len(found.scales) == 2
    thin = learn_scales(sparse.csr_array(X), NUMBERS, kernel=kernel, starts=1)
    assert thin.value == pytest.approx(found.value, rel=1e-6)
    constant = np.column_stack([X[:, :2], np.ones(60)])
    assert learn_scales(constant, NUMBERS, starts=1).certificate.ok


def test_a_stopped_descent_keeps_the_best():
    with pytest.warns(Warning, match="the callback asked to stop"):
        found = learn_scales(X, NUMBERS, callback=lambda p: p.iteration >= 5)
    assert found.solution.status is Status.STOPPED
    assert 1 <= found.solution.iterations <= 5  # steps; each asks once or more
    with pytest.warns(Warning, match="the time limit"):
        learn_scales(X, NUMBERS, time_limit=1e-9)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"objective": "error"}, "learn_scales: objective='error' must be"),
        ({"kernel": Linear()}, r"learn_scales: kernel=Linear\(\) has 0 parameters called scale"),
        ({"kernel": Gaussian(1.0) + Laplacian(1.0)}, "has 2 parameters called scale"),
        ({"kernel": Matern(0.8)}, "has no gradient in its scales: Matern of nu=0.8"),
        ({"penalty": -1.0}, "learn_scales: penalty=-1.0"),
        ({"bounds": (1.0, 0.1)}, "learn_scales: bounds="),
        ({"bias": "yes"}, "learn_scales: bias="),
        ({"starts": 0}, "learn_scales: starts=0"),
        ({"starts": 2.5}, "learn_scales: starts=2.5 must be a whole number"),
        ({"max_iter": 0.5}, "learn_scales: max_iter=0.5 must be a whole number"),
        ({"time_limit": "long"}, "learn_scales: time_limit='long' must be"),
        ({"random_state": -1}, "learn_scales: random_state=-1 must be"),
        ({"callback": 3}, "learn_scales: callback=3 must be"),
        ({"y": np.ones(60)}, "learn_scales: y is constant"),
        ({"kernel": Gaussian([1.0, 2.0])}, "has 2 scales, but it looks at 4 columns"),
    ],
)
def test_learn_scales_refuses(change, match):
    options = {"X": X, "y": NUMBERS, **change}
    with pytest.raises(ValueError, match=match):
        learn_scales(**options)


def test_learn_scales_refuses_other_kinds():
    with pytest.raises(TypeError, match="learn_scales: kernel='gaussian' must be a kernel"):
        learn_scales(X, NUMBERS, kernel="gaussian")
    with pytest.raises(TypeError, match="learn_scales: X holds strings"):
        learn_scales(["a", "b", "c"], [1.0, 2.0, 3.5])
    with mercer.config(memory=10**6), pytest.raises(MemoryError, match="learn_scales on 400 rows"):
        learn_scales(RNG.normal(size=(400, 2)), RNG.normal(size=400))


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, Matern])
def test_relevance_is_the_mean_squared_slope_of_the_function(kernel):
    found = learn_scales(X, NUMBERS, kernel=kernel, starts=1)
    machine = KernelRidge(found.penalty, kernel=found.kernel).fit(X, NUMBERS)
    step, slopes = 1e-6, []
    for j, e in enumerate(np.eye(4)):
        rise = machine.predict(X + step * e) - machine.predict(X - step * e)
        slopes.append(np.mean((rise / (2 * step) * X[:, j].std()) ** 2))
    assert found.relevance == pytest.approx(slopes / np.sum(slopes), abs=1e-4)


def test_a_straight_line_has_a_long_scale_and_is_relevant():
    rows = RNG.normal(size=(100, 3))
    found = learn_scales(rows, 2.0 * rows[:, 0] + 0.1 * RNG.normal(size=100), starts=1)
    assert found.relevance[0] > 0.9


def test_inverses_by_panels_equal_those_of_lapack(monkeypatch):
    problem = relevance(Gaussian(1.0), LeaveOneOut())
    scaled = Scaled(np.array([1.5, 0.8, 3.0, 2.0]), 0.2)
    whole = measured(problem, scaled)
    monkeypatch.setattr("mercer.backends.host._SHORT", 0)
    monkeypatch.setattr("mercer.backends.host._BASE", 16)
    monkeypatch.setattr("mercer.backends.factorizations._WORK", 1e5)
    by_panels = measured(problem, scaled)
    assert by_panels[0] == pytest.approx(whole[0], rel=1e-12)
    assert by_panels[1] == pytest.approx(whole[1], abs=1e-10)


@pytest.mark.parametrize("size", [1e-150, 1e-90, 1e90, 1e150])
def test_alignment_does_not_see_the_size_of_anything(size):
    expected = alignment(Linear(), X, NUMBERS)
    assert alignment(Linear(), size * X, NUMBERS) == pytest.approx(expected, rel=1e-12)
    assert alignment(Linear(), X, size * NUMBERS) == pytest.approx(expected, rel=1e-12)
    weights = np.full(60, size)
    found = alignment(Laplacian(1.0), X, NUMBERS, sample_weight=weights)
    assert found == pytest.approx(alignment(Laplacian(1.0), X, NUMBERS), rel=1e-12)
    parts = [Linear(), Linear().on([0]), Laplacian(size)]
    combined = combine(parts, size * X, NUMBERS)
    assert combined.certificate.ok
    same = combine([*parts[:2], Laplacian(1.0)], X, NUMBERS)
    assert combined.weights == pytest.approx(same.weights, abs=1e-9)


def test_a_constant_in_the_targets_is_taken_up_by_the_bias():
    far = combine(KERNELS, X, NUMBERS + 1e9, method="ridge", tol=1e-5)
    assert far.certificate.ok
    near = combine(KERNELS, X, NUMBERS, method="ridge", tol=1e-5)
    assert far.weights == pytest.approx(near.weights, abs=1e-4)
    for objective in ("loo", "likelihood"):
        far = learn_scales(X, NUMBERS + 1e9, objective=objective, starts=1)
        assert far.certificate.ok
        near = learn_scales(X, NUMBERS, objective=objective, starts=1)
        assert far.value == pytest.approx(near.value, rel=1e-4)


def test_weights_are_found_where_few_kernels_make_a_singular_sum():
    rng = np.random.default_rng(39)
    rows = rng.normal(size=(rng.integers(5, 40), 3))
    rows[rng.random(len(rows)) < 0.2] = rows[0]
    y = rng.integers(0, rng.integers(2, 4), len(rows))
    weights = rng.choice([0, 0.3, 1, 2.5], len(rows))
    y[:3], weights[:3] = np.arange(3), 1.0
    kernels = [*(Gaussian(s) for s in (4.69, 4.48, 14.5)), Linear(), Linear().on([0])]
    found = combine(kernels, rows, y, method="margin", C=0.00178, sample_weight=weights, tol=1e-7)
    assert found.certificate.ok, str(found.certificate)
    assert found.weights == pytest.approx([0, 0.136, 0, 0, 0.864], abs=0.01)


def test_combine_takes_no_measurements_for_labels():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        combine(KERNELS, X, NUMBERS, method="margin")
    with pytest.raises(ValueError, match="method='margin' does not suit machine=KernelRidge"):
        MultipleKernel(KernelRidge(), KERNELS, method="margin").fit(X, NUMBERS)
    with pytest.raises(ValueError, match="method='ridge' does not suit machine=SVC"):
        MultipleKernel(SVC(), KERNELS, method="ridge").fit(X, THREE)


@pytest.mark.parametrize("matrices", [None, [], X @ X.T, ["a"], sparse.eye(60)])
def test_given_matrices_come_as_a_sequence(matrices):
    with pytest.raises(ValueError, match=r"combine: with kernels=Precomputed\(\), X must be a seq"):
        combine(Precomputed(), matrices, LABELS)


def test_refusals_name_the_place():
    K = X @ X.T
    with pytest.raises(ValueError, match=r"combine: matrix 1 of X: .*nan"):
        combine(Precomputed(), [K, K * np.nan], LABELS)
    with pytest.raises(ValueError, match="combine: matrix 1 of X is not positive semidefinite"):
        combine(Precomputed(), [K, -K], LABELS)
    with pytest.raises(TypeError, match="combine: entry 1 of kernels: kernel=7 must be a kernel"):
        combine([Linear(), 7], X, LABELS)
    with pytest.raises(TypeError, match="combine: kernels=None must be a list"):
        combine(None, X, LABELS)
    with pytest.raises(ValueError, match="combine: normalize='no' must be True or False"):
        combine(KERNELS, X, LABELS, normalize="no")
    with pytest.raises(ValueError, match=r"combine: C=1\d+\.0 forbids all slack"):
        combine(KERNELS, X, LABELS, method="margin", C=1e13)
    for machine in (None, SVC, "svc"):
        with pytest.raises(TypeError, match=r"MultipleKernel: machine=.* must be a machine"):
            MultipleKernel(machine, KERNELS).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"MultipleKernel: kernels=Precomputed\(\) cannot be"):
        MultipleKernel(SVC(), Precomputed()).fit([K], LABELS)


def test_alignment_says_which_limit_stopped_it():
    with pytest.warns(Warning, match="the time limit"):
        found = combine(KERNELS, X, LABELS, time_limit=1e-9)
    assert found.solution.status is Status.TIME_LIMIT
    assert not found.certificate.ok


def test_equally_good_scales_are_those_where_the_measure_is_flat():
    problem = relevance(Gaussian(1.0), LeaveOneOut())
    told = []
    way, kept = BestSeen(problem, lambda _: told[-1], Watch(), problem.starts[0]), []
    seen = [(1.0, 5.0), (1.0 - 1e-9, 8.0), (1.0 + 5e-9, 2.0), (1.1, 0.0), (0.9, 9.0), (1.0, 1.0)]
    for k, (value, slope) in enumerate(seen):
        told.append((value, np.full(5, slope)))
        way(np.full(5, 0.1 * k))
        kept.append(round(10 * way.best[0]))
    assert kept == [0, 0, 2, 2, 4, 4]
    assert (way.lowest, way.value, way.steepest) == (0.9, 0.9, 9.0)


def test_time_that_runs_out_within_a_measure_keeps_the_best_place():
    problem = relevance(Gaussian(1.0), LeaveOneOut())
    seen = []

    def measure(logs):
        if len(seen) == 3:
            raise TimeLimitError("over")
        seen.append(logs.copy())
        return float(np.sum((logs - 1.0) ** 4)), 4 * (logs - 1.0) ** 3

    found = bounded_descent(problem, measure, Watch(), 1e-9, 50, problem.starts[:1])
    assert found.status is Status.TIME_LIMIT
    assert any(np.array_equal(found.best, each) for each in seen)


def test_places_without_a_slope_are_not_gone_to():
    problem = relevance(Gaussian(1.0), LeaveOneOut())
    found = bounded_descent(
        problem, lambda logs: (0.0, np.full_like(logs, np.nan)), Watch(), 1e-9, 50, problem.starts
    )
    assert found.status is Status.NOT_DEFINITE
    assert np.isfinite(found.best).all()


@pytest.mark.parametrize("method", ["ridge", "alignment"])
def test_kernels_of_very_different_sizes_are_certified_together(method):
    """What rounding may hide is that of the weighted sum, not of the first kernel."""
    rng = np.random.default_rng(443276)
    X, y = rng.standard_normal((80, 1)), rng.standard_normal(80)
    kernels = [exp(Polynomial(3, 0.0)), "linear", Gaussian(1.0)]
    machine = MultipleKernel(KernelRidge(0.01), kernels, method=method).fit(X, y)
    assert machine.combined_.certificate.ok
