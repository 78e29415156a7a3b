"""The compiled dense verbs against NumPy, SciPy and the reference backend."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import linalg

from mercer.backends.contract import Band, Box
from mercer.backends.reference import Reference

native = pytest.importorskip("mercer._native")

WIDTH = 32
SIZES = [0, 1, 2, 3, WIDTH - 1, WIDTH, WIDTH + 1, WIDTH + 2, 2 * WIDTH + 3, 193, 300]
THREADS = [1, 2, 3]
REFERENCE = Reference()


def available():
    return getattr(native, "instruction_sets", lambda: ["baseline"])()


@pytest.fixture(params=["avx512", "avx2", "baseline"])
def isa(request, monkeypatch):
    if request.param not in available():
        pytest.skip(f"no {request.param} here")
    monkeypatch.setenv("MERCER_ISA", request.param)
    return request.param


def positive(n, seed=0, rank=None):
    X = np.random.default_rng(seed).standard_normal((n, n + 2 if rank is None else rank))
    return X @ X.T / max(1, X.shape[1])


def dense_band(lower):
    n, columns = lower.shape
    B = np.zeros((n, n))
    for k in range(min(columns, n)):
        B += np.diag(lower[: n - k, k], -k)
        if k:
            B += np.diag(lower[: n - k, k], k)
    return B


# --- cholesky --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [*SIZES, 64, 65, 191, 192, 384, 385, 611])
def test_cholesky_is_the_factor_and_keeps_the_upper_triangle(n, isa):
    A = positive(n) + 0.1 * np.eye(n)
    L = A.copy()
    assert native.cholesky(L, 2) == 0
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, A, atol=1e-12 * max(1, n))
    np.testing.assert_array_equal(np.triu(L, 1), np.triu(A, 1))
    if n:
        np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), atol=1e-11)


def test_cholesky_reads_the_lower_triangle_only():
    A = positive(150) + np.eye(150)
    rubbish = np.tril(A) + np.triu(np.full_like(A, np.nan), 1)
    assert native.cholesky(rubbish, 2) == 0
    np.testing.assert_allclose(np.tril(rubbish), np.linalg.cholesky(A), atol=1e-12)


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan])
@pytest.mark.parametrize("where", [0, 5, 31, 32, 100, 191, 192, 299])
def test_cholesky_names_the_first_minor_that_is_not_positive(where, bad):
    A = np.eye(300)
    A[where, where] = bad
    A[299, 299] = min(A[299, 299], -1.0) if where != 299 else bad  # a second one, later
    assert native.cholesky(A, 2) == where + 1


def test_cholesky_agrees_with_lapack_on_indefinite_matrices():
    for seed in range(5):
        A = positive(260, seed) - 0.05 * np.eye(260)
        _, info = linalg.lapack.dpotrf(A, lower=1)
        assert native.cholesky(A.copy(), 2) == info > 0


def test_cholesky_of_a_singular_matrix_does_not_lie():
    A = positive(250, rank=7)
    L = A.copy()
    info = native.cholesky(L, 2)
    assert 8 <= info <= 250 or np.allclose(np.tril(L) @ np.tril(L).T, A)


def test_cholesky_of_a_nearly_singular_matrix_is_backward_stable():
    x = np.linspace(0, 1, 400)[:, None]
    A = np.exp(-((x - x.T) ** 2) * 10) + 1e-10 * np.eye(400)
    L = A.copy()
    assert native.cholesky(L, 2) == 0
    assert np.abs(np.tril(L) @ np.tril(L).T - A).max() < 1e-12


def test_cholesky_is_the_same_for_any_number_of_threads():
    A = positive(700) + np.eye(700)
    factors = [A.copy() for _ in THREADS]
    for L, threads in zip(factors, THREADS, strict=True):
        native.cholesky(L, threads)
    for L in factors[1:]:
        np.testing.assert_array_equal(L, factors[0])


@pytest.mark.parametrize(
    "A",
    [np.eye(4, dtype=np.float32), np.asfortranarray(positive(4)), np.eye(8)[::2, ::2]],
    ids=["float32", "fortran", "strided"],
)
def test_cholesky_refuses_what_it_cannot_change_in_place(A):
    with pytest.raises(TypeError):
        native.cholesky(A, 1)


def test_cholesky_refuses_rectangles():
    with pytest.raises(ValueError, match="square"):
        native.cholesky(np.ones((3, 4)), 1)


# --- band reduction --------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 3, 16, WIDTH, 48, 64, 65])
@pytest.mark.parametrize("n", [*SIZES, 130, 450])
def test_band_reduction_is_an_orthogonal_similarity(n, width):
    A = positive(n)
    Qt, lower = native.band_reduce(A.copy(), width, 2)
    assert Qt.shape == (n, n) and lower.shape == (n, width + 1)
    np.testing.assert_allclose(Qt @ Qt.T, np.eye(n), atol=1e-13 * max(10, n))
    np.testing.assert_allclose(Qt.T @ dense_band(lower) @ Qt, A, atol=1e-13 * max(10, n))
    for k in range(1, min(n, width) + 1):
        assert not lower[n - k :, k].any()  # beyond the end


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_band_reduction_of_rank_deficient_matrices(rank, isa):
    A = positive(300, rank=rank) if rank else np.zeros((300, 300))
    Qt, lower = native.band_reduce(A.copy(), WIDTH, 2)
    np.testing.assert_allclose(Qt @ Qt.T, np.eye(300), atol=1e-12)
    np.testing.assert_allclose(Qt.T @ dense_band(lower) @ Qt, A, atol=1e-12)


def test_band_reduction_of_indefinite_matrices(isa):
    X = np.random.default_rng(0).standard_normal((420, 420))
    A = X + X.T
    Qt, lower = native.band_reduce(A.copy(), WIDTH, 2)
    np.testing.assert_allclose(Qt.T @ dense_band(lower) @ Qt, A, atol=1e-11)
    np.testing.assert_allclose(
        linalg.eig_banded(lower.T, lower=True, eigvals_only=True),
        np.linalg.eigvalsh(A),
        atol=1e-11,
    )


def test_band_reduction_reads_the_lower_triangle_only():
    A = positive(250)
    rubbish = np.tril(A) + np.triu(np.full_like(A, np.nan), 1)
    for ours, expected in zip(
        native.band_reduce(rubbish, 16, 2), native.band_reduce(A, 16, 2), strict=True
    ):
        np.testing.assert_array_equal(ours, expected)


def test_band_reduction_is_the_same_for_any_number_of_threads():
    A = positive(900)
    results = [native.band_reduce(A.copy(), WIDTH, threads) for threads in THREADS]
    for Qt, lower in results[1:]:
        np.testing.assert_array_equal(Qt, results[0][0])
        np.testing.assert_array_equal(lower, results[0][1])


def test_band_reduction_ends_on_nan():
    A = positive(200)
    A[150, 20] = np.nan
    _, lower = native.band_reduce(A, WIDTH, 2)
    assert np.isnan(lower).any()


def test_band_reduction_needs_a_positive_width():
    with pytest.raises(ValueError, match="width"):
        native.band_reduce(np.eye(3), 0, 1)


# --- inverse diagonals -----------------------------------------------------------------------

SHIFTS = np.array([1e-6, 1e-3, 1.0, 100.0])


@pytest.mark.parametrize("width", [1, 3, WIDTH, 48, 64, 65])
@pytest.mark.parametrize("n", [*SIZES, 130])
def test_inverse_diagonals_agree_with_the_reference(n, width):
    Qt, lower = native.band_reduce(positive(n), width, 2)
    ours = native.band_inverse_diagonals(Qt, lower, width, SHIFTS, 2)
    assert ours.shape == (len(SHIFTS), n)
    if n:
        expected = REFERENCE.band_inverse_diagonals(Band(Qt, lower, width), SHIFTS)
        np.testing.assert_allclose(ours, expected, rtol=1e-9)


def test_inverse_diagonals_are_those_of_the_inverse(isa):
    A = positive(300)
    Qt, lower = native.band_reduce(A.copy(), WIDTH, 2)
    for shift, ours in zip(
        SHIFTS, native.band_inverse_diagonals(Qt, lower, WIDTH, SHIFTS, 2), strict=True
    ):
        expected = np.diagonal(np.linalg.inv(A + shift * np.eye(300)))
        np.testing.assert_allclose(ours, expected, rtol=1e-8)


@pytest.mark.parametrize("shift", [1e-4, 1e-8, 1e-11])
def test_inverse_diagonals_at_small_shifts_of_a_smooth_kernel(shift):
    x = np.random.default_rng(0).standard_normal((500, 3))
    K = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / 3)
    Qt, lower = native.band_reduce(K, 64, 2)
    ours = native.band_inverse_diagonals(Qt, lower, 64, np.array([shift]), 2)
    expected = REFERENCE.band_inverse_diagonals(Band(Qt, lower, 64), np.array([shift]))
    # the condition number decides how far two right answers agree
    np.testing.assert_allclose(ours, expected, rtol=1e-12 + 1e-15 * 500 / shift * 1e-1)


def test_a_shift_that_is_not_positive_definite_gives_nan_and_leaves_the_others_alone():
    A = positive(200)
    Qt, lower = native.band_reduce(A.copy(), WIDTH, 2)
    shifts = np.array([1.0, -1e3, np.nan, 2.0, 0.0 - np.linalg.eigvalsh(A)[100]])
    ours = native.band_inverse_diagonals(Qt, lower, WIDTH, shifts, 2)
    assert np.isnan(ours[[1, 2, 4]]).all()
    assert np.isfinite(ours[[0, 3]]).all()


def test_inverse_diagonals_of_no_shifts():
    Qt, lower = native.band_reduce(positive(40), 8, 1)
    assert native.band_inverse_diagonals(Qt, lower, 8, np.empty(0), 1).shape == (0, 40)


def test_inverse_diagonals_are_the_same_for_any_number_of_threads():
    Qt, lower = native.band_reduce(positive(333), WIDTH, 2)
    results = [native.band_inverse_diagonals(Qt, lower, WIDTH, SHIFTS, t) for t in THREADS]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


# --- sequential minimal optimisation ---------------------------------------------------------


def box_problem(n, seed, C=10.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, :1].ravel() + rng.standard_normal(n) > 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 3).astype(dtype)
    return K, y, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0), np.zeros(n)


def objective(problem, b):
    K, linear = problem[0].astype(np.float64), problem[1]
    return b @ K @ b / 2 - linear @ b


def true_violation(problem, b):
    K, linear, lower, upper, _ = problem
    F = linear - K.astype(np.float64) @ b
    return np.max(F[b < upper], initial=-np.inf) - np.min(F[b > lower], initial=np.inf)


def check_solution(problem, tol=1e-7):
    _, _, lower, upper, start = problem
    b, iterations, violation = native.smo(*problem, tol, 10**6, None, 2)
    K, linear, lower, upper, start = problem
    box = Box(linear - K @ start, start, lower, upper)
    expected = REFERENCE.box_qps(K, [box], tol, 10**6, None)[0].b
    scale = 1.0 + np.abs(expected).sum()
    assert violation <= tol
    assert true_violation(problem, b) <= 2 * tol + 1e-10 * scale
    assert ((lower <= b) & (b <= upper)).all()
    assert abs(b.sum() - start.sum()) <= 1e-12 * scale
    assert objective(problem, b) == pytest.approx(
        objective(problem, expected), abs=1e-6 * scale, rel=1e-9
    )
    return b, iterations


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 64, 200, 333])
def test_smo_finds_the_optimum_of_the_reference(n, dtype, isa):
    check_solution(box_problem(n, seed=n, dtype=dtype))


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_smo_for_small_and_large_boxes(C):
    b, _ = check_solution(box_problem(150, seed=1, C=C), tol=1e-6)
    assert (np.abs(b) == C).any() or C > 1  # bounds are reached exactly


def test_smo_with_infinite_bounds():
    K, y, _, _, start = box_problem(120, seed=2)
    K += 0.1 * np.eye(120)
    one_sided = (K, y, np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0), start)
    check_solution(one_sided)
    free = (K, y, np.full(120, -np.inf), np.full(120, np.inf), start)
    b, _ = check_solution(free)
    system = np.block([[K, np.ones((120, 1))], [np.ones((1, 120)), np.zeros((1, 1))]])
    exact = np.linalg.solve(system, np.append(y, 0.0))[:-1]
    np.testing.assert_allclose(b, exact, atol=1e-5)


def test_smo_with_duplicates_of_opposite_label():
    K, y, *_ = box_problem(80, seed=3)
    twice = np.tile(np.arange(80), 2)
    labels = np.concatenate([y, -y])
    problem = (
        np.ascontiguousarray(K[np.ix_(twice, twice)]),
        labels,
        np.where(labels > 0, 0.0, -10.0),
        np.where(labels > 0, 10.0, 0.0),
        np.zeros(160),
    )
    check_solution(problem, tol=1e-5)


def test_smo_goes_on_from_a_warm_start():
    problem = box_problem(200, seed=4)
    b, cold = check_solution(problem)
    again, iterations, _ = native.smo(*problem[:4], b, 1e-6, 10**6, None, 2)
    assert iterations == 0
    np.testing.assert_array_equal(again, b)
    inside = np.clip(b, problem[2] * 0.9, problem[3] * 0.9)
    moved, iterations, violation = native.smo(*problem[:4], inside, 1e-7, 10**6, None, 2)
    assert violation <= 1e-7
    assert abs(moved.sum() - inside.sum()) < 1e-10
    assert cold > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_smo_on_rows_with_a_stride(dtype):
    K, *rest = box_problem(77, seed=5, dtype=dtype)
    wide = np.full((77, 96), np.nan, dtype=dtype)
    wide[:, :77] = K
    strided, plain = (native.smo(k, *rest, 1e-6, 10**6, None, 1) for k in (wide[:, :77], K))
    np.testing.assert_array_equal(strided[0], plain[0])
    with pytest.raises(ValueError, match="contiguous"):
        native.smo(np.asfortranarray(K), *rest, 1e-6, 10, None, 1)


def test_smo_stops_at_the_limit_of_iterations():
    problem = box_problem(100, seed=6)
    b, iterations, violation = native.smo(*problem, 1e-9, 7, None, 1)
    assert iterations == 7
    assert violation == pytest.approx(true_violation(problem, b))
    b, iterations, violation = native.smo(*problem, 1e-9, 0, None, 1)
    assert iterations == 0 and not b.any() and violation == 2.0


def test_smo_of_nothing():
    empty = np.empty(0)
    b, iterations, violation = native.smo(
        np.empty((0, 0)), empty, empty, empty, empty, 1e-3, 10, None, 1
    )
    assert b.shape == (0,) and iterations == 0 and violation == -np.inf


def test_smo_with_everything_at_its_bound():
    K, y, *_ = box_problem(20, seed=7)
    fixed = np.full(20, 0.5)
    b, iterations, violation = native.smo(K, y, fixed, fixed, fixed, 1e-3, 10, None, 1)
    assert iterations == 0 and violation == -np.inf
    np.testing.assert_array_equal(b, fixed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_smo_ends_when_the_gradient_is_not_finite(value, dtype):
    K, y, *rest = box_problem(50, seed=8, dtype=dtype)
    broken = y.copy()
    broken[13] = value
    assert np.isnan(native.smo(K, broken, *rest, 1e-6, 10**12, None, 1)[2])
    for i, j in [(3, 4), (3, 3), (49, 0)]:
        bad = K.copy()
        bad[i, j] = bad[j, i] = value
        violation = native.smo(bad, y, *rest, 1e-6, 10**12, None, 1)[2]
        assert np.isnan(violation) or violation <= 1e-6
    bad = np.full_like(K, value)
    assert np.isnan(native.smo(bad, y, *rest, 1e-6, 10**12, None, 1)[2])


def endless_problem(n=1500):
    x = np.linspace(0, 1, n)
    K = np.exp(-30 * (x[:, None] - x[None]) ** 2)  # so smooth that it takes millions of steps
    return K, np.sin(20 * x), np.full(n, -1e9), np.full(n, 1e9), np.zeros(n)


def test_smo_asks_its_poll_and_stops():
    calls = []

    def poll(iteration, violation):
        calls.append((iteration, violation))
        return len(calls) == 3

    began = time.perf_counter()
    b, iterations, violation = native.smo(*endless_problem(), 1e-12, 10**12, poll, 1)
    assert len(calls) == 3
    assert [i for i, _ in calls] == sorted(i for i, _ in calls)
    assert all(0 < v < np.inf for _, v in calls)
    assert time.perf_counter() - began < 20
    assert iterations > 0 and violation > 0 and np.isfinite(b).all()


def test_smo_passes_on_the_exception_of_its_poll():
    def poll(iteration, violation):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        native.smo(*endless_problem(), 1e-12, 10**12, poll, 1)


# --- interruption ----------------------------------------------------------------------------

INTERRUPTED = {
    "cholesky": "A = np.eye(n) * 4.0; A[:, 0] = A[0] = 0.5 / n\nwork = lambda: N.cholesky(A, 2)",
    "band_reduce": "A = np.ones((n, n))\nwork = lambda: N.band_reduce(A.copy(), 32, 2)",
    "band_inverse_diagonals": (
        "Qt, lower = np.eye(n), np.ones((n, 33)) * 0.01\nlower[:, 0] = 1\n"
        "shifts = np.full(400, 1.0)\n"
        "work = lambda: N.band_inverse_diagonals(Qt, lower, 32, shifts, 2)"
    ),
    "smo": (
        "x = np.linspace(0, 1, 1500); K = np.exp(-30 * (x[:, None] - x) ** 2)\n"
        "y, box = np.sin(20 * x), np.full(1500, 1e9)\n"
        "work = lambda: N.smo(K, y, -box, box, 0 * y, 1e-12, 10**12, None, 1)"
    ),
}

SCRIPT = """
import time
import numpy as np
import mercer._native as N
n = {n}
{setup}
print("ready", flush=True)
try:
    while True:
        work()
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def seconds_to_stop(script):
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline().strip() == "ready"
        time.sleep(0.5)
        began = time.perf_counter()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline().strip() == "stopped"
        return time.perf_counter() - began


@pytest.mark.slow
@pytest.mark.parametrize("verb", INTERRUPTED)
def test_a_signal_ends_the_computation_within_a_second(verb):
    n = 8000 if verb == "cholesky" else 4000  # each call then takes well over a second
    script = SCRIPT.format(n=n, setup=INTERRUPTED[verb])
    # other programs on the same cores may delay a try; not all three
    assert any(seconds_to_stop(script) < 1.0 for _ in range(3))


def test_smo_stopped_in_its_first_gradient_claims_nothing():
    n = 40_000
    K = np.broadcast_to(np.ones(n, dtype=np.float32), (n, n))  # no memory: all rows are one
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    start = 0.5 * y
    _, iterations, violation = native.smo(
        K, y, np.minimum(y, 0), np.maximum(y, 0), start, 1e-3, 10**6, lambda i, v: True, 1
    )
    assert iterations == 0
    assert violation in (np.inf, pytest.approx(2.0))  # unknown, or the truth; never a false zero


FORKS = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from mercer.backends.native import Native
from mercer.expression import Exp, SqDist
pairs = Native().pairs(Exp(-1.0 * SqDist()), np.random.default_rng(0).standard_normal((200, 3)),
                       None, np.float64)
over = threading.Event()
def use():
    while not over.is_set():
        pairs.rows(slice(0, 2))
threading.Thread(target=use, daemon=True).start()
for _ in range(150):
    child = os.fork()
    if child == 0:
        pairs.rows(slice(0, 2))
        os._exit(0)
    for _ in range(2000):
        if os.waitpid(child, os.WNOHANG)[0]:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        raise SystemExit("a forked child hangs")
over.set()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_evaluates():
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "done", done.stderr
