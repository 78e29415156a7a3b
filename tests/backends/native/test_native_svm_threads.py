"""The compiled box programmes on threads: same numbers, interruptible, never waiting for nobody."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from mercer.backends.box_programs import Box
from mercer.backends.native.backend import Native
from mercer.expression import Exp, SqDist

native = pytest.importorskip("mercer._native")

THREADS = [1, 2, 3]
TEAM = 4500  # variables: enough for several threads on one box


def on_threads(K, boxes, tol, max_iter, threads, poll=None):
    arrays = [
        (b.gradient, b.start, b.lower, b.upper, b.epsilon, b.shift, b.group, b.rows) for b in boxes
    ]
    return native.box_qps(K, arrays, tol, max_iter, poll, threads)


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((TEAM, 6))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(TEAM) > 0, 1.0, -1.0)
    K = Native().pairs(Exp(-0.2 * SqDist()), X, None, np.float32).dense()
    return K, X, y


def svc_box(y, C=10.0, **more):
    return Box(y, 0.0 * y, np.minimum(C * y, 0.0), np.maximum(C * y, 0.0), **more)


def assert_same(results):
    for answers in results[1:]:
        for answer, expected in zip(answers, results[0], strict=True):
            for got, wanted in zip(answer, expected, strict=True):
                np.testing.assert_array_equal(got, wanted)


# --- the same numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_team_does_what_one_thread_does(large, dtype):
    K, X, y = large
    K = K.astype(dtype)
    n = len(y)
    groups = (np.arange(n) % 2 + 2 * (y > 0)).astype(np.int64)
    kinked = Box(
        X[:, 2], np.zeros(n), np.full(n, -2.0), np.full(n, 2.0), np.full(n, 0.1), np.full(n, 0.05)
    )
    half = Box(y, 0.5 * y, np.minimum(y, 0.0), np.maximum(y, 0.0), group=groups)
    for box in (svc_box(y), kinked, half):
        assert_same([on_threads(K, [box], 1e-2, 10**6, threads) for threads in THREADS])


def test_many_boxes_are_solved_as_if_each_were_alone(large):
    K, _, y = large
    rng = np.random.default_rng(1)
    boxes = []
    for m in (5, 900, 300, 0, 1, 1200, 650):
        rows = rng.permutation(len(y))[:m] if m % 2 else np.sort(rng.permutation(len(y))[:m])
        boxes.append(svc_box(y[rows], rows=rows))
    results = [on_threads(K, boxes, 1e-3, 10**6, threads) for threads in THREADS]
    results.append([on_threads(K, [box], 1e-3, 10**6, 2)[0] for box in boxes])
    assert_same(results)


def test_two_fits_at_once_both_end(large):
    K, _, y = large
    box = svc_box(y)
    (alone,) = on_threads(K, [box], 1e-2, 10**6, 1)
    found = []

    def fit():
        found.append(on_threads(K, [box], 1e-2, 10**6, 2)[0])

    fits = [threading.Thread(target=fit, daemon=True) for _ in range(4)]
    for thread in fits:
        thread.start()
    for thread in fits:
        thread.join(timeout=120)
        assert not thread.is_alive()
    assert len(found) == 4
    assert_same([[answer] for answer in [alone, *found]])


# --- stopping --------------------------------------------------------------------------------


def endless_problem(n=1500):
    x = np.linspace(0, 1, n)
    K = np.exp(-30 * (x[:, None] - x[None]) ** 2)  # so smooth that it takes millions of steps
    return K, Box(np.sin(20 * x), np.zeros(n), np.full(n, -1e9), np.full(n, 1e9))


def check_consistent(K, box, answer):
    gradient = box.gradient - K.astype(np.float64) @ (answer.b - box.start)
    scale = 1.0 + np.abs(answer.b).sum()
    noise = 1e-12 if K.dtype == np.float64 else 1e-6
    np.testing.assert_allclose(answer.gradient, gradient, rtol=0, atol=noise * scale)
    assert abs((answer.b - box.start).sum()) <= 1e-12 * scale
    assert ((box.lower <= answer.b) & (answer.b <= box.upper)).all()


def test_it_asks_its_poll_and_stops_with_what_it_has():
    calls = []

    def poll(iteration, violation):
        calls.append((iteration, violation))
        return len(calls) == 3

    K, box = endless_problem()
    (answer,) = Native().box_qps(K, [box], 1e-12, 10**12, poll)
    assert len(calls) == 3
    assert [i for i, _ in calls] == sorted(i for i, _ in calls)
    assert all(0 < v < np.inf for _, v in calls)
    assert answer.iterations >= calls[-1][0] > 0
    assert np.isfinite(answer.violation) and answer.violation > 0
    check_consistent(K, box, answer)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stopped_team_is_consistent(large, threads):
    K, _, y = large
    box = svc_box(y, C=1e6)
    for stop_at in (1, 2, 4):
        calls = []

        def poll(iteration, violation, calls=calls, stop_at=stop_at):
            calls.append(iteration)
            return len(calls) >= stop_at

        (found,) = on_threads(K, [box], 1e-9, 10**12, threads, poll)
        b, gradient, iterations, violation = found
        assert iterations > 0 and violation > 0
        np.testing.assert_allclose(
            gradient, y - K.astype(np.float64) @ b, rtol=0, atol=1e-6 * (1 + np.abs(b).sum())
        )
        assert abs(b.sum()) <= 1e-12 * (1 + np.abs(b).sum())


def test_a_stop_ends_all_boxes():
    K, box = endless_problem()
    hopeless = [box] * 5
    answers = Native().box_qps(K, hopeless, 1e-12, 10**12, lambda iteration, violation: True)
    assert len(answers) == 5
    for answer in answers:
        check_consistent(K, box, answer)


def test_the_exception_of_a_poll_is_passed_on(large):
    def poll(iteration, violation):
        raise LookupError("enough")

    K, box = endless_problem()
    with pytest.raises(LookupError, match="enough"):
        Native().box_qps(K, [box], 1e-12, 10**12, poll)
    with pytest.raises(LookupError, match="enough"):
        Native().box_qps(K, [box] * 3, 1e-12, 10**12, poll)
    K, _, y = large
    with pytest.raises(LookupError, match="enough"):
        on_threads(K, [svc_box(y, C=1e6)], 1e-12, 10**12, 2, poll)


def test_stopped_while_rows_are_copied_it_claims_nothing():
    n = 12_000
    K = np.broadcast_to(np.ones(n, dtype=np.float32), (n, n))  # no memory: all rows are one
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    rows = np.arange(n)[::-1].copy()
    box = Box(y, 0.5 * y, np.minimum(y, 0.0), np.maximum(y, 0.0), rows=rows)
    (answer,) = Native().box_qps(K, [box], 1e-3, 10**6, lambda i, v: True)
    if answer.iterations == 0:
        assert answer.violation in (np.inf, pytest.approx(2.0))  # unknown, or the truth
        np.testing.assert_array_equal(answer.b, box.start)


# --- signals ---------------------------------------------------------------------------------

SETUP = """
import numpy as np
import mercer._native as N
x = np.linspace(0, 1, n)
K = np.exp(-30 * (x[:, None] - x) ** 2).astype(dtype)
y, box = np.sin(20 * x), np.full(n, 1e9)
one = lambda rows: (y, 0 * y, -box, box, None, None, None, rows)
"""

INTERRUPTED = {
    "one box": ("n, dtype = 1500, np.float64", "[one(None)]", 2),
    "a team": ("n, dtype = 5000, np.float32", "[one(None)]", 2),
    "many boxes": ("n, dtype = 1500, np.float64", "[one(None)] * 7", 2),
    "copies of rows": ("n, dtype = 5000, np.float32", "[one(order)] * 3", 2),
}

SCRIPT = """
import signal, time
import numpy as np
{sizes}
{setup}
order = np.random.default_rng(0).permutation(n)
signal.signal(signal.SIGPROF, signal.default_int_handler)
began = time.process_time()
try:
    signal.setitimer(signal.ITIMER_PROF, 0.5)  # of processor time, as is measured below
    while True:
        N.box_qps(K, {boxes}, 1e-12, 10**12, None, {threads})
except KeyboardInterrupt:
    print(time.process_time() - began - 0.5)
"""


def seconds_to_stop(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    return float(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("what", INTERRUPTED)
def test_a_signal_ends_it_within_a_second(what):
    sizes, boxes, threads = INTERRUPTED[what]
    script = SCRIPT.format(sizes=sizes, setup=SETUP, boxes=boxes, threads=threads)
    assert seconds_to_stop(script) < 1.0
