"""Ctrl-C, callbacks and time limits: a fit ends when it is told to, and changes all or nothing."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from helpers.fake_clock import Ticking
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import mercer
from mercer import SVC, KernelRidge, Status, deadline
from mercer.backends import choose_backend
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.solvers import BandPath, CholeskyPath, ConjugateGradient, Progress

SOURCE = str(Path(mercer.__file__).parents[1])
NATIVE = choose_backend().name == "native"

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 3))
y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(120)
c = np.where(y + 0.5 * rng.standard_normal(120) > 0.6, "b", "a")


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


# --- Ctrl-C ----------------------------------------------------------------------------------

# Runs in a process of its own. A timer of the system sends the signal, whatever holds the
# interpreter's lock; it counts processor time, as the delay is counted, so that other programs on
# the same cores change nothing.
INTERRUPT = """
import signal, time, warnings
import numpy as np
import mercer
from mercer import SVC, KernelRidge
from mercer.kernels import Gaussian
from mercer.solvers import ConjugateGradient
warnings.simplefilter("ignore")
signal.signal(signal.SIGPROF, signal.default_int_handler)
rng = np.random.default_rng(0)

def data(n, d=5):
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)

def slow_linear(A, B):
    end = time.process_time() + 0.002 * (1 + len(A) // 4)
    while time.process_time() < end:
        pass
    return A @ B.T

{setup}

def state():
    return {{name: id(value) for name, value in vars(machine).items()}}

began = time.process_time()
expected = work()  # uninterrupted, to know how long it takes, and the right answer
seconds = time.process_time() - began
machine = restart()
kept, first = state(), answer()
late = []
for share in rng.uniform(0.02, 0.8, 3 * {repeats}):
    if len(late) == {repeats}:
        break
    began = time.process_time()
    due = began + share * seconds
    try:
        signal.setitimer(signal.ITIMER_PROF, share * seconds)
        work()
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = min(seconds, time.process_time() - began)  # it was faster this time
        machine = restart()
        kept, first = state(), answer()
    except KeyboardInterrupt:
        late.append(time.process_time() - due)
        assert state() == kept, "the machine was changed"
        assert np.array_equal(answer(), first), "the machine predicts something else"
again = work()
assert np.array_equal(again, expected), "a fit after an interrupt differs from a fresh one"
print(len(late), max(late, default=0.0), sorted(late)[len(late) // 2] if late else 0.0)
"""

FIT = """
small, small_y = data(60)
X, y = data({n})
def restart():
    return {machine}.fit(small, small_y)
def work():
    with mercer.config(memory={memory!r}):
        return machine.fit(X, y).predict(X[:50])
def answer():
    return machine.predict(small)
machine = restart()
"""

PREDICT = """
X, y = data(2000)
new = data({n})[0]
fitted = {machine}.fit(X, y)
def restart():
    return fitted
def work():
    return machine.predict(new)
def answer():
    return machine.predict(X[:50])
machine = restart()
"""


def fit(machine, n, n_native=None, memory=None):
    return FIT.format(machine=machine, n=(n_native or n) if NATIVE else n, memory=memory)


SCENES = {
    "ridge": fit("KernelRidge(0.1, kernel=Gaussian(1.0))", 2200, 6000),
    "path": fit("KernelRidge('loo', kernel=Gaussian(1.0))", 400, 2500),
    "few penalties": fit(
        "KernelRidge('loo', kernel=Gaussian(1.0), penalties=[0.1, 1.0])", 1200, 4000
    ),
    "conjugate gradient": fit(
        "KernelRidge(1e-6, kernel=Gaussian(1.0), solver=ConjugateGradient(rank=50, max_iter=6))",
        1500,
        12000,
        memory="20 MB",
    ),
    "slow function, matrix": fit("SVC(slow_linear)", 600, memory="1 GB"),
    "slow function, rows": fit("SVC(slow_linear, max_iter=400)", 250, memory="100 kB"),
    "pair steps": fit("SVC(Gaussian(0.7), C=1e4, tol=1e-9)", 700, 2500),
    "predict": PREDICT.format(
        machine="KernelRidge(0.1, kernel=Gaussian(1.0))", n=200_000 if NATIVE else 8_000
    ),
}


@pytest.mark.sampled(8)
@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX does")
@pytest.mark.parametrize("scene", SCENES)
def test_d1_ctrl_c(scene):
    code = INTERRUPT.format(setup=SCENES[scene], repeats=4)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": SOURCE, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    heard, latest, typical = done.stdout.split()
    assert int(heard) >= 1
    assert float(typical) < 1.0
    assert float(latest) < 3.0  # of all threads together


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX does")
def test_d1_ctrl_c_ends_a_script():
    code = """
        import sys
        import numpy as np
        from mercer import SVC

        def endless(A, B):
            while True:
                print("started", flush=True)
                sum(range(10**5))

        SVC(endless).fit(np.eye(4), [0, 1, 0, 1])
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # jobs in the background ignore Ctrl-C, and their children with them
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0


# --- callbacks and limits --------------------------------------------------------------------

ITERATIVE = KernelRidge(1e-6, kernel=Gaussian(0.3), solver=ConjugateGradient(rank=0, tol=1e-14))
MANY = np.logspace(-3, 3, 40)
MACHINES = {
    "svc": SVC(Gaussian(0.3), C=1e3, tol=1e-8),
    "conjugate gradient": ITERATIVE,
    "band path": KernelRidge("loo", kernel=Gaussian(1.0), penalties=MANY, solver=BandPath(width=8)),
    "cholesky path": KernelRidge(
        "loo", kernel=Gaussian(1.0), penalties=MANY, solver=CholeskyPath()
    ),
    "primal path": KernelRidge("loo", kernel=Linear(), penalties=MANY),
}
DIRECT = {"cholesky": KernelRidge(kernel=Gaussian(1.0)), "primal": KernelRidge(kernel=Linear())}


def target_of(machine):
    return y if isinstance(machine, KernelRidge) else c


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("name", [*MACHINES, *DIRECT])
def test_d16_a_callback_that_raises(name, error):
    def fail(progress):
        raise error

    machine = clone({**MACHINES, **DIRECT}[name]).set_params(callback=fail)
    t, unfitted = target_of(machine), dict(vars(machine))
    with pytest.raises(type(error)):
        machine.fit(X, t)
    assert vars(machine) == unfitted
    machine.set_params(callback=None).fit(X, t)
    before, predicted = dict(vars(machine)), machine.predict(X)
    machine.set_params(callback=fail)
    before["callback"] = fail
    with pytest.raises(type(error)):
        machine.fit(X[:50], t[:50])
    assert vars(machine) == before
    np.testing.assert_array_equal(machine.predict(X), predicted)
    fresh = clone(machine).set_params(callback=None).fit(X[:50], t[:50])
    machine.set_params(callback=None).fit(X[:50], t[:50])
    np.testing.assert_array_equal(machine.predict(X), fresh.predict(X))


@pytest.mark.parametrize("name", MACHINES)
def test_d16_a_callback_that_stops(name):
    seen = []

    def stop(progress):
        seen.append(progress)
        return True

    machine = clone(MACHINES[name]).set_params(callback=stop)
    with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
        machine.fit(X, target_of(machine))
    assert machine.solution_.status is Status.STOPPED
    assert len(seen) == 1
    assert isinstance(seen[0], Progress)
    usable(machine)


@pytest.mark.parametrize("name", MACHINES)
def test_a_time_limit_ends_a_fit(name, monkeypatch):
    monkeypatch.setattr(deadline, "clock", Ticking(1e-8))  # past the limit, never past the grace
    machine = clone(MACHINES[name]).set_params(time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        machine.fit(X, target_of(machine))
    assert machine.solution_.status is Status.TIME_LIMIT
    usable(machine)
    machine.set_params(time_limit=1e9).fit(X, target_of(machine))
    assert machine.solution_.status is Status.SOLVED


def usable(machine):
    """Check that a fit that was ended early predicts numbers, and does not claim too much."""
    predicted = getattr(machine, "decision_function", machine.predict)(X)
    assert np.isfinite(predicted).all()
    assert not np.isnan(machine.dual_coef_).any()
    assert not machine.solution_.status.ok
    if machine.get_params().get("penalty") == "loo":  # what was reached is exact
        assert machine.certificate_.ok
        assert np.isinf(machine.loo_scores_).any()
        assert np.isfinite(machine.loo_scores_).any()
    else:
        assert not machine.certificate_.ok


@pytest.mark.parametrize("name", [*MACHINES, *DIRECT])
def test_d16_watching_does_not_change_the_result(name):
    seen = []
    machine = clone({**MACHINES, **DIRECT}[name])
    plain = clone(machine).fit(X, target_of(machine))
    watched = clone(machine).set_params(callback=seen.append).fit(X, target_of(machine))
    assert seen
    assert len(seen) == len(watched.solution_.trace)
    np.testing.assert_array_equal(watched.dual_coef_, plain.dual_coef_)


def test_direct_answers_are_whole_also_past_the_time_limit(monkeypatch):
    monkeypatch.setattr(deadline, "clock", Ticking(1e-8))  # past the limit, never past the grace
    for machine in DIRECT.values():
        fitted = clone(machine).set_params(time_limit=1e-9).fit(X, y)
        assert fitted.solution_.status is Status.SOLVED
        assert fitted.certificate_.ok


def test_an_iteration_limit_ends_a_fit():
    machine = SVC(Gaussian(0.3), C=1e3, max_iter=5)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        machine.fit(X, c)
    assert machine.solution_.status is Status.ITERATION_LIMIT
    assert machine.n_iter_ == 5
    assert machine.certificate_.quantities.infeasibility < 1e-12
    usable(machine)


def test_a_stopped_fit_of_a_precomputed_matrix():
    machine = SVC(Precomputed(), C=1e3, tol=1e-9, callback=lambda progress: True)
    with pytest.warns(ConvergenceWarning, match="callback"):
        machine.fit(Gaussian(0.3)(X), c)
    assert machine.solution_.status is Status.STOPPED
