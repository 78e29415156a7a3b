"""The compiled core: precision, threads, signals, memory, on all instruction sets found here."""

import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import threadpoolctl
from scipy import sparse

pytest.importorskip("mercer._native")

from mercer import _native
from mercer.backends.native.backend import Native
from mercer.expression import (
    AbsDist,
    ChiSq,
    Dot,
    Exp,
    Mapped,
    Opaque,
    Pow,
    Ratio,
    SqDist,
    Sqrt,
    Tanh,
)
from mercer.resources import call_threads, config
from mercer.testing.backend import check_backend

GAUSSIAN = Exp(-0.05 * SqDist())


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def gram(X, dtype=np.float32, expression=GAUSSIAN):
    return Native().pairs(expression, X, None, dtype)


# --- instruction sets ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", _native.instruction_sets()[1:])
def test_other_instruction_sets_conform(name, monkeypatch):
    monkeypatch.setenv("MERCER_ISA", name)
    assert _native.PairsFloat(1, 1).instruction_set == name
    check_backend("native")


def test_unknown_instruction_set(monkeypatch):
    monkeypatch.setenv("MERCER_ISA", "abacus")
    with pytest.raises(RuntimeError, match="abacus"):
        _native.PairsFloat(1, 1)


# --- functions: x y with y = 1 brings any number into the program ------------------------------


def apply(function, x, dtype):
    pairs = Native().pairs(function(Dot()), np.asarray(x)[:, None], np.ones((1, 1)), dtype)
    return pairs.dense()[:, 0]


@pytest.fixture(params=_native.instruction_sets())
def instruction_set(request, monkeypatch):
    monkeypatch.setenv("MERCER_ISA", request.param)


@pytest.mark.usefixtures("instruction_set")
class TestFunctions:
    @pytest.mark.parametrize(
        ("dtype", "rtol", "end"), [(np.float32, 2e-7, 86), (np.float64, 1e-15, 700)]
    )
    def test_exp(self, dtype, rtol, end):
        x = np.linspace(-end, end, 40001).astype(dtype)
        np.testing.assert_allclose(apply(Exp, x, dtype), np.exp(x.astype(np.longdouble)), rtol=rtol)

    @pytest.mark.parametrize(("dtype", "top"), [(np.float32, 88.7), (np.float64, 709.7)])
    def test_exp_at_the_ends(self, dtype, top):
        x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e4, -1e4, 1e30, -1e30, top], dtype=dtype)
        found = apply(Exp, x, dtype)
        np.testing.assert_array_equal(found[:9], [1, 1, np.inf, 0, np.nan, np.inf, 0, np.inf, 0])
        np.testing.assert_allclose(found[9], np.exp(x[9].astype(np.float64)), rtol=1e-6)

    @pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 5e-7), (np.float64, 1e-15)])
    def test_tanh(self, dtype, rtol):
        x = np.concatenate([np.linspace(-25, 25, 10001), np.geomspace(1e-30, 1.0, 200)])
        x = x.astype(dtype)
        np.testing.assert_allclose(apply(Tanh, x, dtype), np.tanh(x.astype(np.float64)), rtol=rtol)
        ends = np.array([np.inf, -np.inf, np.nan, 0.0], dtype=dtype)
        np.testing.assert_array_equal(apply(Tanh, ends, dtype), [1, -1, np.nan, 0])

    @pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 5e-6), (np.float64, 1e-14)])
    @pytest.mark.parametrize("power", [0.3, -1.7, 2.5])
    def test_power(self, dtype, rtol, power):
        x = np.geomspace(1e-6, 1e6, 5001).astype(dtype)
        found = apply(lambda e: Pow(e, power), x, dtype)
        np.testing.assert_allclose(found, x.astype(np.float64) ** power, rtol=rtol)
        edge = apply(lambda e: Pow(e, power), np.array([0.0, -1.0, np.nan, np.inf], dtype), dtype)
        expected = [0, np.nan, np.nan, np.inf] if power > 0 else [np.inf, np.nan, np.nan, 0]
        np.testing.assert_array_equal(edge, expected)

    def test_power_of_denormals(self):
        x = np.array([5e-324, 1e-310, 2.3e-308])
        np.testing.assert_allclose(apply(lambda e: Pow(e, 0.3), x, np.float64), x**0.3, rtol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_whole_powers_and_roots(self, dtype):
        x = np.array([-2.0, -0.5, 0.0, 3.0, np.inf, np.nan], dtype=dtype)
        for power in (-3, -2, -1, 0, 2, 3, 11):
            with np.errstate(divide="ignore"):
                expected = x.astype(np.float64) ** power
            found = apply(lambda e, power=power: Pow(e, float(power)), x, dtype)
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        roots = apply(Sqrt, x, dtype)
        np.testing.assert_allclose(roots[2:5], [0, np.sqrt(3), np.inf], rtol=1e-7)
        assert np.isnan(roots[[0, 1, 5]]).all()

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_ratio(self, dtype):
        x = np.array([0.0, 2.0, -1.0], dtype=dtype)
        np.testing.assert_array_equal(
            apply(lambda e: Ratio(e, 0.0 * e), x, dtype), [1, np.inf, -np.inf]
        )
        np.testing.assert_allclose(
            apply(lambda e: Ratio(e, e + 1.0), x[:2], dtype), [0, 2 / 3], rtol=1e-6
        )


# --- distances -------------------------------------------------------------------------------


def test_float64_rows_are_centred_before_rounding(rng):
    X = rng.standard_normal((300, 40))
    for offset in (0.0, 1e8):
        K = gram(X + offset).dense()
        np.testing.assert_allclose(K, gram(X, np.float64).dense(), rtol=0, atol=1e-6)


def test_far_clusters_fall_back_to_differences(rng):
    X = np.repeat(rng.standard_normal((4, 30)) * 1e3, 100, axis=0)
    X += 0.1 * rng.standard_normal(X.shape)
    K = gram(X, np.float64, SqDist()).dense()
    i, j = 3, 42  # one cluster
    np.testing.assert_allclose(K[i, j], np.sum((X[i] - X[j]) ** 2), rtol=1e-9)
    assert (np.diagonal(K) == 0).all()


def test_sparse_duplicates_are_at_distance_zero(rng):
    X = sparse.csr_array(
        np.repeat(rng.random((20, 300)) * (rng.random((20, 300)) < 0.03), 3, axis=0)
    )
    for expression in (SqDist(), AbsDist(), ChiSq()):
        K = gram(X, np.float32, expression).dense()
        assert all((K[i, i : i + 3] == 0).all() for i in range(0, 60, 3))


def test_not_a_number_stays_in_its_row(rng):
    X = rng.standard_normal((50, 30))
    X[7, 3] = np.nan
    K = gram(X, np.float64).dense()
    assert np.isnan(K[7]).all() and np.isnan(K[:, 7]).all()
    assert np.isfinite(np.delete(np.delete(K, 7, 0), 7, 1)).all()


def test_product_does_not_leave_the_range_of_float32(rng):
    X = rng.standard_normal((300, 5))
    V = np.stack([np.full(300, 1e60), np.full(300, 1e-60), np.zeros(300)], axis=1)
    pairs = gram(X)
    np.testing.assert_allclose(pairs.matmul(V), gram(X, np.float64).dense() @ V, rtol=1e-5)


def test_results_do_not_depend_on_threads(rng):
    X, V = rng.standard_normal((1500, 20)).astype(np.float32), rng.standard_normal((1500, 4))
    one, two = [], []
    for threads, out in ((1, one), (2, two)):
        with config(threads=threads):
            pairs = gram(X)
            out += [pairs.dense(), pairs.matmul(V), pairs.rows(slice(0, 900))]
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_errors(rng):
    X = rng.standard_normal((10, 3))
    with pytest.raises(TypeError, match="float16"):
        gram(X, np.float16)
    with pytest.raises(ValueError, match="3 features"):
        Native().pairs(GAUSSIAN, X, rng.standard_normal((4, 2)), np.float32)
    for index in ([10], [-11]):
        with pytest.raises(IndexError):
            gram(X).rows(np.array(index))
    with pytest.raises(ValueError, match="nonnegative"):
        gram(X, np.float32, ChiSq())


def test_python_errors_in_kernel_functions_come_through(rng):
    def broken(X, Y):
        raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError, match="here"):
        gram(rng.standard_normal((10, 3)), np.float64, Opaque(broken)).dense()
    with pytest.raises(ValueError, match="one row per sample"):
        gram(rng.standard_normal((10, 3)), np.float64, Dot(steps=(Mapped(lambda X: X[:2]),)))


@pytest.mark.parametrize("height", [192, 400])
def test_blocks_evaluated_by_python(rng, monkeypatch, height):
    X, Y, V = rng.random((700, 20)), rng.random((500, 20)), rng.standard_normal((700, 3))
    monkeypatch.setattr("mercer.backends.native.pairs._BLOCK_ENTRIES", height * 700)
    both = Opaque(lambda a, b: a @ b.T) + GAUSSIAN
    expected = X @ X.T + gram(X, np.float64).dense()
    pairs = gram(X, np.float64, both)
    K = pairs.dense()
    np.testing.assert_allclose(K, expected, rtol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(pairs.matmul(V), expected @ V, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(pairs.rows([5, 650]), expected[[5, 650]], rtol=1e-12)
    cross = Native().pairs(both, X, Y, np.float64).dense()
    plain = Native().pairs(GAUSSIAN, X, Y, np.float64).dense()
    np.testing.assert_allclose(cross, X @ Y.T + plain, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 15, 16, 193, 1100])  # the last is written past the cache
def test_rows_that_begin_at_cache_lines(rng, n, dtype):
    X = rng.standard_normal((n, 7))
    for formula in (GAUSSIAN, GAUSSIAN + Opaque(lambda a, b: a @ b.T)):
        pairs = gram(X, dtype, formula)
        K = pairs.dense(padded=True)
        assert K.shape == (n, n) and K.strides[0] % (16 * K.itemsize) == 0
        np.testing.assert_array_equal(K, pairs.dense())
        np.testing.assert_array_equal(K, K.T)


def test_points_may_change_after_binding(rng):
    X = rng.standard_normal((50, 20))
    pairs = gram(X, np.float64)
    before = pairs.dense()
    X[:] = 0.0
    np.testing.assert_array_equal(pairs.dense(), before)


# --- threads ---------------------------------------------------------------------------------


def test_threadpoolctl_limits_threads():
    mine = [info for info in threadpoolctl.threadpool_info() if info["user_api"] == "mercer"]
    assert len(mine) == 1
    before = _native.thread_cap()
    with threadpoolctl.threadpool_limits(1):
        assert _native.thread_cap() == 1
        assert call_threads(1e12) == 1
    assert _native.thread_cap() == before
    with threadpoolctl.threadpool_limits(1, user_api="mercer"):
        assert call_threads(1e12) == 1
    with config(threads=1):
        assert call_threads(1e12) == 1


def test_small_calls_stay_in_their_thread():
    assert call_threads(10.0) == 1


def test_concurrent_callers(rng):
    X = rng.standard_normal((1200, 30)).astype(np.float32)
    pairs = gram(X)
    expected = pairs.dense()
    wrong = []

    def work():
        for _ in range(5):
            if not np.array_equal(pairs.dense(), expected):
                wrong.append(1)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def _child_sum(X):
    with config(threads=2):
        return float(gram(X).dense().sum())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_fork(rng):
    X = rng.standard_normal((1500, 30)).astype(np.float32)
    expected = _child_sum(X)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_child_sum, [X, X]).get(timeout=60) == [expected] * 2
    assert _child_sum(X) == expected


# --- signals ---------------------------------------------------------------------------------

_LONG = """
import signal, sys, time
import numpy as np
from mercer.backends.native.backend import Native
from mercer.expression import Exp, SqDist, AbsDist
X = np.random.default_rng(0).standard_normal(({n}, 300))
pairs = Native().pairs(Exp(-1.0 * AbsDist()), X, None, np.float64)
signal.signal(signal.SIGPROF, signal.default_int_handler)
began = time.process_time()
try:
    signal.setitimer(signal.ITIMER_PROF, 0.5)  # of processor time, as is measured below
    while True:
        {call}
except KeyboardInterrupt:
    print(time.process_time() - began - 0.5, flush=True)
    pairs.rows(slice(0, 2))  # still usable
    sys.exit(7)
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "call", ["pairs.matmul(np.ones(len(X)))", "pairs.rows(slice(0, 20000))", "pairs.dense()"]
)
def test_interrupt(call):
    n = 20_000 if "dense" in call else 100_000
    code = textwrap.dedent(_LONG.format(call=call, n=n))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 7, done.stderr
    assert float(done.stdout) < 0.9


# --- memory ----------------------------------------------------------------------------------


@pytest.fixture
def clean_arena():
    gc.collect()
    _native.release_memory()
    yield
    gc.collect()
    _native.release_memory()


@pytest.mark.usefixtures("clean_arena")
class TestArena:
    def test_pages_are_used_again(self):
        first = _native.empty_float(1000, 1000)
        address = first.ctypes.data
        first[:] = 1.0
        del first
        assert _native.idle_memory() >= 4_000_000
        again = _native.empty_float(1000, 990)
        assert again.ctypes.data == address
        assert _native.idle_memory() == 0

    def test_a_view_keeps_its_memory(self):
        whole = _native.empty_double(1000, 1000)
        row = whole[3]
        del whole
        assert _native.idle_memory() == 0
        row[:] = 2.0
        del row
        assert _native.idle_memory() > 0

    def test_release(self):
        del_me = _native.empty_float(2000, 1000)
        del del_me
        assert _native.release_memory() >= 8_000_000
        assert _native.idle_memory() == 0

    def test_idle_pages_are_bounded(self):
        _native.set_idle_limit(6_000_000)
        try:
            arrays = [_native.empty_float(1000, 1000) for _ in range(4)]
            del arrays
            assert _native.idle_memory() <= 6_000_000
        finally:
            _native.set_idle_limit(4 << 30)

    def test_results_are_aligned_and_writeable(self, rng):
        K = gram(rng.standard_normal((700, 3))).dense()
        assert K.ctypes.data % 64 == 0
        assert K.flags.writeable and K.flags.c_contiguous
        K[0, 0] = 5.0

    def test_too_much(self):
        with pytest.raises(MemoryError):
            _native.empty_double(1 << 28, 1 << 28)

    def test_threads_share_the_arena(self):
        def work():
            for _ in range(50):
                array = _native.empty_double(400, 400)
                array[0] = 1.0
                del array

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
