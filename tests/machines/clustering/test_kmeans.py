"""K-means: against scikit-learn, explicit features, brute force, the trace formula; bad input."""

import itertools
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers.fake_clock import Ticking
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans as Rival
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from mercer import KMeans, ParameterError, certify, config, deadline, solve
from mercer.backends import choose_backend
from mercer.backends.contract import Groups
from mercer.backends.reference.backend import Reference
from mercer.gram import LazyGram, Need, Source, make_gram
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed, Spectrum, exp
from mercer.problems import Clusters, Partition
from mercer.solvers import Given, Lloyd, PlusPlus, RandomPoints, Status


def blobs(n=150, d=4, k=5, seed=0, apart=3.0):
    rng = np.random.default_rng(seed)
    return apart * rng.standard_normal((k, d))[rng.integers(k, size=n)] + rng.standard_normal(
        (n, d)
    )


def rings(n=80):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.vstack([0.3 * ring, 3.0 * ring]), np.repeat([0, 1], n)


def objective(K, labels, weights=None):
    """tr SK - tr(L^1/2 Z'SKSZ L^1/2), written out."""
    w = np.ones(len(K)) if weights is None else weights
    Z = np.eye(labels.max() + 1)[labels]
    L = np.diag(1 / (w @ Z))
    S = np.diag(w)
    root = np.sqrt(L)
    return np.trace(S @ K) - np.trace(root @ Z.T @ S @ K @ S @ Z @ root)


def same(a, b):
    return adjusted_rand_score(a, b) == 1.0


X = blobs()

# --- against independent answers ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_the_linear_kernel_is_lloyd(k, kind):
    centres = X[:k] + 0.1
    rival = Rival(k, init=centres, n_init=1, algorithm="lloyd", tol=0.0).fit(X)
    ours = KMeans(k, init=centres, refine=False).fit(kind(X))
    assert (ours.labels_ == rival.labels_).all()
    assert ours.inertia_ == pytest.approx(rival.inertia_, rel=1e-12)
    np.testing.assert_allclose(ours.cluster_centers_, rival.cluster_centers_, atol=1e-12)
    np.testing.assert_allclose(ours.transform(kind(X[:9])), rival.transform(X[:9]), atol=1e-6)
    assert ours.score(kind(X[:9])) == pytest.approx(rival.score(X[:9]))
    assert (ours.predict(kind(X)) == rival.predict(X)).all()


def test_weights_are_those_of_lloyd():
    w = np.random.default_rng(0).uniform(0.1, 3.0, len(X))
    rival = Rival(4, init=X[:4], n_init=1, algorithm="lloyd", tol=0.0).fit(X, sample_weight=w)
    ours = KMeans(4, init=X[:4], refine=False).fit(X, sample_weight=w)
    assert (ours.labels_ == rival.labels_).all()
    assert ours.inertia_ == pytest.approx(rival.inertia_, rel=1e-12)
    assert ours.score(X, sample_weight=w) == pytest.approx(-ours.inertia_)


@pytest.mark.parametrize("kernel", [Polynomial(2), Polynomial(3, offset=0.5)])
def test_polynomial_kernels_are_their_features(kernel):
    features, new = kernel.features(X.shape[1]), blobs(20, seed=3)
    start = np.arange(len(X)) % 4
    by_features = Rival(4, init=_means(features(X), start), n_init=1, algorithm="lloyd", tol=0.0)
    by_features.fit(features(X))
    held = KMeans(4, kernel, init=start, refine=False)
    given_matrix = KMeans(4, Precomputed(), init=start, refine=False).fit(kernel(X))
    few = KMeans(4, kernel, init=start[:30], refine=False).fit(X[:30])  # K smaller than F
    machine = held.fit(X)
    for labels in (machine.labels_, given_matrix.labels_):
        assert (labels == by_features.labels_).all()
    assert machine.inertia_ == pytest.approx(by_features.inertia_, rel=1e-8)
    assert given_matrix.inertia_ == pytest.approx(by_features.inertia_, rel=1e-8)
    scale = np.sqrt(machine.inertia_)
    expected = by_features.transform(features(new))
    np.testing.assert_allclose(machine.transform(new), expected, atol=1e-8 * scale)
    assert (given_matrix.predict(kernel(new, X)) == by_features.predict(features(new))).all()
    K = kernel(X[:30])
    assert few.inertia_ == pytest.approx(objective(K, few.labels_), rel=1e-8)


def _means(F, labels):
    return np.stack([F[labels == c].mean(axis=0) for c in range(labels.max() + 1)])


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.5), Polynomial(2), Precomputed()])
def test_the_objective_is_the_trace_formula(kernel):
    K = X @ X.T if isinstance(kernel, Precomputed) else kernel(X)
    w = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    data = K if isinstance(kernel, Precomputed) else X
    machine = KMeans(4, kernel, random_state=0).fit(data, sample_weight=w)
    expected = objective(K, machine.labels_, w)
    assert machine.inertia_ == pytest.approx(expected, rel=1e-9)
    assert machine.certificate_.quantities.objective == pytest.approx(expected, rel=1e-9)
    assert machine.solution_.trace[-1].measure == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 3])
def test_the_best_start_is_the_best_of_all_partitions(k, seed):
    rng = np.random.default_rng(seed)
    K = Gaussian(1.0)(rng.standard_normal((8, 2)))
    w = rng.integers(1, 3, 8).astype(float)
    best = min(
        objective(K, labels, w)
        for labels in map(np.array, itertools.product(range(k), repeat=8))
        if len(set(labels)) == k
    )
    machine = KMeans(k, Precomputed(), n_init=30, random_state=0).fit(K, sample_weight=w)
    assert machine.inertia_ == pytest.approx(best, rel=1e-9)
    assert machine.relaxation_.bound <= best * (1 + 1e-9)


def test_rings_and_moons_are_parted():
    points, truth = rings()
    machine = KMeans(2, Gaussian(0.6), init="relaxation", random_state=0).fit(points)
    assert same(machine.labels_, truth)
    assert same(machine.predict(points + 0.01), truth)
    assert not same(KMeans(2, random_state=0).fit_predict(points), truth)
    points, truth = make_moons(200, noise=0.03, random_state=0)
    machine = KMeans(2, Gaussian(0.12), init="relaxation", random_state=0).fit(points)
    assert adjusted_rand_score(machine.labels_, truth) > 0.9


# --- engines -------------------------------------------------------------------------------------


def starts_of(n, k, rng, count=3):
    labels = [np.append(np.arange(k), rng.integers(0, k, n - k)) for _ in range(count)]
    return np.stack(labels).astype(np.int32)


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_all_engines_go_the_way_of_the_specification(seed, refine):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 400)), int(rng.integers(1, 30))
    k = int(rng.integers(1, min(n, 20) + 1))
    F, w = rng.standard_normal((n, d)), rng.integers(1, 4, n).astype(float)
    K = F @ F.T
    groups = Groups(starts_of(n, k, rng), k, w, K.diagonal().copy(), 300, refine)
    expected = Reference().partition(K, groups, None)
    backend = choose_backend()
    for answers in (
        backend.partition(K, groups, None),
        backend.features(F, None).partition(groups, None),
        backend.features(sparse.csr_array(F), None).partition(groups, None),
        Reference().features(sparse.csr_array(F), None).partition(groups, None),
    ):
        for answer, reference in zip(answers, expected, strict=True):
            assert (answer.labels == reference.labels).all()
            assert answer.converged and (np.diff(answer.trace[:, 0]) < 0).all()
            np.testing.assert_allclose(
                answer.trace[:, 0],
                reference.trace[:, 0],
                rtol=1e-9,
                atol=1e-9 * groups.weights.sum(),
            )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_start_from_means_is_one_from_the_nearest_labels(seed, refine):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 9000)), int(rng.integers(1, 30))
    k = int(rng.integers(1, min(n, 25) + 1))
    F, w = rng.standard_normal((n, d)), rng.integers(1, 4, n).astype(float)
    means = rng.standard_normal((2, k, d))
    diagonal = np.square(F).sum(axis=1)
    nearest = [np.argmin(np.square(m).sum(axis=1) - 2 * F @ m.T, axis=1) for m in means]
    if any(len(np.unique(labels)) < k for labels in nearest):
        means[:, :, :] = F[rng.choice(n, k, replace=False)]  # each is nearest to itself
        nearest = [np.argmin(np.square(m).sum(axis=1) - 2 * F @ m.T, axis=1) for m in means]
    by_labels = Groups(np.array(nearest, dtype=np.int32), k, w, diagonal, 300, refine)
    by_means = replace(by_labels, starts=means)
    for backend in (choose_backend(), Reference()):
        for rows in (F, sparse.csr_array(F)):
            expected = backend.features(rows, None).partition(by_labels, None)
            found = backend.features(rows, None).partition(by_means, None)
            for answer, other in zip(found, expected, strict=True):
                assert (answer.labels == other.labels).all()
                np.testing.assert_allclose(answer.trace[:, 0], other.trace[:, 0], rtol=1e-9)


def test_a_mean_that_is_nearest_to_no_row_has_the_farthest_one():
    F = np.array([[0.0], [1.0], [2.0], [50.0]])
    groups = Groups(np.array([[[1.0], [1e6]]]), 2, np.ones(4), np.square(F[:, 0]), 300, True)
    for backend in (choose_backend(), Reference()):
        for rows in (F, sparse.csr_array(F)):
            (answer,) = backend.features(rows, None).partition(groups, None)
            assert answer.labels.tolist() == [0, 0, 0, 1]


def test_a_start_from_means_that_is_stopped_at_once_has_labels():
    rng = np.random.default_rng(0)
    F, k = rng.standard_normal((20_000, 5)), 30
    means = rng.standard_normal((1, k, 5))
    groups = Groups(means, k, np.ones(len(F)), np.square(F).sum(axis=1), 300, True)
    expected = np.argmin(np.square(means[0]).sum(axis=1) - 2 * F @ means[0].T, axis=1)
    for backend in (choose_backend(), Reference()):
        (answer,) = backend.features(F, None).partition(groups, lambda *_: True)
        assert not answer.converged
        if len(answer.trace) == 0:
            assert (answer.labels == expected).all()
        assert len(np.unique(answer.labels)) == k


@pytest.mark.skipif(choose_backend().name != "native", reason="there is only one NumPy")
@pytest.mark.parametrize("instructions", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_goes_the_same_way(instructions, monkeypatch):
    native = pytest.importorskip("mercer._native")
    if instructions not in native.instruction_sets():
        pytest.skip("not on this machine")
    rng = np.random.default_rng(5)
    for n, d, k in ((37, 3, 5), (300, 33, 9), (500, 8, 40)):
        F = rng.standard_normal((n, d))
        K = F @ F.T
        groups = Groups(starts_of(n, k, rng), k, np.ones(n), K.diagonal().copy(), 300, True)
        expected = Reference().partition(K, groups, None)
        with monkeypatch.context() as patch:
            patch.setenv("MERCER_ISA", instructions)
            stored = choose_backend().partition(K, groups, None)
            dense = choose_backend().features(F, None).partition(groups, None)
            nonzeros = choose_backend().features(sparse.csr_array(F), None).partition(groups, None)
        for answers in (stored, dense, nonzeros):
            for answer, reference in zip(answers, expected, strict=True):
                assert (answer.labels == reference.labels).all()


def test_the_number_of_threads_changes_no_bit_of_sums_over_many_rows():
    rng = np.random.default_rng(4)
    F, w = rng.standard_normal((150_000, 4)), rng.uniform(0.5, 2.0, 150_000)
    means, diagonal = rng.standard_normal((1, 6, 4)), np.square(F).sum(axis=1)
    found = []
    for threads in (1, 2, 3):
        with config(threads=threads):
            groups = Groups(means, 6, w, diagonal, 5, False)
            found += choose_backend().features(F, None).partition(groups, None)
    for answer in found[1:]:
        assert (answer.labels == found[0].labels).all()
        assert (answer.trace[:, 0] == found[0].trace[:, 0]).all()


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.5)])
def test_the_number_of_threads_changes_nothing(kernel):
    data = blobs(2500, 6, 9)
    found = []
    for threads in (1, 2, 3):
        with config(threads=threads):
            machine = KMeans(9, kernel, n_init=5, random_state=3).fit(data)
            alone = KMeans(9, kernel, n_init=1, random_state=3).fit(data)
        found.append((machine.labels_, machine.inertia_, alone.labels_))
    for labels, inertia, alone in found[1:]:
        assert (labels == found[0][0]).all() and (alone == found[0][2]).all()
        assert inertia == found[0][1]


def test_a_gram_never_stored_gives_the_same():
    data = blobs(600, 3, 4)
    stored = make_gram(Gaussian(1.0), data, Need.PRODUCTS)
    lazy = LazyGram(Source(Gaussian(1.0).expression(), data))
    w = np.ones(len(data))
    for refine in (False, True):
        solver = Lloyd(starts=2, refine=refine)
        a = solve(Partition(stored, 4, w), solver).value
        b = solve(Partition(lazy, 4, w), solver).value
        assert (a.labels == b.labels).all()


def test_memory_stays_bounded_by_the_budget():
    data = blobs(3000, 3, 4)
    with config(memory="20 MB"):  # K alone would take 36 MB
        machine = KMeans(4, Gaussian(2.0), n_init=2, random_state=0).fit(data)
    assert machine.certificate_.ok
    assert machine.inertia_ == pytest.approx(
        KMeans(4, Gaussian(2.0), n_init=2, random_state=0).fit(data).inertia_, rel=1e-6
    )


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0)])
def test_a_far_origin_costs_no_digits(kernel):
    data = blobs(1200, 3, 4, apart=8.0)
    near = KMeans(4, kernel, random_state=0).fit(data)
    far = KMeans(4, kernel, random_state=0).fit(data + 1e6)
    assert same(near.labels_, far.labels_)
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-5)
    assert (far.predict(data + 1e6) == far.labels_).all()


@pytest.mark.filterwarnings("ignore:.*stopped making progress")  # at 1e8
@pytest.mark.parametrize("far", [1e6, 1e8])
def test_a_far_origin_costs_sparse_rows_no_digits(far):
    data = blobs(300, 3, 4, apart=8.0) + far
    dense = KMeans(4, random_state=0).fit(data)
    thin = KMeans(4, random_state=0).fit(sparse.csr_array(data))
    assert same(dense.labels_, thin.labels_)
    assert thin.inertia_ == pytest.approx(dense.inertia_, rel=1e-12)
    assert (thin.predict(sparse.csr_array(data)) == thin.labels_).all()
    wide = np.hstack([data, np.zeros((300, 400))])
    assert same(KMeans(4, random_state=0).fit(wide).labels_, dense.labels_)
    with pytest.warns(UserWarning, match="Subtract a constant from each column"):
        KMeans(4, n_init=1, random_state=0).fit(sparse.csr_array(wide))


@pytest.mark.parametrize("kernel", ["linear", Gaussian(2.0)])
@pytest.mark.parametrize("weight", [1e-300, 1e200])
def test_weights_may_be_of_any_size(kernel, weight):
    plain = KMeans(3, kernel, random_state=0).fit(X)
    machine = KMeans(3, kernel, random_state=0).fit(X, sample_weight=np.full(len(X), weight))
    assert (machine.labels_ == plain.labels_).all()
    assert machine.inertia_ / weight == pytest.approx(plain.inertia_, rel=1e-12)
    np.testing.assert_allclose(machine.cluster_sizes_ / weight, plain.cluster_sizes_)
    assert machine.certificate_.ok


# --- the certificate, the bound, the trace -------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "gaussian", Polynomial(2)])
def test_fits_are_local_optima_and_certified(kernel):
    machine = KMeans(6, kernel, random_state=0).fit(X)
    found = machine.certificate_
    assert found.ok and found.quantities.misplaced == 0 and found.quantities.empty == 0
    assert found.quantities.move_gain <= 1e-6
    assert "no move of a single point" in found.statement
    assert (machine.predict(X) == machine.labels_).all()
    assert machine.solution_.status is Status.SOLVED


def test_the_certificate_judges_anyone():
    problem = Partition(make_gram(Linear(), X, Need.PRODUCTS), 6, np.ones(len(X)))
    rival = Rival(6, n_init=1, random_state=0).fit(X)
    judged = certify(problem, Clusters(rival.labels_))
    assert judged.quantities.objective == pytest.approx(rival.inertia_, rel=1e-9)
    assert judged.quantities.misplaced == 0
    spoiled = rival.labels_.copy()
    spoiled[:5] = (spoiled[:5] + 1) % 6
    verdict = certify(problem, Clusters(spoiled))
    assert not verdict.ok and verdict.quantities.misplaced >= 4
    assert "nearer to the mean of another" in verdict.statement
    empty = certify(problem, Clusters(np.minimum(rival.labels_, 4)))
    assert not empty.ok and empty.quantities.empty == 1
    with pytest.raises(ValueError, match="labels must be from 0 to 5"):
        certify(problem, Clusters(np.full(len(X), 6)))


def test_what_one_move_gains_is_what_the_objective_loses():
    rng = np.random.default_rng(0)
    points, w = rng.standard_normal((12, 2)), rng.integers(1, 4, 12).astype(float)
    K, labels = points @ points.T, np.arange(12) % 3
    problem = Partition(make_gram(Linear(), points, Need.PRODUCTS), 3, w)
    before, best = objective(K, labels, w), 0.0
    for i, c in itertools.product(range(12), range(3)):
        moved = labels.copy()
        moved[i] = c
        best = max(best, before - objective(K, moved, w))
    found = certify(problem, Clusters(labels)).quantities
    assert found.move_gain * found.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_the_trace_never_rises(init, refine):
    for kernel in (Linear(), Gaussian(1.0)):
        machine = KMeans(8, kernel, init=init, refine=refine, random_state=0).fit(blobs(1500))
        traces = machine.solution_.value.traces
        assert len(traces) == 10 and (np.diff(traces, axis=1) <= 0).all()
        measures = [progress.measure for progress in machine.solution_.trace]
        assert (np.diff(measures) < 0).all()
        assert measures[-1] == pytest.approx(traces[:, -1].min())
        assert machine.n_iter_ == len(measures) - 1 <= 300


def test_moves_of_single_points_end_lower():
    data = blobs(800, 6, 12, apart=1.0)
    start = np.arange(len(data)) % 12
    plain = KMeans(12, Gaussian(2.0), init=start, refine=False).fit(data)
    refined = KMeans(12, Gaussian(2.0), init=start).fit(data)
    assert refined.inertia_ < plain.inertia_
    assert not plain.certificate_.ok and refined.certificate_.ok


@pytest.mark.parametrize("n", [100, 900])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)])
def test_the_relaxation_is_below(kernel, n):
    machine = KMeans(4, kernel, random_state=0).fit(blobs(n, k=4, apart=5.0))
    found = machine.relaxation_
    assert 0 < found.bound <= found.objective == pytest.approx(machine.inertia_)
    assert 0 <= found.gap < 1
    one = KMeans(1, kernel).fit(blobs(n)).relaxation_
    assert one.bound == pytest.approx(one.objective, rel=1e-9)
    with pytest.raises(AttributeError, match="relaxation_"):
        _ = pickle.loads(pickle.dumps(machine)).relaxation_


def test_more_clusters_than_features():
    data = blobs(200, 2, 3)
    machine = KMeans(8, init="relaxation", random_state=0).fit(data)
    assert machine.certificate_.ok and (machine.cluster_sizes_ > 0).all()
    assert 0 <= machine.relaxation_.bound <= machine.inertia_
    wide = KMeans(4, random_state=0).fit(blobs(30, 200, 4))  # K is smaller than the features
    assert wide.certificate_.ok and wide.cluster_centers_.shape == (4, 200)
    assert 0 < wide.relaxation_.bound <= wide.inertia_


# --- what must not matter -----------------------------------------------------------------------

relations = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@relations
@given(seed=st.integers(0, 1000), gaussian=st.booleans(), plus=st.booleans())
def test_weights_are_repetition(seed, gaussian, plus):
    rng = np.random.default_rng(seed)
    points, times = rng.standard_normal((40, 3)), rng.integers(0, 4, 40)
    times[:6] = 1
    repeated = rng.permutation(np.repeat(points, times, axis=0))
    machine = KMeans(
        5,
        Gaussian(1.0) if gaussian else "linear",
        init="k-means++" if plus else "random",
        n_init=2,
        random_state=seed,
    )
    weighted = clone(machine).fit(points, sample_weight=times)
    copied = clone(machine).fit(repeated)
    assert weighted.inertia_ == pytest.approx(copied.inertia_, rel=1e-12)
    assert (weighted.predict(points) == copied.predict(points)).all()
    assert (weighted.labels_ == weighted.predict(points)).all()  # rows of weight zero, too
    np.testing.assert_allclose(weighted.cluster_sizes_, copied.cluster_sizes_)


@relations
@given(seed=st.integers(0, 1000), gaussian=st.booleans())
def test_the_order_of_rows_is_nothing(seed, gaussian):
    rng = np.random.default_rng(seed)
    points, order = rng.standard_normal((50, 3)), rng.permutation(50)
    machine = KMeans(4, Gaussian(1.0) if gaussian else "linear", n_init=2, random_state=seed)
    first, second = clone(machine).fit(points), clone(machine).fit(points[order])
    assert (first.labels_[order] == second.labels_).all()


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0), Polynomial(2)])
def test_sparse_rows_are_dense_rows(kernel):
    data = np.where(np.abs(X) > 1.5, X, 0.0)
    a = KMeans(4, kernel, random_state=0).fit(data)
    b = KMeans(4, kernel, random_state=0).fit(sparse.csr_array(data))
    assert a.inertia_ == pytest.approx(b.inertia_, rel=1e-9)
    np.testing.assert_allclose(a.transform(data), b.transform(sparse.csr_array(data)), atol=1e-6)


def test_a_matrix_a_function_and_a_kernel_are_one():
    start = np.arange(len(X)) % 3
    kernels = [(Gaussian(1.0), X), (lambda a, b: np.asarray(Gaussian(1.0)(a, b)), X)]
    kernels.append((Precomputed(), Gaussian(1.0)(X)))
    fits = [KMeans(3, kernel, init=start).fit(data) for kernel, data in kernels]
    for other in fits[1:]:
        assert (other.labels_ == fits[0].labels_).all()
        assert other.inertia_ == pytest.approx(fits[0].inertia_, rel=1e-9)
    with pytest.raises(ValueError, match=r"need k\(x, x\)"):
        fits[2].transform(Gaussian(1.0)(X))


def test_strings_are_parted():
    words = ["aabab", "ababa", "babab", "xyxy", "yxyxx", "xyyxy"] * 2
    machine = KMeans(2, Spectrum(2), random_state=0).fit(words)
    assert same(machine.labels_, [0, 0, 0, 1, 1, 1] * 2)
    assert machine.predict(["ababab"]) == machine.labels_[0]


def test_an_integer_seed_repeats():
    first = KMeans(6, Gaussian(1.0), random_state=7).fit(X)
    assert (KMeans(6, Gaussian(1.0), random_state=7).fit(X).labels_ == first.labels_).all()
    state = np.random.RandomState(7)
    assert KMeans(6, Gaussian(1.0), random_state=state).fit(X).inertia_ > 0
    copy = pickle.loads(pickle.dumps(first))
    assert (copy.predict(X) == first.labels_).all() and copy.certificate_.ok


# --- starts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeding", [PlusPlus(), RandomPoints(), PlusPlus(candidates=1)])
def test_seeds_leave_no_cluster_empty(seeding):
    same_points = np.zeros((9, 2))
    same_points[:3] = X[:3, :2]
    for k in (1, 4, 9):
        problem = Partition(make_gram(Gaussian(1.0), same_points, Need.PRODUCTS), k, np.ones(9))
        labels = seeding.labels(problem, np.random.default_rng(0))
        assert set(labels) == set(range(k))


def test_better_seeds_than_random_ones():
    data = blobs(500, 2, 20, apart=20.0)
    problem = Partition(make_gram(Gaussian(10.0), data, Need.PRODUCTS), 20, np.ones(500))

    def mean(seeding):
        rngs = map(np.random.default_rng, range(10))
        return np.mean([problem.objective(seeding.labels(problem, rng)) for rng in rngs])

    assert mean(PlusPlus()) < 0.9 * mean(RandomPoints())


def test_starts_may_be_given():
    labels = np.arange(len(X)) % 4
    by_function = KMeans(4, init=lambda X, k, random_state: np.asarray(X)[:k]).fit(X)
    by_centres = KMeans(4, init=X[:4]).fit(X)
    assert (by_function.labels_ == by_centres.labels_).all()
    assert KMeans(4, init=labels, max_iter=300).fit(X).certificate_.ok
    assert len(KMeans(4, init=labels).fit(X).solution_.value.traces) == 1
    start = Clusters(labels)
    problem = Partition(make_gram(Linear(), X, Need.PRODUCTS), 4, np.ones(len(X)))
    assert (
        solve(problem, start=start).value.labels
        == solve(problem, Lloyd(Given(labels))).value.labels
    ).all()


# --- bad input ------------------------------------------------------------------------------------


def test_as_many_clusters_as_rows():
    machine = KMeans(20, Gaussian(1.0), random_state=0).fit(X[:20])
    assert sorted(machine.labels_) == list(range(20))
    assert machine.inertia_ == pytest.approx(0, abs=1e-12)
    assert machine.certificate_.ok and machine.certificate_.quantities.empty == 0


def test_more_clusters_than_different_rows():
    data = np.repeat(X[:3], 4, axis=0)
    for kernel in (Linear(), Gaussian(1.0)):
        with pytest.warns(ConvergenceWarning, match="only 3 rows differ"):
            machine = KMeans(5, kernel, random_state=0).fit(data)
        assert (machine.cluster_sizes_ >= 1).all() and len(machine.cluster_sizes_) == 5
        assert machine.inertia_ == pytest.approx(0, abs=1e-9)
    with pytest.raises(ParameterError, match="n_clusters=13 must be at most"):
        KMeans(13).fit(data)


def test_one_cluster():
    machine = KMeans(1, Gaussian(1.0)).fit(X)
    assert not machine.labels_.any() and machine.certificate_.ok
    assert machine.transform(X).shape == (len(X), 1)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)])
@pytest.mark.parametrize("refine", [False, True])
def test_an_adversarial_start(kernel, refine):
    for start in (np.zeros(len(X), dtype=int), np.minimum(np.arange(len(X)), 4)):
        machine = KMeans(5, kernel, init=start, refine=refine).fit(X)
        assert (machine.cluster_sizes_ >= 1).all()
        assert machine.n_iter_ <= 300
        assert (np.diff(machine.solution_.value.traces) <= 0).all()
    far = KMeans(5, kernel, init=np.full((5, 4), 1e6), refine=refine).fit(X)
    assert (far.cluster_sizes_ >= 1).all()


def test_a_far_outlier():
    data = np.vstack([blobs(60, 2, 3, apart=10.0), [[1e8, 1e8]]])
    machine = KMeans(4, random_state=0).fit(data)
    assert machine.cluster_sizes_.min() == 1 and np.isfinite(machine.inertia_)
    assert (np.diff(machine.solution_.value.traces) <= 0).all()


def test_constant_rows():
    with pytest.warns(ConvergenceWarning, match="only 1 rows differ"):
        machine = KMeans(2, Gaussian(1.0)).fit(np.ones((6, 2)))
    assert machine.inertia_ == 0.0 and (machine.cluster_sizes_ >= 1).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", 0),
        ("n_clusters", 2.5),
        ("n_init", 0),
        ("max_iter", -1),
        ("refine", "yes"),
        ("init", "kmeans"),
        ("init", 3),
        ("init", np.zeros(7, dtype=int)),
        ("init", np.full(len(X), 8)),
        ("init", np.zeros(len(X))),
        ("init", np.zeros((8, 9))),
        ("random_state", np.random.default_rng(0)),
        ("callback", 1),
        ("time_limit", 0),
    ],
)
def test_parameters_are_refused_by_name(name, value):
    with pytest.raises(ParameterError, match=f"KMeans: {name}="):
        KMeans(**{name: value}).fit(X)


def test_centres_are_refused_for_a_matrix():
    with pytest.raises(ParameterError, match="labels for a precomputed kernel"):
        KMeans(2, Precomputed(), init=np.zeros((2, len(X)))).fit(X @ X.T)


# --- stopping ------------------------------------------------------------------------------------

INTERRUPT = """
import signal, time
import numpy as np
from mercer import KMeans
from mercer.backends import choose_backend
from mercer.backends.contract import Groups
rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 10))
machine = KMeans(60, n_init=1000)
groups = Groups(
    (rng.permuted(np.tile(np.arange(2000), (1000, 1)), axis=1) % 60).astype(np.int32),
    60, np.ones(2000), (X * X).sum(axis=1), 300, True,
)
K, backend = X @ X.T, choose_backend()
signal.signal(signal.SIGPROF, signal.default_int_handler)  # sent by a timer of processor time
for work in (
    lambda: machine.fit(X),
    lambda: backend.partition(K, groups, None),
    lambda: backend.features(X, None).partition(groups, None),
):
    begun = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, 0.3)
        work()
    except KeyboardInterrupt:
        print(time.process_time() - begun - 0.3)
assert not hasattr(machine, "labels_")
"""


@pytest.mark.skipif(choose_backend().name != "native", reason="NumPy hears of it anyway")
def test_ctrl_c_is_heard():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT], capture_output=True, text=True, timeout=120, check=True
    )
    late = list(map(float, done.stdout.split()))
    assert len(late) == 3 and max(late) < 1.0


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)])
def test_a_callback_stops(kernel):
    heard = []

    def stop(progress):
        heard.append(progress)
        return True

    with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
        machine = KMeans(9, kernel, callback=stop, random_state=0).fit(
            blobs(3000, 5, 30, apart=1.0)
        )
    assert len(heard) == 1 and machine.solution_.status is Status.STOPPED
    assert np.isfinite(machine.inertia_) and (machine.cluster_sizes_ > 0).all()


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0)])
def test_a_time_limit_stops(kernel, monkeypatch):
    clock = Ticking(0.002)
    monkeypatch.setattr(deadline, "clock", clock)
    data = np.random.default_rng(0).standard_normal((500, 12))
    with pytest.warns(ConvergenceWarning, match="time limit"):
        KMeans(50, kernel, n_init=500, time_limit=2.0).fit(data)
    assert clock.reads * clock.step < 2.0 + 2 * deadline.GRACE


def test_few_steps_are_warned_about():
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        machine = KMeans(8, max_iter=1, random_state=0).fit(blobs(500, apart=1.0))
    assert machine.n_iter_ == 1 and not machine.certificate_.ok


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_new_rows_on_which_a_kernel_overflows_are_refused_in_words():
    X = blobs(20, 3) / 9
    machine = KMeans(2, exp(Linear()), random_state=0).fit(X)
    with pytest.raises(ValueError, match="overflows on"):
        machine.transform(np.vstack([X[:1], np.full((1, 3), 1e3)]))


@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("factor", [1.0, 0.0107, 1e-9])
def test_rounding_of_equal_rows_is_no_gain(factor, refine):
    with pytest.warns(ConvergenceWarning, match="rows differ"):
        machine = KMeans(8, factor * Gaussian(0.987), refine=refine, random_state=2)
        machine.fit(np.full((198, 1), 7.0))
    assert machine.certificate_.ok
