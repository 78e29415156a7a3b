"""The compiled box programmes, against the reference and at the edges."""

import itertools

import numpy as np
import pytest
from helpers.box_truth import Truth
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.backends.box_programs import Box
from mercer.backends.native.backend import Native
from mercer.backends.reference.backend import Reference

native = pytest.importorskip("mercer._native")

REFERENCE = Reference()


@pytest.fixture(params=["avx512", "avx2", "baseline"])
def isa(request, monkeypatch):
    if request.param not in native.instruction_sets():
        pytest.skip(f"no {request.param} here")
    monkeypatch.setenv("MERCER_ISA", request.param)
    return request.param


def on_threads(K, boxes, tol, max_iter, threads, poll=None):
    arrays = [
        (b.gradient, b.start, b.lower, b.upper, b.epsilon, b.shift, b.group, b.rows) for b in boxes
    ]
    return native.box_qps(K, arrays, tol, max_iter, poll, threads)


def kernel_matrix(n, seed=0, dtype=np.float64, rate=1 / 3):
    X = np.random.default_rng(seed).standard_normal((n, 3))
    return np.exp(-rate * ((X[:, None] - X[None]) ** 2).sum(-1)).astype(dtype), X


def svc(n, seed=0, C=10.0, dtype=np.float64):
    K, X = kernel_matrix(n, seed, dtype)
    noise = np.random.default_rng(seed + 1).standard_normal(n)
    y = np.where(X[:, 0] + noise > 0, 1.0, -1.0)
    return K, Box(y, np.zeros(n), np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0))


def check(K, box, tol=1e-5, compare=True):
    """Solve, and judge the answer in float64; against the reference where that is quick."""
    (answer,) = Native().box_qps(K, [box], tol, 10**6, None)
    truth = Truth(K, box)
    truth.check_feasible(answer.b)
    single = K.dtype == np.float32
    noise = (1e-6 if single else 1e-13) * (1.0 + np.abs(answer.b).sum())
    assert answer.violation <= tol
    assert truth.violation(answer.b) <= tol + 2 * noise
    np.testing.assert_allclose(answer.gradient, truth.gradient(answer.b), rtol=0, atol=noise)
    if compare:
        (expected,) = REFERENCE.box_qps(K, [box], tol, 10**6, None)
        assert truth.objective(answer.b) == pytest.approx(
            truth.objective(expected.b), rel=1e-9, abs=2 * tol * (1 + np.abs(expected.b).sum())
        )
    return answer


# --- against the reference -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 200, 333])
def test_every_size(n, dtype, isa):
    check(*svc(n, seed=n, dtype=dtype))


def rows_of(kind, n, rng):
    return {
        "all": None,
        "two runs": np.concatenate([np.arange(n // 2, n), np.arange(0, n // 3)]),
        "with gaps": np.flatnonzero(rng.random(n) < 0.8),
        "shuffled": rng.permutation(n)[: n - 3],
        "repeated": rng.integers(0, n, n + 20),
        "twice": np.tile(np.arange(n), 2),
    }[kind]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", ["all", "two runs", "with gaps", "shuffled", "repeated", "twice"])
def test_every_kind_of_box(rows, dtype, isa):
    rng = np.random.default_rng(3)
    K, X = kernel_matrix(150, seed=1, dtype=dtype, rate=2.0)
    rows = rows_of(rows, len(K), rng)
    own = np.arange(len(K)) if rows is None else rows
    m = len(own)
    start = np.where(np.arange(m) % 2, 0.25, -0.25)
    groups = (None, np.repeat([3, 7], [m // 3, m - m // 3]), rng.integers(0, 3, m))
    for epsilon, shift, group in itertools.product((0.0, 0.1), (0.0, 0.3), groups):
        shifts = rng.uniform(0.5, 1.0, m) * shift
        box = Box(
            X[own, 0] - K.astype(np.float64)[np.ix_(own, own)] @ start - shifts * start,
            start,
            np.full(m, -3.0),
            np.full(m, 3.0),
            np.full(m, epsilon) if epsilon else None,
            shifts if shift else None,
            group,
            rows,
        )
        check(K, box, tol=1e-3, compare=False)
        if epsilon and group is not None:
            check(K, box, tol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_parts_lead_to_the_optimum_of_the_whole(dtype):
    K, box = svc(1500, seed=2, C=100.0, dtype=dtype)
    answer = check(K, box, tol=1e-3, compare=False)  # no violation is optimality
    assert answer.iterations > 2000  # long enough to go on with what still moves


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_grouped_boxes(dtype):
    n = 900
    K, X = kernel_matrix(n, seed=3, dtype=dtype)
    signs = np.repeat([1.0, -1.0], n)  # as in regression with a bound on the number of errors
    start = np.where(np.tile(np.arange(n) % 2, 2) == (signs > 0), 0.5 * signs, 0.0)
    linear = np.tile(np.sin(3 * X[:, 0]), 2)
    twice = np.tile(np.arange(n), 2)
    gradient = linear - K.astype(np.float64)[np.ix_(twice, twice)] @ start
    box = Box(
        gradient,
        start,
        np.minimum(50 * signs, 0.0),
        np.maximum(50 * signs, 0.0),
        group=(signs < 0).astype(np.int64),
        rows=twice,
    )
    assert check(K, box, tol=1e-4, compare=False).iterations > 2000
    some = np.flatnonzero(np.random.default_rng(4).random(n) < 0.8)  # swept with gaps
    y = np.where(X[some, 0] > X[some, 1], 1.0, -1.0)
    part = Box(y, 0 * y, np.minimum(9 * y, 0.0), np.maximum(9 * y, 0.0), rows=some)
    check(K, part, tol=1e-3, compare=False)
    groups = np.arange(n) % 9
    free = np.full(n, np.inf)
    many = Box(X[:, 1], np.zeros(n), -free, free, np.full(n, 0.01), np.full(n, 0.02), groups)
    check(K, many, tol=1e-3, compare=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["classes", "tube", "squared slack"])
def test_conjugate_steps_are_few(kind, dtype):
    K, X = kernel_matrix(300, seed=5, dtype=dtype)
    noise = np.random.default_rng(6).standard_normal(300)
    C, zero = 100.0, np.zeros(300)
    if kind == "tube":
        target = np.sin(2 * X[:, 0]) + 0.1 * noise
        box = Box(target, zero, zero - C, zero + C, epsilon=zero + 0.05)
    else:
        y = np.where(X[:, 0] + 0.1 * noise > 0, 1.0, -1.0)
        shift = zero + 1 / C if kind == "squared slack" else None
        box = Box(y, zero, np.minimum(C * y, 0.0), np.maximum(C * y, 0.0), shift=shift)
    steps = check(K, box, tol=1e-3, compare=False).iterations
    (plain,) = REFERENCE.box_qps(K.astype(np.float64), [box], 1e-3, 10**6, None)  # single pairs
    assert Truth(K, box).violation(plain.b) <= 1e-3
    assert steps < plain.iterations / 2


def test_regression_crosses_zero():
    K, X = kernel_matrix(120, seed=4)
    start = np.where(np.arange(120) % 2, 1.0, -1.0)  # half of them with the wrong sign
    target = np.sin(2 * X[:, 0])
    epsilon = np.full(120, 0.05)
    box = Box(target - K @ start, start, np.full(120, -5.0), np.full(120, 5.0), epsilon)
    answer = check(K, box)
    assert (answer.b * start < 0).any() and (answer.b == 0.0).any()


def test_kinks_outside_the_box_are_not_clip_points():
    K, X = kernel_matrix(40, seed=5)
    start = np.full(40, -1.0)
    box = Box(X[:, 0], start, np.full(40, -2.0), np.full(40, -0.5), np.full(40, 0.1))
    answer = check(K, box, compare=False)
    assert (answer.b <= -0.5).all()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 60), st.integers(0, 10**6), st.booleans(), st.integers(1, 4), st.integers(0, 200)
)
def test_any_answer_is_feasible_and_keeps_its_sums(m, seed, single, groups, limit):
    rng = np.random.default_rng(seed)
    K, _ = kernel_matrix(30, seed, np.float32 if single else np.float64)
    lower, upper = -rng.integers(0, 3, m) * 1.0, rng.integers(0, 3, m) * 1.0
    lower[rng.random(m) < 0.1], upper[rng.random(m) < 0.1] = -np.inf, np.inf
    start = np.clip(rng.standard_normal(m), lower, upper)
    box = Box(
        rng.standard_normal(m),
        start,
        lower,
        upper,
        rng.random(m) * rng.integers(0, 2),
        rng.random(m) + 0.1,
        rng.integers(0, groups, m),
        rng.integers(0, 30, m),
    )
    (answer,) = Native().box_qps(K, [box], 1e-3, limit, None)
    truth = Truth(K, box)
    truth.check_feasible(answer.b)
    assert answer.iterations <= limit
    assert answer.violation <= 1e-3 or answer.iterations == limit
    assert truth.objective(answer.b) <= truth.objective(start) + 1e-5 * (1 + np.abs(start).sum())
    if np.isfinite(answer.violation):
        assert answer.violation == pytest.approx(truth.violation(answer.b), abs=1e-4)


# --- edges -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1e-12, 1e-3, 1.0, 1e3])
def test_small_and_large_boxes(C, dtype):
    K, box = svc(150, seed=1, C=C, dtype=dtype)
    answer = check(K, box, tol=1e-3)
    assert (np.abs(answer.b) == C).any() or C > 1  # bounds are reached exactly


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6, 1e30])
def test_the_scale_of_the_problem_does_not_matter(scale, dtype):
    K, box = svc(100, seed=2, dtype=dtype)
    scaled = Box(box.gradient * scale, box.start, box.lower * scale, box.upper * scale)
    (plain,), (other,) = (
        Native().box_qps(K, [b], 1e-4 * s, 10**6, None) for b, s in ((box, 1.0), (scaled, scale))
    )
    assert other.violation <= 1e-4 * scale
    np.testing.assert_allclose(other.b / scale, plain.b, atol=1e-2)


@pytest.mark.parametrize("factor", [1e-20, 1e-6, 1e6, 1e20])
def test_the_scale_of_the_matrix_does_not_matter(factor):
    K, box = svc(100, seed=2, dtype=np.float32)
    (plain,) = Native().box_qps(K, [box], 1e-4, 10**6, None)
    other = Box(box.gradient, box.start, box.lower / factor, box.upper / factor)
    (scaled,) = Native().box_qps(K * np.float32(factor), [other], 1e-4, 10**6, None)
    assert scaled.violation <= 1e-4
    np.testing.assert_allclose(scaled.b * factor, plain.b, atol=1e-2)


def test_infinite_bounds():
    K, box = svc(120, seed=2)
    K += 0.1 * np.eye(120)
    y = box.gradient
    one_sided = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    check(K, Box(y, box.start, *one_sided))
    answer = check(K, Box(y, box.start, np.full(120, -np.inf), np.full(120, np.inf)), tol=1e-7)
    system = np.block([[K, np.ones((120, 1))], [np.ones((1, 120)), np.zeros((1, 1))]])
    exact = np.linalg.solve(system, np.append(y, 0.0))[:-1]
    np.testing.assert_allclose(answer.b, exact, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [10.0, 1e12, np.inf])
def test_duplicates_of_opposite_label(C, dtype):
    K, box = svc(80, seed=3, dtype=dtype)
    y = np.concatenate([box.gradient, -box.gradient])
    twice = Box(
        y,
        np.zeros(160),
        np.where(y > 0, 0.0, -C),
        np.where(y > 0, C, 0.0),
        rows=np.tile(np.arange(80), 2),
    )
    if C == 10.0:
        check(K, twice, tol=1e-4)
        return
    (answer,) = Native().box_qps(
        K, [twice], 1e-4, 200_000, None
    )  # the gain grows with C: it must end
    assert ((twice.lower <= answer.b) & (answer.b <= twice.upper)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_that_is_not_positive_ends(dtype):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((90, 90))
    K = ((A + A.T) / 2).astype(dtype)
    y = np.where(rng.random(90) > 0.5, 1.0, -1.0)
    box = Box(y, np.zeros(90), np.minimum(y, 0.0), np.maximum(y, 0.0))
    (answer,) = Native().box_qps(K, [box], 1e-3, 10**6, None)
    Truth(K, box).check_feasible(answer.b)
    assert answer.iterations < 10**6
    zero = np.zeros((90, 90), dtype=dtype)
    (answer,) = Native().box_qps(zero, [box], 1e-3, 10**6, None)
    assert answer.violation <= 1e-3 and answer.iterations < 200


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tolerance_below_rounding_ends(dtype):
    K, box = svc(60, seed=6, C=1e4, dtype=dtype)
    kinked = Box(box.gradient, box.start, -1e4 * np.ones(60), 1e4 * np.ones(60), np.full(60, 0.1))
    for one in (box, kinked):
        (answer,) = Native().box_qps(K, [one], 0.0, 10**9, None)
        assert answer.iterations < 10**8
        assert np.isfinite(answer.violation) and answer.violation < 1e-3


def test_it_goes_on_from_a_warm_start():
    K, box = svc(200, seed=4)
    cold = check(K, box, tol=1e-6)
    warm = Box(cold.gradient, cold.b, box.lower, box.upper)
    (again,) = Native().box_qps(K, [warm], 1e-5, 10**6, None)
    assert again.iterations == 0
    np.testing.assert_array_equal(again.b, cold.b)
    inside = np.clip(cold.b, box.lower * 0.9, box.upper * 0.9)
    check(K, Box(box.gradient - K @ inside, inside, box.lower, box.upper))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_with_a_stride_and_nothing_read_beyond_them(dtype, isa):
    K, box = svc(77, seed=5, dtype=dtype)
    wide = np.full((77, 96), np.nan, dtype=dtype)
    wide[:, :77] = K
    (strided,), (plain,) = (on_threads(k, [box], 1e-6, 10**6, 1) for k in (wide[:, :77], K))
    np.testing.assert_array_equal(strided[0], plain[0])
    with pytest.raises(ValueError, match="contiguous"):
        on_threads(np.asfortranarray(K), [box], 1e-6, 10, 1)
    (turned,) = Native().box_qps(np.asfortranarray(K), [box], 1e-6, 10**6, None)
    np.testing.assert_array_equal(turned.b, plain[0])


def test_the_limit_of_iterations():
    K, box = svc(700, seed=6, C=100.0)
    for limit in (0, 7, 501, 1000):
        (answer,) = Native().box_qps(K, [box], 1e-9, limit, None)
        assert answer.iterations == limit
        assert answer.violation == pytest.approx(Truth(K, box).violation(answer.b))


def test_nothing_to_do():
    empty = np.empty(0)
    box = Box(empty, empty, empty, empty)
    (answer,) = Native().box_qps(np.empty((0, 0)), [box], 1e-3, 10, None)
    assert answer.b.shape == (0,) and answer.iterations == 0 and answer.violation == -np.inf
    part = Box(empty, empty, empty, empty, rows=np.empty(0, dtype=np.int64))
    (answer,) = Native().box_qps(np.eye(3), [part], 1e-3, 10, None)
    assert answer.b.shape == (0,) and answer.violation == -np.inf
    assert Native().box_qps(np.eye(3), [], 1e-3, 10, None) == []
    K, _ = svc(20)
    fixed = np.full(20, 0.5)
    (answer,) = Native().box_qps(K, [Box(K[0], fixed, fixed, fixed)], 1e-3, 10, None)
    assert answer.iterations == 0 and answer.violation == -np.inf
    np.testing.assert_array_equal(answer.b, fixed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_end_it(value, dtype):
    K, box = svc(50, seed=8, dtype=dtype)
    broken = box.gradient.copy()
    broken[13] = value
    (answer,) = Native().box_qps(
        K, [Box(broken, box.start, box.lower, box.upper)], 1e-6, 10**9, None
    )
    assert np.isnan(answer.violation)
    for i, j in [(3, 4), (3, 3), (49, 0)]:
        bad = K.copy()
        bad[i, j] = bad[j, i] = value
        (answer,) = Native().box_qps(bad, [box], 1e-6, 10**9, None)
        assert np.isnan(answer.violation) or answer.violation <= 1e-6
    (answer,) = Native().box_qps(np.full_like(K, value), [box], 1e-6, 10**9, None)
    assert np.isnan(answer.violation)


def test_what_cannot_be_is_refused():
    K, box = svc(10)
    short = Box(box.gradient[:5], box.start, box.lower, box.upper)
    with pytest.raises(ValueError, match="length"):
        Native().box_qps(K, [short], 1e-3, 10, None)
    half = Box(*(v[:5] for v in (box.gradient, box.start, box.lower, box.upper)))
    with pytest.raises(ValueError, match="rows"):
        Native().box_qps(K, [half], 1e-3, 10, None)
    beyond = Box(box.gradient, box.start, box.lower, box.upper, rows=np.arange(1, 11))
    with pytest.raises(ValueError, match="rows"):
        Native().box_qps(K, [beyond], 1e-3, 10, None)
