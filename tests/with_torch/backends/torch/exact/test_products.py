"""Products in float64 by tensor cores: the CUDA texts as C++, against NumPy and in ridge fits."""

import shutil
from functools import cache

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="make test-torch")
from helpers.cuda_lanes import Lanes  # noqa: E402 - after the skip

import mercer  # noqa: E402 - after the skip
from mercer.approximation import Nystrom  # noqa: E402 - after the skip
from mercer.backends.lowering import lower  # noqa: E402 - after the skip
from mercer.backends.torch import backend  # noqa: E402 - after the skip
from mercer.backends.torch.device import Device  # noqa: E402 - after the skip
from mercer.backends.torch.evaluate import CenteredRows  # noqa: E402 - after the skip
from mercer.backends.torch.exact import products  # noqa: E402
from mercer.backends.torch.exact import products as planes  # noqa: E402 - after the skip
from mercer.backends.torch.exact.cuda import (  # noqa: E402 - after the skip
    CARD,
    PRODUCT,
    TRIP,
    BlockTile,
    Depth,
    EntryStore,
    formula_of,
    product_shared_bytes,
    product_text,
    trip_text,
)
from mercer.backends.torch.exact.products import Planes  # noqa: E402 - after the skip
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402 - after the skip
from mercer.expression import AbsDist, Dot, Exp, SqDist, Sqrt  # noqa: E402 - after the skip
from mercer.kernels import Gaussian, Matern, Polynomial  # noqa: E402 - after the skip
from mercer.solvers import Status  # noqa: E402 - after the skip

rng = np.random.default_rng(0)
THREADS, TILE = 32, BlockTile(32, 32, 1, 1, 1)  # threads of the host are dear
_POINTERS = "const double*, const double*, const double*, const double*, const double*, double*"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")

    def product(body, constants, depth, targets, store, apart, card):
        return of_tile(products.TILE, body, constants, depth, targets, store, apart)

    @cache
    def of_tile(tile, body, constants, depth, targets, store, apart):
        text = product_text(body, constants, tile, depth, targets, store, apart)
        kinds = f"int, int, int, {_POINTERS}, void*, short*, int" + ", double" * constants
        return Lanes(tmp_path_factory.mktemp("product"), PRODUCT, text.replace(CARD, ""), kinds)

    @cache
    def trip(wide, there, card):
        kinds = "int, int, int, const float*, const short*, const double*, const double*"
        kinds += ", const double*, double*, double*"
        return Lanes(tmp_path_factory.mktemp("trip"), TRIP, trip_text(wide, there, THREADS), kinds)

    return product, trip


@pytest.fixture
def on_cores(kernels, monkeypatch):
    """Let the CPU pass for a card with float64 cores."""
    monkeypatch.setattr(products, "compiled_product", kernels[0])
    monkeypatch.setattr(planes, "compiled_trip", kernels[1])
    monkeypatch.setattr(planes, "THREADS", THREADS)
    monkeypatch.setattr(products, "TILE", TILE)
    monkeypatch.setattr(products, "_LEAST", 1)
    monkeypatch.setattr(products, "is_compiled", lambda: True)
    monkeypatch.setattr(Device, "has_float64_cores", True)


def values(kernel, X, Y):
    with mercer.config(backend="reference"):
        return kernel(X, Y)


def bound(kernel, X, Y, fused=True):
    expression = kernel.expression() if callable(kernel.expression) else kernel.expression
    return TorchPairs(expression, X, Y, np.float64, Device("cpu"), fused)


@pytest.mark.parametrize(
    ("kernel", "n", "m", "d", "columns"),
    [
        (Gaussian(1.5), 40, 35, 5, 1),
        (Gaussian(1.5), 31, 33, 5, 5),
        (Gaussian(2.0) + 0.5 * Gaussian(4.0), 32, 64, 8, 2),
        (Matern(1.5), 3, 40, 4, 2),
        (Polynomial(3), 34, 1, 6, 1),
        (Gaussian(8.0), 5, 34, 130, 1),
    ],
)
def test_products_are_those_of_the_whole_matrix(on_cores, kernel, n, m, d, columns):
    X, Y = rng.standard_normal((n, d)) + 3.0, rng.standard_normal((m, d)) + 3.0
    Y[: min(n, m, 4)] = X[: min(n, m, 4)]  # equal rows
    pairs, V = bound(kernel, X, Y), rng.standard_normal((m, columns))
    assert pairs.cores is not None
    K = values(kernel, X, Y)
    scale = np.abs(K) @ np.abs(V)
    assert (np.abs(pairs.matmul(V) - K @ V) <= 1e-13 * scale).all()

    def halved(part, found):
        return 0.5 * found

    U = pairs.round_trip(V, halved)
    assert (np.abs(U - 0.5 * K.T @ (K @ V)) <= 1e-13 * (np.abs(K).T @ scale)).all()


@pytest.mark.parametrize("tile", [BlockTile(), BlockTile(64, 64, 2, 2, 2)])
def test_all_warps_of_a_tile_have_their_part(on_cores, monkeypatch, tile):
    monkeypatch.setattr(products, "TILE", tile)
    X, Y, V = (rng.standard_normal(shape) for shape in ((70, 5), (130, 5), (130, 2)))
    Y[100] = X[66]
    pairs = bound(Gaussian(1.5), X, Y)
    K = values(Gaussian(1.5), X, Y)
    np.testing.assert_allclose(pairs.matmul(V), K @ V, atol=1e-13)
    np.testing.assert_allclose(pairs.block(slice(0, 70), slice(0, 130)).numpy(), K, rtol=1e-13)


@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e100])
def test_near_rows_and_long_ones_keep_their_digits(on_cores, spread):
    X = np.array([1.0, 2.0, 3.0]) + 1e-3 * rng.standard_normal((40, 3))
    X[20:] = X[:20] * (1 + 1e-9)
    X *= spread
    kernel = Gaussian(spread * 1e-3)
    pairs, V = bound(kernel, X, X[:25]), np.eye(25)[:, :3]
    D = np.square((X[:, None] - X[None, :3]) / (spread * 1e-3)).sum(axis=2)
    np.testing.assert_allclose(pairs.matmul(V), np.exp(-0.5 * D), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("scale", [0.1, 0.4])
def test_sums_of_small_entries_between_near_rows_keep_their_digits(on_cores, scale):
    """Rows of two groups, nearer to one another than to the centre and far for the kernel."""
    side = np.where(np.arange(64) % 2, 10.0, -10.0)[:, None]
    X, Y = rng.standard_normal((64, 4)) + side, rng.standard_normal((64, 4)) + side
    pairs = bound(Gaussian(scale), X, Y)
    assert pairs.cores is not None
    D = np.square((X[:, None] - Y) / scale).sum(axis=2)
    np.testing.assert_allclose(pairs.matmul(np.ones(64)), np.exp(-0.5 * D).sum(axis=1), rtol=1e-11)


def test_what_is_no_number_stays_none(on_cores):
    X = rng.standard_normal((40, 3))
    X[5, 1] = np.nan
    found = bound(Gaussian(1.0), X, X[10:30]).matmul(np.ones(20))
    assert np.isnan(found[5]) and np.isfinite(np.delete(found, 5)).all()


def test_entries_are_stored_in_full_and_to_forty_bits(on_cores):
    X, Y = rng.standard_normal((40, 5)), rng.standard_normal((35, 5))
    Y[0], X[1] = X[0], 100.0
    cores = bound(Gaussian(1.0), X, Y).cores
    K = values(Gaussian(1.0), X, Y)
    found = cores.entries(cores.rows(slice(None)), cores.columns()).numpy()
    np.testing.assert_allclose(found, K, rtol=1e-12, atol=1e-300)
    held = Planes.of(cores, Device("cpu"))
    assert held.high.shape == held.low.shape == (40, 48)
    assert not held.high[:, 35:].any() and not held.low[:, 35:].any()
    np.testing.assert_allclose(held.entries(slice(None)).numpy(), K, rtol=2.0**-39, atol=1e-37)
    assert (held.high[:, :35].numpy() == K.astype(np.float32))[K > 1e-30].mean() > 0.99


def test_a_trip_is_two_products(on_cores):
    X, Y = rng.standard_normal((40, 5)), rng.standard_normal((35, 5))
    held = Planes.of(bound(Gaussian(2.0), X, Y).cores, Device("cpu"))
    K = values(Gaussian(2.0), X, Y)
    v, s, y = rng.standard_normal(35), rng.random(40), rng.standard_normal(40)
    back, left = held.round_trip(*(torch.from_numpy(one) for one in (v, s, y)))
    wanted = s * (y - K @ v)
    np.testing.assert_allclose(left.numpy(), wanted, atol=1e-10)
    np.testing.assert_allclose(back.numpy(), K.T @ wanted, atol=1e-10)
    pulled, mass = held.pull(torch.from_numpy(s), torch.from_numpy(y))
    np.testing.assert_allclose(pulled.numpy(), K.T @ (s * y), atol=1e-10)
    np.testing.assert_allclose(mass.numpy(), K.T @ s, atol=1e-10)


@pytest.mark.parametrize("bias", [True, False])
def test_ridge_on_landmarks_by_planes(on_cores, monkeypatch, bias):
    pytest.importorskip("triton")
    X = np.random.default_rng(1).standard_normal((150, 3)) + 5.0
    Y = np.column_stack([np.sin(X[:, 0]) + 3.0, X[:, 1]])
    weights = np.random.default_rng(2).integers(0, 3, 150).astype(float)

    def fitted():
        machine = mercer.KernelRidge(
            1e-2, kernel=Gaussian(1.0), approximation=Nystrom(20), bias=bias
        )
        return machine.fit(X, Y, weights), machine.predict(X[:9])

    _, wanted = fitted()
    monkeypatch.setattr(Device, "is_card", True)
    monkeypatch.setattr(Device, "free", lambda self: 10**9)
    monkeypatch.setattr(backend, "is_available", lambda: True)
    monkeypatch.setattr("mercer.gram.build.WRITTEN_OUT", 1)
    made = []

    def counted(name, verb):
        def work(self, *arguments):
            made.append(name)
            return verb(self, *arguments)

        return work

    for name in ("round_trip", "pull"):
        monkeypatch.setattr(Planes, name, counted(name, getattr(Planes, name)))
    mercer.backends._try.cache_clear()
    with mercer.config(backend="torch", device="cpu"):
        machine, predicted = fitted()
    mercer.backends._try.cache_clear()
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
    assert made.count("pull") == 2 and "round_trip" in made  # two targets; residuals
    np.testing.assert_allclose(predicted, wanted, atol=1e-6)


def test_only_formulas_of_one_statistic_are_written():
    assert formula_of(lower(Exp(-0.5 * SqDist()))).constants == (-0.5, 0.0)
    assert "sqrt" in formula_of(lower(Exp(-1.0 * Sqrt(SqDist())))).body
    assert formula_of(lower(Exp(-0.5 * SqDist()) * Dot())) is None
    Z = rng.standard_normal((4, 2))
    assert TorchPairs(Exp(-1.0 * AbsDist()), Z, None, np.float64, Device("cpu"), True).cores is None


@pytest.mark.parametrize("capability", ["80", "90"])
def test_nvrtc_takes_the_texts(capability):
    utils = pytest.importorskip("torch.cuda._utils")
    try:
        utils._get_gpu_rtc_library()
    except (AttributeError, OSError):
        pytest.skip("this torch has no NVRTC")
    formula = formula_of(lower(Exp(-0.5 * SqDist())))
    for features, targets, store in ((90, 1, 0), (90, 2, 0), (90, 0, 1), (784, 0, 2)):
        depth = Depth.of(features)
        text = product_text(formula.body, 2, products.TILE, depth, targets, EntryStore(store), True)
        binary, found = utils._nvrtc_compile(text, PRODUCT, compute_capability=capability)
        assert found == PRODUCT and binary
        assert 2 * (product_shared_bytes(products.TILE, depth, targets) + 1024) <= 228 * 1024
    for there in (True, False):
        binary, found = utils._nvrtc_compile(
            trip_text(10000, there), TRIP, compute_capability=capability
        )
        assert found == TRIP and binary


def test_blocks_of_any_rows_and_columns(on_cores):
    X = rng.standard_normal((40, 3))
    pairs = TorchPairs(Exp(-0.5 * SqDist()), X, None, np.float64, Device("cpu"), True)
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    index = np.array([3, 39, 0])
    np.testing.assert_allclose(pairs.block(index, slice(5, 40)).numpy(), K[index, 5:], rtol=1e-13)
    assert pairs.block(index[:0], slice(0, 40)).shape == (0, 40)
    np.testing.assert_allclose(pairs.dense(), K, rtol=1e-13)


def test_exponentials_are_those_of_the_library(tmp_path):
    """Of one warp, each entry of K a number of its own: x.y with y = 1."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    text = product_text(
        "return exponential(r0);", 0, TILE, Depth.of(4), 0, EntryStore.FLOAT64, False
    )
    kinds = f"int, int, int, {_POINTERS}, void*, short*, int"
    kernel = Lanes(tmp_path / "exp", PRODUCT, text.replace(CARD, ""), kinds)
    given = np.concatenate([np.linspace(-707, 709, 60), [0.0, -1e-300, -800, 800, -np.inf, np.nan]])
    X = torch.zeros((len(given), 4), dtype=torch.float64)
    X[:, 0] = torch.from_numpy(given)
    Y = torch.eye(1, 4, dtype=torch.float64)
    K = torch.empty((len(given), 2), dtype=torch.float64)
    none, low = torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.int16)
    arguments = [len(given), 1, 32, X, Y, none, none, none, none, K, low, 2]
    kernel(grid=(-(-len(given) // 32), 1, 1), block=(32, 1, 1), args=arguments)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(K[:, 0].numpy(), np.exp(given), rtol=1e-15)


def test_a_card_too_full_to_look_at_all_rows_goes_by_blocks(on_cores, monkeypatch):
    def full(self):
        raise torch.cuda.OutOfMemoryError("full")

    monkeypatch.setattr(CenteredRows, "largest", property(full))
    X, V = rng.standard_normal((40, 3)), rng.standard_normal((40, 2))
    pairs = bound(Gaussian(1.0), X, X.copy())
    assert pairs.cores is None
    np.testing.assert_allclose(pairs.matmul(V), values(Gaussian(1.0), X, X) @ V, atol=1e-13)
