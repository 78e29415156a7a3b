import numpy as np
import pytest
from scipy import sparse

import mercer
from mercer.expression import bind_columns
from mercer.gram import (
    CachedGram,
    CenteredGram,
    DenseGram,
    FactoredGram,
    LazyGram,
    Need,
    PrecomputedGram,
    ScaledGram,
    ShiftedGram,
    Source,
    centered,
    exact,
    make_gram,
    pivoted_cholesky,
    scaled,
)
from mercer.gram.accurate_products import exact_sums
from mercer.gram.base import RKHSFunction
from mercer.gram.build import feature_gram
from mercer.gram.policy import FLOAT64_ROWS, stored_dtype
from mercer.kernels import (
    AllSubsets,
    FeatureMap,
    Gaussian,
    Linear,
    Polynomial,
    Precomputed,
    Spectrum,
)
from mercer.testing import check_gram

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((40, 4)), rng.standard_normal((7, 4))
KERNEL = Gaussian(1.5) + 0.3 * Polynomial(2)
K, KZ = KERNEL(X), KERNEL(Z, X)


def source(kernel=KERNEL, points=X):
    return Source(bind_columns(kernel.expression(), None), points, np.dtype(np.float64))


GRAMS = {
    "dense": lambda: DenseGram(source()),
    "lazy": lambda: LazyGram(source()),
    "cached": lambda: CachedGram(source(), budget=5 * 40 * 8),
    "precomputed": lambda: PrecomputedGram(K),
}


@pytest.mark.parametrize("name", GRAMS)
def test_every_storage_answers_like_the_matrix(name):
    given = name == "precomputed"
    check_gram(GRAMS[name](), K, KZ if given else Z, KZ)


@pytest.mark.parametrize("name", GRAMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_centred(name, weighted):
    w = rng.random(40) + 0.1 if weighted else np.ones(40)
    w = w / w.sum()
    H = np.eye(40) - np.outer(np.ones(40), w)
    centred = H @ K @ H.T
    centred_new = KZ @ H.T - np.outer(np.ones(7), w @ K @ H.T)
    given = KZ if name == "precomputed" else Z
    check_gram(CenteredGram(GRAMS[name](), w), (centred + centred.T) / 2, given, centred_new)


@pytest.mark.parametrize("name", GRAMS)
def test_shifted_moves_training_points_only(name):
    d = rng.random(40)
    given = KZ if name == "precomputed" else Z
    check_gram(ShiftedGram(GRAMS[name](), d), K + np.diag(d), given, KZ)


@pytest.mark.parametrize("name", GRAMS)
def test_scaled_moves_training_points_only(name):
    s = rng.random(40) + 0.1
    given = KZ if name == "precomputed" else Z
    gram = scaled(GRAMS[name](), s)
    assert isinstance(gram, ScaledGram)
    check_gram(gram, K * np.outer(s, s), given, KZ * s)
    check_gram(exact(gram), K * np.outer(s, s), given, KZ * s)


@pytest.mark.parametrize("as_csr", [False, True])
def test_features_stay_features_when_centred_and_scaled(as_csr):
    points, new = (sparse.csr_array(X), sparse.csr_array(Z)) if as_csr else (X, Z)
    gram = FactoredGram(Linear().features(4), points)
    s, w = rng.random(40) + 0.1, rng.random(40)
    w = w / w.sum()
    check_gram(scaled(gram, s), (X @ X.T) * np.outer(s, s), new, (Z @ X.T) * s)
    assert isinstance(scaled(gram, s), FactoredGram)
    moved, moved_new = X - w @ X, Z - w @ X
    check_gram(centered(gram, w), moved @ moved.T, new, moved_new @ moved.T)
    # a mean taken off would fill sparse features up
    assert isinstance(centered(gram, w), CenteredGram if as_csr else FactoredGram)


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2)])
def test_factored(kernel, as_csr):
    points, new = (sparse.csr_array(X), sparse.csr_array(Z)) if as_csr else (X, Z)
    gram = FactoredGram(kernel.features(4), points)
    check_gram(gram, kernel(X), new, kernel(Z, X))
    w = np.full(40, 1 / 40)
    H = np.eye(40) - np.outer(np.ones(40), w)
    M = H @ kernel(X) @ H.T
    check_gram(CenteredGram(gram), (M + M.T) / 2, rtol=1e-9)


def test_centred_feature_space_means_zero():
    gram = CenteredGram(DenseGram(source()))
    np.testing.assert_allclose(gram @ np.ones(40), 0, atol=1e-10)
    cross = gram.cross(X).dense()
    np.testing.assert_allclose(cross, gram.dense(), atol=1e-12)


def test_row_cache_stays_within_its_budget_and_computes_rows_once():
    gram = CachedGram(source(), budget=5 * 40 * 8)
    gram.rows([0, 1, 2])
    gram.rows([2, 1, 0])
    assert gram.evaluated == 3
    for i in range(40):
        gram.rows([i])
    assert len(gram._kept) == 5
    before = gram.evaluated
    gram.rows([39])
    assert gram.evaluated == before
    gram.rows([0])
    assert gram.evaluated == before + 1


def test_storage_is_chosen_by_need_and_budget():
    assert isinstance(make_gram(Linear(), X, Need.PRODUCTS), FactoredGram)
    assert isinstance(make_gram(Linear(), X, Need.ROWS), DenseGram)
    assert isinstance(make_gram(Linear(), X[:3], Need.PRODUCTS), DenseGram)
    assert isinstance(make_gram(Gaussian(1.0), X, Need.MATRIX), DenseGram)
    assert isinstance(make_gram(Precomputed(), K, Need.MATRIX), PrecomputedGram)
    with mercer.config(memory="10 kB"):
        assert isinstance(make_gram(Gaussian(1.0), X, Need.PRODUCTS), LazyGram)
        assert isinstance(make_gram(Gaussian(1.0), X, Need.ROWS), CachedGram)
        with pytest.raises(mercer.MemoryBudgetError, match=r"40 points.*12\.8 kB.*10 kB.*Alternat"):
            make_gram(Gaussian(1.0), X, Need.MATRIX)


def test_refusal_comes_before_allocation():
    huge = np.broadcast_to(np.zeros(2), (200_000, 2))
    with mercer.config(memory="8 GB"), pytest.raises(MemoryError, match="320 GB"):
        make_gram(Gaussian(1.0), huge, Need.MATRIX)


def test_strings_are_points_too():
    words = np.array(["kernel", "colonel", "kennel", "machine"], dtype=object)
    gram = make_gram(Spectrum(2), words, Need.PRODUCTS)
    check_gram(gram, Spectrum(2)(words), words[:2], Spectrum(2)(words[:2], words))


def test_rows_of_a_given_matrix_are_compared_with_all_its_columns():
    rows = np.array([3, 1, 10])
    gram = make_gram(Precomputed(), K, Need.MATRIX, rows=rows)
    check_gram(gram, K[np.ix_(rows, rows)], KZ, KZ[:, rows])


def test_exact_forgets_what_was_stored():
    gram = DenseGram(source())
    stored = gram.dense()
    stored.setflags(write=True)
    stored[0, 0] = 99.0
    assert exact(ShiftedGram(CenteredGram(gram), 1.0)).dense()[0, 0] != gram.dense()[0, 0]
    np.testing.assert_allclose(exact(gram).dense(), K, atol=1e-12)


def test_sums_over_a_rectangle():
    rows, columns = np.array([3, 1, 3]), np.array([0, 5, 7, 2])
    coef = np.arange(8.0).reshape(4, 2)
    expected = K[np.ix_(rows, columns)] @ coef
    single = Source(bind_columns(KERNEL.expression(), None), X, np.dtype(np.float32))
    for gram in (DenseGram(single), PrecomputedGram(K)):
        np.testing.assert_allclose(exact_sums(gram, rows, columns, coef), expected, rtol=1e-12)
        one = exact_sums(gram, rows, columns, coef[:, 1])
        np.testing.assert_allclose(one, expected[:, 1:], rtol=1e-12)
        assert not exact_sums(gram, rows, columns[:0], coef[:0]).any()


def test_stored_matrix_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        DenseGram(source()).dense()[0, 0] = 1.0


def test_overflow_is_found_before_the_solver():
    big = X.copy()
    big[3] = 1e60
    with pytest.raises(ValueError, match=r"kernel value not finite.*1 row.*\(3\)"):
        make_gram(Polynomial(8), big, Need.MATRIX)


class TestPivotedCholesky:
    def test_full_rank_reproduces_the_matrix(self):
        factor = pivoted_cholesky(DenseGram(source()), 40)
        np.testing.assert_allclose(factor.factor @ factor.factor.T, K, atol=1e-8)

    def test_trace_left_bounds_the_error(self):
        points = rng.standard_normal((300, 2))
        gram = DenseGram(source(Gaussian(1.0), points))
        for rank in (5, 30, 80):
            found = pivoted_cholesky(gram, rank)
            left = gram.dense() - found.factor @ found.factor.T
            assert found.factor.shape[1] <= rank
            assert np.linalg.norm(left, 2) <= found.trace_left + 1e-9
            assert np.linalg.eigvalsh(left).min() > -1e-9
            np.testing.assert_allclose(np.trace(left), found.trace_left, atol=1e-8)

    def test_stops_at_the_numerical_rank(self):
        gram = DenseGram(source(Linear(), X))
        assert pivoted_cholesky(gram, 40).factor.shape[1] == 4

    def test_zero_matrix(self):
        assert pivoted_cholesky(PrecomputedGram(np.zeros((3, 3))), 2).factor.shape == (3, 0)


class TestPrecomputed:
    def test_not_square(self):
        with pytest.raises(ValueError, match="square matrix"):
            PrecomputedGram(KZ)

    def test_rounding_asymmetry_is_averaged(self):
        tilted = K.copy()
        tilted[0, 1] *= 1 + 1e-14
        gram = PrecomputedGram(tilted)
        np.testing.assert_array_equal(gram.dense(), gram.dense().T)

    def test_real_asymmetry_is_refused(self):
        tilted = K.copy()
        tilted[0, 1] += 1e-3
        with pytest.raises(ValueError, match=r"not symmetric.*\((0, 1|1, 0)\)"):
            PrecomputedGram(tilted)

    def test_nan_is_placed(self):
        broken = K.copy()
        broken[5, 5] = np.nan
        with pytest.raises(ValueError, match=r"\(5, 5\) is nan"):
            PrecomputedGram(broken)

    def test_transposed_new_points_are_explained(self):
        with pytest.raises(ValueError, match="transposed"):
            PrecomputedGram(K).cross(KZ.T)

    def test_float32_products_may_round(self):
        B = rng.standard_normal((60, 50)).astype(np.float32)
        K32 = (B * np.arange(50, dtype=np.float32)) @ B.T
        tilted = K32 + 1e-6 * np.abs(K32).max() * np.triu(np.ones((60, 60), np.float32), 1)
        PrecomputedGram(tilted.astype(np.float32))

    def test_memory_is_asked_for_first(self):
        with mercer.config(memory="30 kB"), pytest.raises(MemoryError, match="precomputed"):
            make_gram(Precomputed(), K, Need.MATRIX)


def test_float32_rows_are_expanded_in_float64():
    A = np.linspace(0, 6, 200)[:, None].astype(np.float32)
    y = np.sin(A.astype(float)).ravel()
    machine = mercer.KernelRidge(1e-12, kernel=Gaussian(1.0)).fit(A, y)
    assert np.abs(machine.predict(A) - y).max() < 1e-5
    factored = make_gram(Polynomial(3), A, Need.PRODUCTS)
    truth = Polynomial(3)(A.astype(float))
    np.testing.assert_allclose(factored.dense(), truth, rtol=0, atol=1e-13 * truth.max())


def test_settings_of_a_block_and_of_the_process():
    with mercer.config(threads=1):
        mercer.set_config(memory="1 GB")
        assert mercer.get_config().memory == 10**9
        assert mercer.get_config().threads == 1
    mercer.set_config(memory=None)
    assert mercer.get_config() == mercer.Config()
    with mercer.config(threads=np.int64(2)):
        assert mercer.get_config().threads == 2
    for wrong in ({"threads": True}, {"memory": float("inf")}, {"backend": "nope"}, {"memory": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))), mercer.config(**wrong):
            pass


def test_a_function_is_primal_where_gram_and_answer_are():
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(9, 2)), rng.normal(size=(9, 3))
    featured, stored = FactoredGram(np.asarray, X), PrecomputedGram(X @ X.T)
    primal, dual = (RKHSFunction(gram, coef, X.T @ coef) for gram in (featured, stored))
    assert primal.is_primal
    assert not dual.is_primal  # a matrix has no features that weights could be of
    f, g = primal.at_points(), dual.at_points()
    np.testing.assert_allclose(f, g, rtol=1e-12)
    assert primal.squared_norm(f) == pytest.approx(dual.squared_norm(g), rel=1e-12)
    Z = rng.normal(size=(4, 2))
    np.testing.assert_allclose(primal.expand()(Z), dual.expand()(Z @ X.T), rtol=1e-12)
    assert not RKHSFunction(featured, coef).is_primal


def test_float32_is_asked_about_only_where_it_saves_something():
    assert stored_dtype(FLOAT64_ROWS, lambda: pytest.fail("asked")) == np.float64
    assert stored_dtype(FLOAT64_ROWS + 1) == np.float32
    assert stored_dtype(FLOAT64_ROWS + 1, lambda: False) == np.float64


def test_a_gram_is_raw_before_it_is_centred_and_scaled():
    gram = PrecomputedGram(np.eye(4))
    assert gram.raw is gram
    assert ScaledGram(CenteredGram(gram), np.arange(1.0, 5.0)).raw is gram


@pytest.mark.parametrize("need", [Need.PASSES, Need.BOX, Need.PRODUCTS])
def test_a_map_of_endless_features_is_never_evaluated(need, monkeypatch):
    """All subsets of 16 columns, squared, have 2 * 10^9 features: a single row of them is 17 GB."""
    X = sparse.random_array((5, 16), density=0.5, random_state=0, format="csr")
    monkeypatch.setattr(FeatureMap, "__call__", lambda *_: pytest.fail("features were evaluated"))
    gram = make_gram(AllSubsets() ** 2, X, need)
    assert gram.factor is None


def test_products_with_nothing_need_no_rows():
    """Coefficients that are all zero select no row, and of strings no empty set is made."""
    gram = LazyGram(Source(Spectrum(2).expression(), np.array(["ab", "ba", "b"], dtype=object)))
    np.testing.assert_array_equal(gram @ np.zeros(3), np.zeros(3))
    np.testing.assert_array_equal(gram @ np.zeros((3, 2)), np.zeros((3, 2)))


@pytest.mark.parametrize("as_csr", [False, True], ids=["dense", "sparse"])
def test_features_of_new_rows_are_cut_by_the_budget(as_csr):
    """Sparse features of thousands of columns are few numbers, and are not cut into single rows."""
    made = np.zeros((4000, 500))
    made[np.arange(4000), np.arange(4000) % 500] = 1.0
    rows, seen = sparse.csr_array(made) if as_csr else made, []

    def features(Z):
        seen.append(Z.shape[0])
        return 2.0 * Z

    gram = feature_gram(features, rows[:50])
    weights = np.arange(500.0)[:, None]
    seen.clear()
    with mercer.config(memory=4_000_000):
        np.testing.assert_array_equal(gram.expand_weights(weights)(rows), 2.0 * made @ weights)
        taken = gram.cross(rows)
        np.testing.assert_array_equal(
            taken @ np.ones((50, 1)), 4 * made @ made[:50].T.sum(1)[:, None]
        )
        np.testing.assert_array_equal(taken.rows(slice(3, 5)), 4 * made[3:5] @ made[:50].T)
    assert max(seen) == (4000 if as_csr else 41)
