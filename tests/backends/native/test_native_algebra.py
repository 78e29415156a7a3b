"""The compiled dense verbs against NumPy, SciPy and the reference backend."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import linalg

from mercer.backends.contract import Band
from mercer.backends.reference.backend import Reference

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


# --- interruption ----------------------------------------------------------------------------

INTERRUPTED = {
    "cholesky": "A = np.eye(n) * 4.0; A[:, 0] = A[0] = 0.5 / n\nwork = lambda: N.cholesky(A, 2)",
    "band_reduce": "A = np.ones((n, n))\nwork = lambda: N.band_reduce(A.copy(), 32, 2)",
    "band_inverse_diagonals": (
        "Qt, lower = np.eye(n), np.ones((n, 33)) * 0.01\nlower[:, 0] = 1\n"
        "shifts = np.full(400, 1.0)\n"
        "work = lambda: N.band_inverse_diagonals(Qt, lower, 32, shifts, 2)"
    ),
}

SCRIPT = """
import signal, time
import numpy as np
import mercer._native as N
n = {n}
{setup}
signal.signal(signal.SIGPROF, signal.default_int_handler)
began = time.process_time()
try:
    signal.setitimer(signal.ITIMER_PROF, 0.5)  # of processor time, as is measured below
    while True:
        work()
except KeyboardInterrupt:
    print(time.process_time() - began - 0.5)
"""


def seconds_to_stop(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    return float(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("verb", INTERRUPTED)
def test_a_signal_ends_the_computation_within_a_second(verb):
    n = 8000 if verb == "cholesky" else 4000  # each call then takes well over a second
    script = SCRIPT.format(n=n, setup=INTERRUPTED[verb])
    assert seconds_to_stop(script) < 1.0


FORKS = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from mercer.backends.native.backend import Native
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
