"""Eigenpairs: products from one triangle, block Lanczos, float32 with corrections, certificates."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.decomposition import KernelPCA

import mercer
from mercer.backends import available_backends, choose_backend
from mercer.certificates import certify
from mercer.gram import (
    CenteredGram,
    DenseGram,
    FactoredGram,
    LazyGram,
    Need,
    PrecomputedGram,
    ScaledGram,
    centered,
    exact,
    make_gram,
)
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.problems import Eigenproblem, Modes
from mercer.resources import MemoryBudgetError
from mercer.solvers import Eigh, Lanczos, Status, solve
from mercer.solvers.dispatch import choose
from mercer.solvers.eigen.block_lanczos import largest_pairs
from mercer.solvers.eigen.dense import signs_of

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((900, 4))


def residuals(gram, modes):
    K = np.asarray(exact(gram).dense(), dtype=np.float64)
    return np.linalg.norm(K @ modes.vectors - modes.vectors * modes.values, axis=0) / modes.values


def same_space(A, B, atol=1e-8):
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=atol)


def passes(points, dtype=np.float32, scale=1.5):
    return CenteredGram(make_gram(Gaussian(scale), points, Need.PASSES, dtype=dtype))


# --- products from one triangle --------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("backend", available_backends())
def test_products_do_not_depend_on_threads(dtype, backend):
    points = rng.standard_normal((1500, 5))
    V = rng.standard_normal((1500, 9))
    with mercer.config(backend=backend):
        dense, lazy = (
            kind(make_gram(Gaussian(1.5), points, Need.PRODUCTS, dtype=dtype).source)
            for kind in (DenseGram, LazyGram)
        )
        K = np.asarray(dense.dense(), dtype=np.float64)
        for gram in (dense, lazy, PrecomputedGram(dense.dense())):
            answers = []
            for threads in (1, 2, 3):
                with mercer.config(threads=threads):
                    answers.append(gram @ V)
                    assert (gram @ V[:, 0]).shape == (1500,)
            np.testing.assert_array_equal(answers[0], answers[1])
            np.testing.assert_array_equal(answers[0], answers[2])
            atol = 2e-3 if dtype == np.float32 else 1e-10
            np.testing.assert_allclose(answers[0], K @ V, atol=atol)


def test_columns_of_very_different_size_in_float32():
    K = np.eye(300, dtype=np.float32)
    V = np.outer(np.ones(300), [1e-60, 1.0, 1e60, 0.0])
    np.testing.assert_allclose(choose_backend().symmetric_product(K, V), V, rtol=1e-6)


def test_a_given_float32_matrix_is_judged_in_float64():
    K = (X[:300] @ X[:300].T).astype(np.float32)
    V = rng.standard_normal((300, 3))
    product = exact(PrecomputedGram(K)) @ V
    np.testing.assert_allclose(product, np.asarray((K + K.T) / 2, np.float64) @ V, rtol=1e-12)


# --- block Lanczos ---------------------------------------------------------------------------


def matrix_with(values, n=300, seed=1):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    padded = np.zeros(n)
    padded[: len(values)] = values
    A = (Q * padded) @ Q.T
    return (A + A.T) / 2


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(st.floats(-5, 10), min_size=1, max_size=60),
    count=st.integers(1, 20),
    block=st.sampled_from([1, 2, 5, 16]),
    seed=st.integers(0, 5),
)
@example(values=[5.3e-159], count=1, block=1, seed=0)  # squares of such numbers underflow
def test_largest_pairs_of_any_spectrum(values, count, block, seed):
    A = matrix_with(values, seed=seed)
    found = largest_pairs(A.__matmul__, 300, count, tol=1e-9, block=block, max_iter=3000)
    expected = np.linalg.eigvalsh(A)[::-1][:count]
    scale = max(1.0, np.abs(values).max())
    np.testing.assert_allclose(found.values, expected, atol=1e-7 * scale)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(count), atol=1e-10)


def test_single_vectors_show_copies_too():
    A = matrix_with([0.0, 0.0, 0.0, 2.0, 2.0, 1.0], seed=3)
    assert largest_pairs(A.__matmul__, 300, 2, tol=1e-9, block=1).values == pytest.approx(
        [2.0, 2.0]
    )
    A = matrix_with([3.0] * 4 + [2.0] * 3 + [1.0], seed=1)
    found = largest_pairs(A.__matmul__, 300, 7, tol=1e-9, block=1)
    np.testing.assert_allclose(found.values, [3.0] * 4 + [2.0] * 3, rtol=1e-8)


def test_more_copies_than_a_block_shows():
    A = matrix_with([2.0] * 30 + [1.0] * 40, n=400)
    for block in (4, 16):
        found = largest_pairs(A.__matmul__, 400, 30, tol=1e-10, block=block)
        np.testing.assert_allclose(found.values, 2.0, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_pairs_of_a_matrix_hardly_larger_than_a_block(n):
    A = matrix_with(np.arange(1.0, n + 1), n=n)
    found = largest_pairs(A.__matmul__, n, n + 3, tol=1e-10)
    np.testing.assert_allclose(found.values, np.arange(n, 0, -1.0), rtol=1e-10)


@pytest.mark.parametrize("solver", [Eigh(), Lanczos()])
def test_known_vectors_are_left_out(solver):
    gram = CenteredGram(make_gram(Gaussian(1.5), X[:400], Need.PRODUCTS))
    values, vectors = np.linalg.eigh(gram.dense())
    known = vectors[:, ::-1][:, [0, 2]]
    problem = Eigenproblem(gram, 5, known=known)
    found = solve(problem, solver).value
    np.testing.assert_allclose(found.values, values[::-1][[1, 3, 4, 5, 6]], rtol=1e-9)
    assert np.abs(known.T @ found.vectors).max() < 1e-10
    assert certify(problem, found).ok
    # the same pairs do not answer the question without `known`, and the other way round
    assert not certify(Eigenproblem(gram, 5), found).ok
    all_of_them = solve(Eigenproblem(gram, 5), solver).value
    assert not certify(problem, all_of_them).ok


def test_known_vectors_and_nearly_all_pairs():
    K = np.diag([3.0, 2.0, 1.0, -1.0])
    found = solve(Eigenproblem(PrecomputedGram(K), 9, known=np.eye(4)[:, :1])).value
    np.testing.assert_allclose(found.values, [2.0, 1.0, -1.0])


def test_a_restart_is_bounded_by_the_memory_budget():
    values = 1.0 / np.arange(1, 301) ** 0.25
    A = matrix_with(values)
    with mercer.config(memory="1 MB"):
        found = largest_pairs(A.__matmul__, 300, 6, tol=1e-8, block=4, max_iter=2000)
    assert found.status is Status.SOLVED
    np.testing.assert_allclose(found.values, values[:6], rtol=1e-8)


def test_a_time_limit_and_a_callback_end_the_search():
    gram = passes(X)
    with pytest.warns(match="time limit"):
        assert solve(Eigenproblem(gram, 5), Lanczos(), time_limit=0.0).status is Status.TIME_LIMIT
    with pytest.warns(match="callback"):
        stopped = solve(Eigenproblem(gram, 5), Lanczos(), callback=lambda progress: True)
    assert stopped.status is Status.STOPPED


def test_matrices_that_are_not_finite_are_refused():
    K = np.eye(700)
    gram = PrecomputedGram(K)
    gram._matrix.setflags(write=True)
    gram._matrix[3, 3] = np.nan
    for solver in (Lanczos(), Eigh()):
        with pytest.raises(mercer.solvers.SolverError, match="overflowed"):
            solve(Eigenproblem(gram, 3), solver)


# --- float32, then float64 -------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8, 1e-11])
def test_float32_reaches_any_tolerance(tol):
    gram = passes(X)
    assert gram.dtype == np.float32
    solution = solve(Eigenproblem(gram, 8), Lanczos(tol=tol))
    assert solution.status is Status.SOLVED
    assert residuals(gram, solution.value).max() <= tol
    assert certify(Eigenproblem(gram, 8), solution.value, tol).ok


def test_float32_of_a_large_common_offset():
    """Entries of K are large beside what is left of them after centring."""
    points = rng.standard_normal((800, 3)) + 30.0
    gram = CenteredGram(DenseGram(make_source(Polynomial(2), points, np.float32)))
    problem = Eigenproblem(gram, 4)
    found = solve(problem, Lanczos(tol=1e-6)).value
    assert certify(problem, found, 1e-6).ok
    expected = np.linalg.eigvalsh(exact(gram).dense())[::-1][:4]
    np.testing.assert_allclose(found.values, expected, rtol=1e-6)


def make_source(kernel, points, dtype):
    return LazyGram(mercer.gram.Source(kernel.expression(), points, dtype, True)).source


def test_weighted_rows_in_float32():
    weights = rng.uniform(0.1, 5.0, 900)
    gram = make_gram(Gaussian(1.5), X, Need.PASSES, dtype=np.float32)
    problem = Eigenproblem(ScaledGram(CenteredGram(gram, weights), np.sqrt(weights)), 6)
    found = solve(problem, Lanczos(tol=1e-9)).value
    assert certify(problem, found, 1e-9).ok


def test_all_pairs_of_a_float32_gram_are_those_of_float64():
    gram = passes(X[:150])
    found = solve(Eigenproblem(gram, 100), Eigh()).value
    expected = np.linalg.eigvalsh(exact(gram).dense())[::-1][:100]
    np.testing.assert_allclose(found.values, expected, atol=1e-12 * expected[0])


# --- how K is held ---------------------------------------------------------------------------


def test_passes_take_what_fits():
    def held(memory, **options):
        with mercer.config(memory=memory):
            return make_gram(Gaussian(1.0), X, Need.PASSES, **options)

    assert held("1 GB").dtype == np.float64 and isinstance(held("1 GB"), DenseGram)
    smaller = held("5 MB")
    assert smaller.dtype == np.float32 and isinstance(smaller, DenseGram)
    assert held("1 MB").dtype == np.float32 and isinstance(held("1 MB"), LazyGram)
    huge = 1e40 * Gaussian(1.0)
    assert make_gram(huge, X, Need.PASSES, dtype=np.float32).dtype == np.float64


def test_sparse_text_is_multiplied_by_its_features():
    words = sparse.random_array((1200, 9000), density=2e-3, format="csr", random_state=1)
    gram = make_gram(Linear(), words, Need.PASSES)
    assert isinstance(gram, FactoredGram) and sparse.issparse(gram.factor)
    for held in (gram, centered(gram)):
        problem = Eigenproblem(held, 6)
        assert isinstance(choose(problem), Lanczos)
        found = solve(problem).value
        assert certify(problem, found).ok
        expected = np.linalg.eigvalsh(held.dense())[::-1][:6]
        np.testing.assert_allclose(found.values, expected, rtol=1e-9)


def test_features_give_orthonormal_vectors_for_tiny_eigenvalues():
    F = rng.standard_normal((2000, 12)) * np.logspace(0, -9, 12)
    problem = Eigenproblem(make_gram(Linear(), F, Need.PASSES), 12)
    assert choose(problem) == Eigh()
    found = solve(problem).value
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(12), atol=1e-12)
    assert certify(problem, found).ok
    np.testing.assert_allclose(found.values, np.linalg.svd(F)[1] ** 2, rtol=1e-5)


def test_more_rows_than_one_waits_for_are_refused_with_alternatives():
    gram = LazyGram(make_source(Gaussian(1.0), np.zeros((200_000, 2)), np.float32))
    with pytest.raises(MemoryBudgetError, match=r"200000 points.*160 GB.*solver=Lanczos"):
        solve(Eigenproblem(CenteredGram(gram), 3))


# --- certificates ----------------------------------------------------------------------------


def test_a_polygon_has_pairs_of_equal_eigenvalues():
    """B11: single vectors are arbitrary, the space is not, whoever finds it."""
    angles = 2 * np.pi * np.arange(700) / 700
    polygon = np.column_stack([np.cos(angles), np.sin(angles)])
    spaces = []
    for solver in (Eigh(), Lanczos(tol=1e-12)):
        for threads in (1, 2):
            with mercer.config(threads=threads):
                gram = CenteredGram(make_gram(Gaussian(0.7), polygon, Need.PASSES))
                problem = Eigenproblem(gram, 6)
                found = solve(problem, solver).value
                assert certify(problem, found, 1e-10).ok
                spaces.append(found.vectors)
    for other in spaces[1:]:
        same_space(spaces[0], other)
    np.testing.assert_allclose(found.values[::2], found.values[1::2], rtol=1e-9)
    turned = found.vectors.copy()
    turned[:, :2] = found.vectors[:, :2] @ [[0.6, 0.8], [-0.8, 0.6]]
    assert certify(problem, Modes(found.values, turned)).ok


@pytest.mark.parametrize("n", [300, 900])
def test_a_missed_pair_is_found(n):
    gram = passes(X[:n])
    more = solve(Eigenproblem(gram, 9)).value
    problem = Eigenproblem(gram, 8)
    assert certify(problem, Modes(more.values[:8], more.vectors[:, :8])).ok
    for missing in range(8):
        left = np.delete(np.arange(9), missing)
        judged = certify(problem, Modes(more.values[left], more.vectors[:, left]))
        assert not judged.ok and judged.quantities.largest_outside > 1, missing
        assert judged.quantities.residual < 1e-6


def test_the_bound_on_what_is_outside_holds():
    gram = passes(X)
    five = solve(Eigenproblem(gram, 6)).value
    problem = Eigenproblem(gram, 5)
    judged = certify(problem, Modes(five.values[:5], five.vectors[:, :5])).quantities
    outside = five.values[5] / five.values[4]
    assert judged.largest_outside <= outside * (1 + 1e-6)
    assert judged.largest_outside >= 0.9 * outside
    assert judged.outside_bound >= outside


def test_a_spoiled_vector_a_spoiled_value_and_a_copy_are_not_certified():
    gram = passes(X)
    problem = Eigenproblem(gram, 5)
    right = solve(problem).value
    assert certify(problem, right, 1e-8).ok
    vectors, values = right.vectors.copy(), right.values.copy()
    values[4] *= 1 + 1e-5
    assert not certify(problem, Modes(values, vectors)).ok
    vectors[:, 4] = vectors[:, 3]
    assert not certify(problem, Modes(right.values, vectors)).ok
    assert not certify(problem, Modes(right.values * np.nan, right.vectors)).ok


def test_rows_that_do_not_vary():
    gram = CenteredGram(make_gram(Gaussian(1.0), np.ones((700, 3)), Need.PASSES))
    problem = Eigenproblem(gram, 3)
    found = solve(problem).value
    np.testing.assert_allclose(found.values, 0.0, atol=1e-10)


def test_answers_of_scikit_learn_are_judged():
    d = 4
    problem = Eigenproblem(passes(X, np.float64, scale=np.sqrt(d / 2)), 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = {
            name: KernelPCA(6, kernel="rbf", gamma=1 / d, eigen_solver=name, random_state=0).fit(X)
            for name in ("dense", "arpack", "randomized")
        }
    judged = {
        name: certify(problem, Modes(fit.eigenvalues_, fit.eigenvectors_), 1e-5)
        for name, fit in fits.items()
    }
    assert judged["dense"].ok and judged["arpack"].ok
    rough = KernelPCA(
        6, kernel="rbf", gamma=1 / d, eigen_solver="randomized", iterated_power=0, random_state=0
    ).fit(X)
    assert not certify(problem, Modes(rough.eigenvalues_, rough.eigenvectors_), 1e-5).ok
    ours = solve(problem).value
    np.testing.assert_allclose(ours.values, fits["dense"].eigenvalues_, rtol=1e-9)


def test_more_starting_vectors_than_a_block_help():
    A = np.random.default_rng(0).normal(size=(700, 12)) / np.arange(1, 13)
    gram = centered(make_gram(Gaussian(2.5), A, Need.PRODUCTS))
    fewer = solve(Eigenproblem(gram, 64), Lanczos(tol=1e-6))
    warm = solve(Eigenproblem(gram, 128), Lanczos(tol=1e-6, max_iter=30), start=fewer.value)
    assert warm.status is Status.SOLVED and certify(Eigenproblem(gram, 128), warm.value).ok


def test_signs_make_the_first_largest_entry_positive():
    table = np.array([[-3.0, 1.0, 0.0], [3.0, -2.0, 0.0]])
    assert signs_of(table).tolist() == [-1.0, -1.0, 1.0]
    assert signs_of(np.zeros((0, 2))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e150])
def test_wrong_pairs_are_seen_at_any_scale(scale):
    gram = make_gram(Linear(), np.random.default_rng(0).normal(size=(50, 4)) * scale, Need.PRODUCTS)
    right = solve(Eigenproblem(gram, 2), Eigh()).value
    turned = right.vectors + 1e-4 * np.roll(right.vectors, 1, axis=1)
    assert certify(Eigenproblem(gram, 2), right).ok
    assert not certify(Eigenproblem(gram, 2), Modes(right.values, np.linalg.qr(turned)[0])).ok
