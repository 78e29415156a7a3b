"""Newton's finish of descents: it ends at the solution itself, whatever the kind of box."""

import numpy as np
import pytest
from helpers.box_truth import Truth
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.backends.box_programs import Box
from mercer.backends.native.backend import Native

native = pytest.importorskip("mercer._native")

LONG = 300.0  # C of a box that takes so many pair steps that the finish is worth it


@pytest.fixture(params=["avx512", "avx2", "baseline"])
def isa(request, monkeypatch):
    if request.param not in native.instruction_sets():
        pytest.skip(f"no {request.param} here")
    monkeypatch.setenv("MERCER_ISA", request.param)


def on_threads(K, box, threads, poll=None):
    b = box
    arrays = (b.gradient, b.start, b.lower, b.upper, b.epsilon, b.shift, b.group, b.rows)
    (answer,) = native.box_qps(K, [arrays], 1e-3, 10**6, poll, threads)
    return answer


def check(K, box, answer, tol=1e-3):
    truth = Truth(K, box)
    truth.check_feasible(answer.b)
    noise = (1e-6 if K.dtype == np.float32 else 1e-13) * (1.0 + np.abs(answer.b).sum())
    assert truth.violation(answer.b) <= tol + 2 * noise
    np.testing.assert_allclose(answer.gradient, truth.gradient(answer.b), rtol=0, atol=noise)


def kernel_matrix(n, seed, dtype):
    X = np.random.default_rng(seed).standard_normal((n, 3))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 3).astype(dtype), X


def classes(n, dtype):
    K, X = kernel_matrix(n, 4, dtype)
    y = np.where(X[:, 0] + np.random.default_rng(1).standard_normal(n) > 0, 1.0, -1.0)
    return K, Box(y, np.zeros(n), np.where(y > 0, 0.0, -LONG), np.where(y > 0, LONG, 0.0))


def regression(n, dtype):
    K, X = kernel_matrix(n, 5, dtype)
    noise = np.random.default_rng(6).standard_normal(n)
    y = np.sin(2 * X[:, 0]) + 0.3 * noise
    return K, Box(y, np.zeros(n), np.full(n, -LONG), np.full(n, LONG), epsilon=np.full(n, 0.05))


def two_sums(n, dtype):
    """Return each class its own sum, as a bound on the share of errors does."""
    K, plain = classes(n, dtype)
    y = plain.gradient
    start = 0.1 * LONG * y * np.where(y > 0, (y < 0).sum(), (y > 0).sum()) / n
    gradient = -K.astype(np.float64) @ start
    return K, Box(
        gradient,
        start,
        plain.lower,
        plain.upper,
        group=(y > 0).astype(np.int64),
    )


def squared(n, dtype):
    K, box = classes(n, dtype)
    y = box.gradient
    low, high = np.where(y < 0, -np.inf, 0.0), np.where(y > 0, np.inf, 0.0)
    return K, Box(y, np.zeros(n), low, high, shift=np.full(n, 1.0 / LONG))


KINDS = {
    "classes": classes,
    "regression": regression,
    "two sums": two_sums,
    "squared": squared,
}


def spread(truth, b):
    """Return how far slopes are apart that are equal on the free variables of a solution."""
    box = truth.box
    free = (b > box.lower) & (b < box.upper) & ((b != 0) | (truth.epsilon == 0))
    slopes = truth.gradient(b) - truth.epsilon * np.sign(b)
    groups = [free & (truth.group == g) for g in np.unique(truth.group)]
    return max(np.ptp(slopes[g]) for g in groups)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_long_descents_end_at_the_solution_itself(kind, dtype, isa):
    K, box = KINDS[kind](120, dtype)
    # Pair steps alone take twice as many to 1e-6 as there are before a finish, for each kind. To
    # 1e-3 they are nearly there when the finish is tried: rounding would decide which is first.
    tol = 1e-3 if dtype == np.float32 else 1e-6
    (answer,) = Native().box_qps(K, [box], tol, 10**6, None)
    assert answer.violation <= tol
    check(K, box, answer, tol)
    if dtype == np.float64:
        # Pair steps would leave nearly the tolerance, 5e-11 of the sum or more. Newton's leave the
        # rounding of F by the steps before, of which there are less than 1e4: each 2e-16 of it.
        assert spread(Truth(K, box), answer.b) <= 1e-11 * np.abs(answer.b).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["classes", "regression"])
def test_large_faces(kind, dtype, isa):
    K, box = KINDS[kind](900, dtype)
    (answer,) = Native().box_qps(K, [box], 1e-3, 10**6, None)
    assert answer.violation <= 1e-3
    check(K, box, answer)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("degree", [1, 3])
def test_flat_faces_are_left_along_their_edges(degree, dtype):
    # K has a low rank and C is large: pair steps alone take millions
    rng = np.random.default_rng(11)
    X = rng.standard_normal((500, 4))
    K = ((degree > 1) + X @ X.T) ** degree
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(500) > 0, 1.0, -1.0)
    box = Box(y, 0 * y, np.where(y > 0, 0.0, -1e3), np.where(y > 0, 1e3, 0.0))
    (answer,) = Native().box_qps(K.astype(dtype), [box], 1e-2, 10**6, None)
    assert answer.violation <= 1e-2
    Truth(K, box).check_feasible(answer.b)
    if dtype == np.float64:
        assert Truth(K, box).violation(answer.b) <= 1.01e-2


@pytest.mark.parametrize("kind", KINDS)
def test_the_solution_is_that_of_pair_steps(kind):
    K, box = KINDS[kind](120, np.float64)
    truth = Truth(K, box)
    (found,) = Native().box_qps(K, [box], 1e-3, 10**6, None)
    b, steps = box.start, 0
    while steps < 10**6:  # too few steps at a time for a finish to be tried
        again = Box(
            truth.gradient(b), b, box.lower, box.upper, box.epsilon, box.shift, box.group, box.rows
        )
        (part,) = Native().box_qps(K, [again], 1e-5, 499, None)
        b, steps = part.b, steps + max(part.iterations, 1)
        if part.violation <= 1e-5:
            break
    assert truth.violation(b) <= 2e-5
    size = 1.0 + np.abs(b).sum()
    assert truth.objective(found.b) == pytest.approx(truth.objective(b), abs=2e-5 * size)


def test_digits_do_not_depend_on_threads():
    K, box = classes(1500, np.float64)
    np.testing.assert_array_equal(on_threads(K, box, 1)[0], on_threads(K, box, 2)[0])


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(20, 300),
    seed=st.integers(0, 10**6),
    single=st.booleans(),
    rate=st.floats(-3, 1),
    C=st.floats(2, 6),
    kind=st.sampled_from(["plain", "rounded", "repeated"]),
)
def test_singular_faces_do_no_harm(n, seed, single, rate, C, kind):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    if kind == "rounded":
        X = np.round(X, 1)
    if kind == "repeated":
        X[n // 2 :] = X[: n - n // 2]
    K = np.exp(-(10**rate) * ((X[:, None] - X[None]) ** 2).sum(-1))
    K = K.astype(np.float32 if single else np.float64)
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    box = Box(y, 0 * y, np.minimum(10**C * y, 0.0), np.maximum(10**C * y, 0.0))
    (answer,) = Native().box_qps(K, [box], 1e-3, 200_000, None)
    check(K, box, answer, tol=1e-3 if answer.violation <= 1e-3 else np.inf)


def test_an_interrupted_finish_leaves_a_feasible_answer():
    K, box = classes(1200, np.float64)
    seen = []

    def poll(steps, violation):
        seen.append(violation)
        return len(seen) > 20

    b, gradient, *_ = on_threads(K, box, 1, poll)
    truth = Truth(K, box)
    truth.check_feasible(b)
    assert np.isfinite(seen).all()
    np.testing.assert_allclose(gradient, truth.gradient(b), atol=1e-12 * np.abs(b).sum())
