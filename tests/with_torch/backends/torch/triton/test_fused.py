"""Generated kernels, in Triton's interpreter: every node of the language, every reduction."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="make test-torch")
pytest.importorskip("triton", reason="without Triton, plain torch runs")
from triton.runtime.errors import OutOfResources  # noqa: E402 - after the skips

import mercer  # noqa: E402 - after the skips
from mercer.backends.lowering import lower  # noqa: E402
from mercer.backends.reference.backend import Reference  # noqa: E402
from mercer.backends.torch.backend import Torch  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402
from mercer.backends.torch.triton import launch  # noqa: E402
from mercer.backends.torch.triton.leaves import split  # noqa: E402
from mercer.backends.torch.triton.source import (  # noqa: E402
    LeafLayout,
    TileReduction,
    is_expressible,
    padded_depth,
    pieces,
    write_kernel,
)
from mercer.expression import (  # noqa: E402
    AbsDist,
    Dot,
    Exp,
    Opaque,
    RowProduct,
    SelfValue,
    SqDist,
    SymmetricSum,
)
from mercer.testing.backend import Judge, backend_checks, expressions  # noqa: E402

rng = np.random.default_rng(0)
CPU = Device("cpu")
X, Y = rng.random((61, 12)), rng.random((215, 12))
X[3] = 0.0
GAUSSIAN = Exp(-0.5 * SqDist())


def bound(expression, rows=X, columns=Y):
    return TorchPairs(expression, rows, columns, np.float32, CPU, fused=True)


@pytest.mark.parametrize("expression", expressions(12), ids=lambda e: type(e).__name__)
def test_every_node(expression):
    pairs = bound(expression)
    program = lower(expression)
    fused = pairs._fused is not None
    assert fused == bool(is_expressible(program) and program.leaves)
    if not fused:
        return
    K = Reference().pairs(expression, X, Y, np.float64).dense()
    size, V = max(1.0, np.abs(K).max()), rng.standard_normal((215, 3))
    np.testing.assert_allclose(pairs.dense(), K, rtol=0, atol=3e-6 * size)
    for right in (V[:, 0], V):
        np.testing.assert_allclose(pairs.matmul(right), K @ right, rtol=0, atol=1e-4 * size)


@pytest.mark.parametrize("columns", [1, 2, 16, 70])
def test_products_with_many_columns(columns):
    V = rng.standard_normal((215, columns)) * np.geomspace(1e-30, 1e30, columns)
    K = Reference().pairs(GAUSSIAN, X, Y, np.float64).dense()
    error = np.abs(bound(GAUSSIAN).matmul(V) - K @ V)
    assert (error <= 1e-6 * np.abs(V).sum(axis=0)).all()


@pytest.mark.parametrize("part", [slice(0, 61), slice(7, 9), slice(60, 61), slice(5, 5)])
def test_rows(part):
    K = Reference().pairs(GAUSSIAN, X, Y, np.float64).dense()
    np.testing.assert_allclose(bound(GAUSSIAN).rows(part), K[part], atol=1e-6)


def test_square_matrices_are_exactly_symmetric():
    K = Torch("cpu", Reference(), fused=True).pairs(GAUSSIAN, Y, None, np.float32).dense()
    np.testing.assert_array_equal(K, K.T)
    assert (np.diagonal(K) == 1.0).all()


@pytest.mark.parametrize("expression", [SqDist(), AbsDist(), -1.0 * GAUSSIAN], ids=str)
def test_nearest(expression):
    found = bound(expression, Y, X[:37]).nearest()
    K = Reference().pairs(expression, Y, X[:37], np.float64).dense()
    np.testing.assert_array_equal(found.numpy(), K.argmin(axis=1))


@pytest.mark.parametrize("columns", [1, 3, 37, 200])
def test_nearest_of_columns_that_are_close_to_one_another(columns):
    """One product of 16-bit numbers cannot tell them apart: those rows are searched again."""
    means = rng.standard_normal((columns, 20)) + 3.0
    means[columns // 2 :] = means[: columns - columns // 2] * (1 + 1e-4)
    rows = means[rng.integers(0, columns, 300)] + 0.1 * rng.standard_normal((300, 20))
    rows[:5], means[-1] = means[0], means[0]  # of equal columns the first
    found = bound(SqDist(), rows, means).nearest().numpy()
    D = Reference().pairs(SqDist(), rows, means, np.float64).dense()
    assert (found[:5] == D[:5].argmin(axis=1)).all()
    picked, least = D[np.arange(300), found], D.min(axis=1)
    assert (picked - least <= 1e-5 * np.square(rows).sum(axis=1)).all()


def test_one_product_of_halves_is_taken_on_request_only():
    wide = rng.standard_normal((80, 40))
    e = Exp(-0.0125 * SqDist()) + (0.01 * Dot() + 1.0) ** 2
    K, V = Reference().pairs(e, wide, None, np.float64).dense(), rng.standard_normal((80, 1))
    torch_backend = Torch("cpu", Reference(), fused=True)
    errors = {}
    for products in ("float32", "float16"):
        with mercer.config(products=products):
            found = torch_backend.pairs(e, wide, wide, np.float32)
        errors[products] = np.abs(found.matmul(V) - K @ V).max() / np.abs(K @ V).max()
    assert errors["float32"] < 2e-6 < errors["float16"] < 1e-3
    with pytest.raises(ValueError, match="float16"), mercer.config(products="float8"):
        pass


def test_columns_beyond_one_span_are_added_in_float64(monkeypatch):
    monkeypatch.setattr(launch, "_SPAN", 64)
    K = Reference().pairs(GAUSSIAN, X, Y, np.float64).dense()
    np.testing.assert_allclose(bound(GAUSSIAN).matmul(np.ones(215)), K.sum(axis=1), rtol=1e-6)
    found = bound(SqDist()).nearest()
    wanted = Reference().pairs(SqDist(), X, Y, np.float64).dense().argmin(axis=1)
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("features", [1, 90, 200])
def test_depths(features):
    rows = rng.standard_normal((70, features))
    e = Exp((-0.5 / features) * SqDist()) + 0.01 * Dot()
    K = Reference().pairs(e, rows, None, np.float64).dense()
    np.testing.assert_allclose(bound(e, rows, rows).dense(), K, atol=2e-6)


# --- where digits would be lost ------------------------------------------------------------------


def ways(rows):
    pairs = bound(GAUSSIAN, rows, rows)
    return None if pairs._fused is None else [way for way, _ in pairs._fused._ways()]


def test_the_way_depends_on_what_products_lose():
    assert ways(X) == [LeafLayout.SPLIT]
    assert ways(X + 1e8) == [LeafLayout.SPLIT]  # about their centre
    clusters = X + 30.0 * rng.integers(0, 2, 61)[:, None]
    assert ways(clusters) == [LeafLayout.COLUMNS]
    assert ways(X + 1e5 * rng.integers(0, 2, 61)[:, None]) is None
    for rows in (clusters, X + 1e5 * rng.integers(0, 2, 61)[:, None]):
        K = Reference().pairs(GAUSSIAN, rows, None, np.float64).dense()
        np.testing.assert_allclose(bound(GAUSSIAN, rows, rows).dense(), K, atol=5e-6)


def test_hard_distances_are_those_of_the_reference():
    judge = Judge(Torch("cpu", Reference(), fused=True))
    dict(backend_checks(judge))["hard distances"]()
    judge.refuse()


@pytest.mark.parametrize("features", [3, 90, 200])
def test_equal_rows_have_no_distance(features):
    """Products make something of it, and its size depends on who adds them up."""
    rows = rng.standard_normal((70, features)) * rng.geometric(0.1, 70)[:, None]
    pairs = bound(SqDist(), rows, rows.copy())
    K = pairs.dense()
    assert (np.diagonal(K) == 0.0).all()
    assert (K + np.eye(70) > 0.0).all()
    if pairs._fused._leaves[0].way.is_product:
        assert 2.0**-21 <= pairs._fused._leaves[0].least < 2e-6


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("expression", [GAUSSIAN, Dot(), Exp(-1.0 * AbsDist())], ids=str)
def test_what_is_not_finite(expression, value):
    rows = X.copy()
    rows[5, 5] = value
    wanted = Reference().pairs(expression, rows, Y, np.float64).dense()
    np.testing.assert_allclose(bound(expression, rows).dense(), wanted, atol=3e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e15, 1e150])
def test_hostile_scales(scale):
    e = Exp((-0.5 / scale / scale) * SqDist())
    K = Reference().pairs(GAUSSIAN, X, Y, np.float64).dense()
    np.testing.assert_allclose(bound(e, scale * X, scale * Y).dense(), K, atol=1e-6)


def test_constant_columns_and_single_rows():
    K = Reference().pairs(GAUSSIAN, X[:1], X[:1], np.float64).dense()
    np.testing.assert_array_equal(bound(GAUSSIAN, X[:1], X[:1]).dense(), K)
    same = np.full((9, 4), 7.0)
    np.testing.assert_array_equal(bound(GAUSSIAN, same, same).dense(), np.ones((9, 9)))
    assert bound(GAUSSIAN, X[:0], Y).matmul(np.ones(215)).shape == (0,)
    assert bound(GAUSSIAN, X[:, :0], Y[:, :0]).dense().min() == 1.0


def test_splitting_keeps_22_bits():
    x = torch.from_numpy(rng.uniform(-256, 256, 1000))
    high, low = split(x)
    assert high.dtype is low.dtype is torch.float16
    assert (x - high.double() - low.double()).abs().max() <= 2.0**-22 * 256


def test_halves_lie_side_by_side_once():
    (leaf,) = bound(GAUSSIAN)._fused._leaves
    assert leaf.way is LeafLayout.SPLIT
    assert leaf.x.rows.shape[1] == 2 * leaf.depth
    scale = (2.0 / leaf.factor) ** 0.5
    rows = leaf.x.rows[: len(X)].double()
    both = (rows[:, : leaf.depth] + rows[:, leaf.depth :])[:, : X.shape[1]] / scale
    np.testing.assert_allclose(both.numpy(), X - Y.mean(axis=0), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "expression", [Exp(-1.0 * Exp(-1.0 * SqDist())), Exp(0.02 * SqDist() - 1.0)]
)
def test_exponents_of_distances(expression):
    """The factor of an exponent goes to the distance, and to no other operation."""
    K = Reference().pairs(expression, X, Y, np.float64).dense()
    V = rng.standard_normal((215, 2))
    for columns in (1, 2):
        found = bound(expression).matmul(V[:, :columns])
        np.testing.assert_allclose(
            found, K @ V[:, :columns], atol=2e-6 * np.abs(K).sum(axis=1).max()
        )


@pytest.mark.parametrize(("factor", "wanted"), [(0.01, False), (1.0, True)])
def test_small_distances_are_zero_where_an_exponential_tells(factor, wanted):
    """Rows that are long beside the scale: what products make of zero is far from it there."""
    pairs = bound(Exp(-factor * SqDist()), X, X[:50])
    assert pairs._fused._leaves[0].way is LeafLayout.SPLIT
    assert pairs._fused._wants_zeros == wanted
    K = Reference().pairs(Exp(-factor * SqDist()), X, X[:50], np.float64).dense()
    np.testing.assert_allclose(pairs.matmul(np.ones(50)), K.sum(axis=1), atol=1e-4)


@pytest.mark.parametrize("features", [1, 3, 40, 300])
@pytest.mark.parametrize("apart", [0.0, 1e-17, 1e-9, 1e-7])
def test_a_row_at_the_centre_says_nothing_of_the_others(features, apart):
    """It keeps no bits of its own: distances of other rows are none the smaller for it."""
    rng = np.random.default_rng(5)
    rows, columns = rng.standard_normal((60, features)), rng.standard_normal((50, features))
    rows[7] = columns.mean(axis=0) + apart * rng.standard_normal(features)
    rows[8:20] *= 1e-8  # nor do those that are near it beside all columns
    rows[8:20] += columns.mean(axis=0)
    expression = Exp(-0.5 / features * SqDist())
    pairs = bound(expression, rows, columns)
    wanted = Reference().pairs(expression, rows, columns, np.float64).dense()
    assert pairs._fused is not None
    assert np.abs(pairs.dense() - wanted).max() < 3e-6
    assert np.abs(pairs.matmul(np.ones(50)) - wanted.sum(axis=1)).max() < 3e-6 * 50


@pytest.mark.parametrize("spread", [1.0, 1e-3, 0.0])
def test_nearest_of_columns_that_all_rows_doubt(spread):
    """One other column is compared by differences; where there are more, all are searched."""
    columns = 3.0 + spread * rng.standard_normal((150, 12))
    rows = np.concatenate([columns[:70], 3.0 + rng.standard_normal((90, 12))])
    found = bound(SqDist(), rows, columns).nearest().numpy()
    D = Reference().pairs(SqDist(), rows, columns, np.float64).dense()
    assert (D[np.arange(160), found] - D.min(axis=1) <= 1e-5 * D.max()).all()
    if not spread:
        assert (found == 0).all()


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
def test_the_nearest_of_rows_whose_distances_are_no_float32_numbers(scale):
    rng = np.random.default_rng(6)
    rows, columns = rng.standard_normal((70, 3)), rng.standard_normal((65, 3))
    wanted = np.square(rows[:, None] - columns).sum(axis=2).argmin(axis=1)
    found = bound(SqDist(), scale * rows, scale * columns).nearest()
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_one_text_for_all_scales():
    texts = [
        write_kernel(lower(Exp(-g * SqDist())), [LeafLayout.PRODUCTS], [48], TileReduction.VECTOR)
        for g in (0.5, 3.0)
    ]
    assert texts[0].text == texts[1].text and texts[0].constants != texts[1].constants
    launch.compiled.cache_clear()
    for g in (0.05, 0.07, 0.09):
        bound(Exp(-g * SqDist())).matmul(np.ones(215))
    assert launch.compiled.cache_info().misses == 3  # of the sample, of distances, and of products


def test_depths_and_pieces():
    assert [padded_depth(LeafLayout.COLUMNS, d) for d in (0, 1, 9)] == [8, 8, 16]
    assert [padded_depth(LeafLayout.PRODUCTS, d) for d in (0, 36, 512, 600)] == [16, 48, 512, 640]
    assert pieces(48) == [(0, 32), (32, 16)]
    assert pieces(512) == [(0, 256), (256, 256)]


def test_what_kernels_cannot_express():
    for e in (Opaque(lambda a, b: a @ b.T), SymmetricSum(degree=5), Dot() ** 65):
        assert not is_expressible(lower(e))
    assert bound(SymmetricSum(degree=5))._fused is None


def test_without_triton_plain_torch_runs(monkeypatch):
    monkeypatch.setattr("mercer.backends.torch.triton.fused.is_available", lambda: False)
    pairs = bound(GAUSSIAN)
    assert pairs._fused is None
    K = Reference().pairs(GAUSSIAN, X, Y, np.float64).dense()
    np.testing.assert_allclose(pairs.dense(), K, atol=1e-6)


def test_a_tile_without_room_gives_way_to_a_smaller_one():
    """Only the compiler knows what shared memory a kernel takes."""
    tried = []

    def by(tile):
        tried.append(tile)
        if len(tried) < 3:
            raise OutOfResources(300_000, 232_448, "shared memory")
        return tile

    ways = [(LeafLayout.PRODUCTS, 8)]
    found = launch._with_room(ways, 1, torch.device("cpu"), by)
    assert found is tried[2]
    assert found.height * found.width < tried[0].height * tried[0].width


def test_a_formula_without_room_is_multiplied_by_fewer_columns(monkeypatch):
    wide, product = [], launch._product

    def full(program, arguments, ways, shape, right, zeros):
        wide.append(right.shape[1])
        if right.shape[1] > 16:
            raise OutOfResources(300_000, 232_448, "shared memory")
        return product(program, arguments, ways, shape, right, zeros)

    V = rng.standard_normal((215, 20))
    pairs = bound(GAUSSIAN)
    monkeypatch.setattr(launch, "_product", full)
    wanted = Reference().pairs(GAUSSIAN, X, Y, np.float64).dense() @ V
    np.testing.assert_allclose(pairs.matmul(V), wanted, atol=1e-4)
    assert wide == [20, 16, 4]


def test_a_formula_without_room_for_any_tile_is_not_fused(monkeypatch):
    def full(*arguments):
        raise OutOfResources(300_000, 232_448, "shared memory")

    monkeypatch.setattr(launch, "_launch", full)
    assert bound(GAUSSIAN)._fused is None


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(
    "expression",
    [
        Exp(-0.1 * SqDist()),
        Exp(-0.1 * AbsDist()),
        Exp(-0.1 * SqDist()) + (0.1 * Dot() + 1.0) ** 2 * Exp(-0.1 * AbsDist()),
        RowProduct(SelfValue(Dot() + 1.0)) * Exp(-0.1 * SqDist()),
    ],
)
def test_parts_are_those_of_the_same_points(expression, fused):
    """Rows and columns, in any order and more than once, against the whole matrix in float64."""
    rng = np.random.default_rng(3)
    X, V = rng.standard_normal((700, 3)), rng.standard_normal((700, 2))
    wanted = TorchPairs(expression, X, None, np.float64, Device("cpu")).dense()
    pairs = TorchPairs(expression, X, None, np.float32, Device("cpu"), fused=fused)
    rows, columns = rng.integers(0, 700, 40), rng.integers(0, 700, 520)
    size = np.abs(wanted).max() * np.abs(V).sum()
    part = pairs.part(rows)
    assert part.shape == (40, 700)
    np.testing.assert_allclose(part.matmul(V), wanted[rows] @ V, atol=3e-6 * size)
    part = pairs.part(rows, columns)
    exact = wanted[np.ix_(rows, columns)]
    np.testing.assert_allclose(part.matmul(V[:520]), exact @ V[:520], atol=3e-6 * size)
    np.testing.assert_allclose(pairs.matmul(V), wanted @ V, atol=3e-6 * size)
