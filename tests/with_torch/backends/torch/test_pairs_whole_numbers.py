"""Rows that are whole numbers of a unit: distances to the last digit, by 8-bit products."""

import ast

import numpy as np
import pytest
from helpers.card_compilation import resources, told_by

from mercer.kernels import Gaussian, Linear

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import evaluate  # noqa: E402 - after the skip
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402

rng = np.random.default_rng(0)
PIXELS = rng.integers(0, 256, (41, 200))
PIXELS[0, 0], PIXELS[0, 1] = 0, 255
PIXELS[7] = PIXELS[3]  # equal rows
SQUARES = np.square(PIXELS[:, None] - PIXELS).sum(axis=2)  # of int64

TABLES = {
    "as they are": (PIXELS.astype(float), 1.0),
    "over 255": (PIXELS / 255.0, 1 / 255),
    "over 255, float32": ((PIXELS / 255.0).astype(np.float32), 1 / 255),
    "divided in float32": (PIXELS.astype(np.float32) / np.float32(255), 1 / 255),
    "over 256": (PIXELS / 256.0, 1 / 256),
    "from -1 to 1": (PIXELS / 127.5 - 1.0, 1 / 127.5),
    "standardised as one": ((PIXELS / 255.0 - 0.1307) / 0.3081, 1 / (255 * 0.3081)),
    "large": (PIXELS * 2.0**40, 2.0**40),
    "few levels": ((PIXELS // 64).astype(float), 1.0),
}


def levels_of(name):
    return PIXELS // 64 if name == "few levels" else PIXELS


@pytest.mark.parametrize("name", TABLES)
def test_levels_are_found_and_distances_exact(name):
    X, unit = TABLES[name]
    before = X.copy()
    found = evaluate.whole_numbers(torch.from_numpy(X))
    np.testing.assert_array_equal(X, before)  # rows are only looked at
    k = levels_of(name)
    squares = np.square(k[:, None] - k).sum(axis=2)
    distances = found.squared_distances(slice(0, 41), slice(0, 41)).numpy()
    np.testing.assert_array_equal(np.rint(distances / found.unit**2) % 1, 0)
    np.testing.assert_allclose(distances, squares * unit**2, rtol=1e-12)
    some = found.squared_distances(slice(5, 8), slice(3, 40)).numpy()  # any corner of it
    np.testing.assert_array_equal(some, distances[5:8, 3:40])


@pytest.mark.parametrize("name", [name for name, (X, _) in TABLES.items() if X.dtype == float])
def test_distances_are_those_of_the_rows_in_more_digits(name):
    X, _ = TABLES[name]
    found = evaluate.whole_numbers(torch.from_numpy(X))
    more = X.astype(np.longdouble)
    wanted = np.square(more[:, None] - more).sum(axis=2).astype(float)
    distances = found.squared_distances(slice(0, 41), slice(0, 41)).numpy()
    np.testing.assert_allclose(distances, wanted, rtol=1e-12)
    assert distances[3, 7] == 0.0


def moved():
    X = PIXELS / 255.0
    X[40, 199] += 1e-9
    return X


NONE = {
    "one entry is between two levels": moved(),
    "random": rng.standard_normal((41, 200)),
    "columns of their own units": PIXELS / rng.uniform(1.0, 2.0, 200),
    "more levels than 256": rng.integers(0, 1000, (41, 200)).astype(float),
    "not finite": np.where(PIXELS == 0, np.nan, PIXELS),
    "infinite": np.where(PIXELS == 0, np.inf, PIXELS),
    "no rows": np.empty((0, 3)),
    "far from zero": 1e6 + 1e-7 * rng.random((41, 200)),
    "far from zero, float32": (2e4 + rng.random((41, 200))).astype(np.float32),
    "pixels far from zero, float32": (300 + PIXELS / 255.0).astype(np.float32),
    "too long to square": PIXELS * 1e155,
    "too short to square": PIXELS * 1e-155,
    "integers": PIXELS,
}


@pytest.mark.parametrize("name", NONE)
def test_other_rows_are_not_taken_for_such(name):
    assert evaluate.whole_numbers(torch.from_numpy(NONE[name])) is None


def test_rows_that_are_all_equal_have_no_distance():
    found = evaluate.whole_numbers(torch.full((5, 3), 0.3, dtype=torch.float64))
    assert not found.squared_distances(slice(0, 5), slice(0, 5)).any()


def test_the_largest_sum_of_squares_fits():
    X = torch.zeros((2, 1 << 15), dtype=torch.float64)
    X[1] = 255.0
    found = evaluate.whole_numbers(X)
    assert float(found.squared_distances(slice(0, 1), slice(1, 2))) == 255**2 * 2**15
    assert evaluate.whole_numbers(torch.zeros((2, (1 << 15) + 1))) is None


# --- matrices ------------------------------------------------------------------------------------


@pytest.fixture
def cores(monkeypatch):
    """Let the CPU stand for a card that multiplies 8-bit numbers; count what is asked of it."""
    asked = []
    products = evaluate._products

    def counted(x, y):
        assert x.dtype == y.dtype == torch.int8
        # what the library of a card takes
        assert len(x) > 16 and len(y) % 8 == 0 and x.shape[1] % 16 == 0
        asked.append((len(x), len(y)))
        return products(x, y)

    monkeypatch.setattr(Device, "has_int8_cores", True)
    assert evaluate.multiplies("cpu")
    monkeypatch.setattr(evaluate, "_products", counted)
    return asked


def matrix(kernel, X, dtype=np.float32):
    return TorchPairs(kernel.expression(), X, None, dtype, Device("cpu")).dense()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kernel", [Gaussian(5.0), Gaussian(3.0) ** 2])
def test_matrices_are_those_of_float64(name, kernel, cores, monkeypatch):
    X, unit = TABLES[name]
    kernel = Gaussian(5.0 * 255 * unit) if name == "large" else kernel
    monkeypatch.setattr(Device, "block_entries", lambda self: 41 * 9)  # several blocks
    K = matrix(kernel, X)
    assert len(cores) == 5 and K.dtype == np.float32
    wanted = kernel(X.astype(float))
    np.testing.assert_allclose(K, wanted, atol=1e-6)
    if X.dtype == float:
        np.testing.assert_allclose(K, wanted, atol=7e-8)  # the rounding of what is stored
    np.testing.assert_array_equal(K, K.T)
    assert (np.diagonal(K) == 1.0).all() and K[3, 7] == 1.0


@pytest.fixture
def one_kernel(monkeypatch):
    """Tiles so small that a few dozen rows have several squares of them."""
    eight_bits = pytest.importorskip("mercer.backends.torch.triton.special")
    monkeypatch.setattr(eight_bits, "_EIGHT_BITS_SIDE", 16)
    monkeypatch.setattr(eight_bits, "_TOGETHER", 2)
    return eight_bits


@pytest.mark.parametrize("n", [1, 16, 17, 32, 33, 41, 70, 96, 129])
def test_one_kernel_writes_both_halves(n, one_kernel):
    """Odd and even numbers of squares of tiles, the last of them filled in part."""
    pixels = rng.integers(0, 256, (n, 300))
    pixels[0, 0], pixels[0, 1] = 0, 255
    whole = evaluate.whole_numbers(torch.from_numpy(pixels / 255.0))
    K = torch.full((n, n + 3), np.nan)[:, :n]  # rows that are not side by side
    factor, summand = -0.037 * whole.unit**2, 0.25
    assert one_kernel.fill_exponential(K, whole.k, whole.squares, factor, summand)
    distances = np.square(pixels[:, None] - pixels).sum(axis=2)  # of int64
    wanted = np.exp(-0.037 * (distances / 255.0**2) + 0.25)
    np.testing.assert_array_max_ulp(K.numpy(), wanted.astype(np.float32), maxulp=1)
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("name", TABLES)
def test_matrices_by_one_kernel_are_those_of_blocks(name, cores, one_kernel):
    X, unit = TABLES[name]
    kernel = Gaussian(5.0 * 255 * unit) if name == "large" else Gaussian(5.0)
    by_blocks = matrix(kernel, X)
    cores.clear()
    pairs = TorchPairs(kernel.expression(), X, None, np.float32, Device("cpu"), fused=True)
    np.testing.assert_array_equal(pairs.dense(), by_blocks)
    assert not cores


ERRORS = {
    "OutOfResources": (2, 1, "shared memory"),
    "CompilationError": ("x", ast.parse("x").body[0], "no such product"),
}


@pytest.mark.parametrize("error", ERRORS)
def test_a_card_without_room_for_tiles_takes_blocks(cores, one_kernel, monkeypatch, error):
    X, _ = TABLES["over 255"]
    wanted = matrix(Gaussian(5.0), X)

    def refuse(text):
        raise getattr(one_kernel, error)(*ERRORS[error])

    monkeypatch.setattr(one_kernel, "compiled", refuse)
    pairs = TorchPairs(Gaussian(5.0).expression(), X, None, np.float32, Device("cpu"), fused=True)
    np.testing.assert_array_equal(pairs.dense(), wanted)


def test_other_formulas_take_blocks(cores, one_kernel):
    X, _ = TABLES["over 255"]
    kernel = Gaussian(5.0) + Gaussian(2.0)
    pairs = TorchPairs(kernel.expression(), X, None, np.float32, Device("cpu"), fused=True)
    np.testing.assert_allclose(pairs.dense(), kernel(X), atol=2e-7)
    assert cores


COMPILE = """
import subprocess, sys
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from mercer.backends.torch.triton import special as eight_bits
from mercer.backends.torch.triton.launch import compiled

kinds = {"X": "*i8", "LENGTHS": "*i32", "FACTOR": "*fp64", "SUMMAND": "*fp64", "OUT": "*fp32"}
fixed = {
    "SIDE": eight_bits._EIGHT_BITS_SIDE, "DEPTH": eight_bits.DEPTH, "TOGETHER": eight_bits._TOGETHER
}
kernel = compiled(eight_bits._EIGHT_BITS_EXPONENTIAL)
names = kernel.arg_names
types = {k: "constexpr" if k in fixed else kinds.get(k, "i32") for k in names}
even = [k for k, name in enumerate(names) if name in kinds or name in ("depth", "apart")]
source = ASTSource(
    kernel,
    types,
    {(names.index(k),): value for k, value in fixed.items()},
    {(k,): [["tt.divisibility", 16]] for k in even},
)
options = {"num_warps": eight_bits._EIGHT_BITS_WARPS, "num_stages": eight_bits._EIGHT_BITS_STAGES}
made = compile(source, target=GPUTarget("cuda", 90, 32), options=options)
with open(sys.argv[1], "wb") as file:
    file.write(made.asm["cubin"])
told = subprocess.run([sys.argv[2], "-res-usage", sys.argv[1]], capture_output=True, text=True)
print("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8" in made.asm["ptx"])
print(made.metadata.shared, *told.stdout.splitlines()[-1].split())
"""


def test_the_kernel_fits_a_card_and_spills_nothing(tmp_path):
    """Compiled for sm_90, which needs no card: 8-bit products of tensor cores, no spills."""
    products, line = told_by(COMPILE, tmp_path)
    shared, found = resources(line)
    assert products == "True"
    assert shared <= 227 << 10
    assert found["STACK"] == found["LOCAL"] == "0"


def test_only_distances_of_many_features_in_float32_are_made_so(cores):
    X, _ = TABLES["over 255"]
    matrix(Gaussian(5.0), X, np.float64)
    matrix(Gaussian(5.0), X[:, :170])
    matrix(Linear(), X)
    matrix(Gaussian(5.0) + Linear(), X)
    matrix(Gaussian(5.0), NONE["random"])
    assert not cores
    matrix(2.0 * Gaussian(5.0), X)
    assert cores


@pytest.mark.parametrize("wrong", [RuntimeError, NotImplementedError, None])
def test_a_library_that_cannot_is_not_asked(cores, monkeypatch, wrong):
    def products(x, y):
        if wrong is not None:
            raise wrong
        return torch.zeros((len(x), len(y)), dtype=torch.int32)

    X, _ = TABLES["over 255"]
    wanted = matrix(Gaussian(5.0), X)
    evaluate.multiplies.cache_clear()
    monkeypatch.setattr(evaluate, "_products", products)
    np.testing.assert_allclose(matrix(Gaussian(5.0), X), wanted, atol=1e-7)
    evaluate.multiplies.cache_clear()


def test_a_card_without_room_for_levels_goes_on(cores, monkeypatch):
    def full(X):
        raise torch.cuda.OutOfMemoryError

    X, _ = TABLES["over 255"]
    wanted = matrix(Gaussian(5.0), X)
    monkeypatch.setattr(evaluate, "whole_numbers", full)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    np.testing.assert_allclose(matrix(Gaussian(5.0), X), wanted, atol=1e-7)


def test_a_part_of_the_rows_has_numbers_of_its_own():
    X, _ = TABLES["over 255"]
    rows = TorchPairs(Gaussian(5.0).expression(), X, None, np.float32, Device("cpu")).leaves[0].rows
    assert rows.whole is not None
    assert len(rows.taken(torch.arange(5)).whole.squares) < len(rows.whole.squares)


@pytest.mark.parametrize("name", ["far from zero, float32", "too long to square", "integers"])
def test_matrices_of_other_rows_are_those_of_float64(name, cores):
    X = NONE[name]
    kernel = Gaussian(10.0 * float(X.max() - X.min()))
    np.testing.assert_allclose(matrix(kernel, X), kernel(X.astype(float)), atol=1e-6)
    # a kernel of extreme scale divides its rows by half of the exponent, which leaves levels
    assert not cores or name == "too long to square"


def test_a_full_card_does_without(cores, monkeypatch):
    def full(X):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(evaluate, "whole_numbers", full)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    X, _ = TABLES["over 255"]
    np.testing.assert_allclose(matrix(Gaussian(5.0), X), Gaussian(5.0)(X), atol=1e-6)
    assert not cores


def test_without_such_cores_nothing_is_looked_at(monkeypatch):
    monkeypatch.setattr(evaluate, "whole_numbers", None)
    pairs = TorchPairs(Gaussian(5.0).expression(), PIXELS / 255.0, None, np.float32, Device("cpu"))
    assert pairs.dense().shape == (41, 41)
