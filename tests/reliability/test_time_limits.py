"""Time limits: every phase of a fit looks at the deadline, and what it finds there is kept.

No test here measures seconds. The clock is one that goes on with every look at it (`Ticking`), and
compiled loops look at every chance (`_native.watch_polls` with no time in between).
"""

import warnings

import numpy as np
import pytest
from helpers.fake_clock import Ticking
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import deadline
from mercer.backends import choose_backend, factorizations
from mercer.deadline import TimeLimitError, check, cut_short, within
from mercer.gram import LazyGram, Need, make_gram
from mercer.kernels import Gaussian, Linear, Spectrum, Subsequence
from mercer.selection import MultipleKernel, tune
from mercer.selection.sharing.base import Refit
from mercer.solvers import BandPath, CholeskyPath, ConjugateGradient, Status, Watch

NATIVE = choose_backend().name == "native"
rng = np.random.default_rng(0)
X = rng.standard_normal((90, 4))
X[:45] += 2.0
c = np.repeat([0, 1], 45)
three = np.arange(90) % 3
t = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(90)
counts = rng.poisson(2.0, (90, 6))
G = Gaussian(1.0)

# machine, targets, rows: every machine that has a time limit, in its ways of working
CASES = {
    "ridge": (mercer.KernelRidge(0.1, kernel=G), t, X),
    "ridge, path": (mercer.KernelRidge("loo", kernel=G), t, X),
    "ridge, band": (mercer.KernelRidge("loo", kernel=G, solver=BandPath()), t, X),
    "ridge, factors": (mercer.KernelRidge("loo", kernel=G, solver=CholeskyPath()), t, X),
    "ridge, products": (mercer.KernelRidge(1e-3, kernel=G, solver=ConjugateGradient(rank=5)), t, X),
    "ridge, features": (mercer.KernelRidge(0.1, kernel=Linear()), t, X),
    "process": (mercer.GaussianProcess(G, noise=0.1), t, X),
    "process, learnt": (mercer.GaussianProcess(1.0 * G, optimize=True), t, X),
    "process, classes": (mercer.GaussianProcessClassifier(1.0 * G, optimize=True), three, X),
    "tasks": (mercer.MultiTaskGaussianProcess(G, optimize=True), X[:, :2], X),
    "svc": (mercer.SVC(G), c, X),
    "svc, three": (mercer.SVC(G, probability=True), three, X),
    "svc, nu": (mercer.SVC(G, nu=0.3), c, X),
    "svc, linear": (mercer.SVC(Linear()), c, X),
    "svc, strings": (mercer.SVC(Spectrum(2)), c, ["abba" * (1 + i % 5) + "c" * i for i in c]),
    "svr": (mercer.SVR(G), t, X),
    "one class": (mercer.OneClassSVM(G), None, X),
    "ball": (mercer.EnclosingBall(G), None, X),
    "logistic": (mercer.LogisticRegression(G), three, X),
    "logistic, features": (mercer.LogisticRegression(Linear()), three, X),
    "logistic, tanh": (mercer.LogisticRegression(Linear(), loss="tanh"), c, X),
    "perceptron": (mercer.Perceptron(Linear()), three, X),
    "perceptron, rows": (mercer.Perceptron(G), three, X),
    "k-means": (mercer.KMeans(4, G, n_init=10**6), None, X),
    "k-means, features": (mercer.KMeans(4, n_init=10**6), None, X),
    "spectral": (mercer.SpectralClustering(3, kernel=G, n_init=10**6), None, X),
    "pca": (mercer.PCA(3, kernel=G), None, X),
    "pca, features": (mercer.PCA(3, kernel=Linear()), None, X),
    "cca": (mercer.CCA(kernel_x=G, kernel_y=G), X[:, :2], X[:, 2:]),
    "fisher": (mercer.FisherDiscriminant(G), three, X),
    "gaussian mixture": (mercer.GaussianMixture(3, n_init=10**6), None, X),
    "bernoulli mixture": (mercer.BernoulliMixture(3, n_init=10**6), None, counts > 1),
    "multinomial mixture": (mercer.MultinomialMixture(3, n_init=10**6), None, counts),
    "mds": (mercer.MDS(), None, X),
    "probabilistic pca": (mercer.ProbabilisticPCA(2, method="em"), None, X),
    "label propagation": (mercer.LabelPropagation(), c, X),
    "label spreading": (mercer.LabelSpreading(), c, X),
    "harmonic": (mercer.HarmonicRegressor(), X[:, 0], X),
    "laplacian ridge": (mercer.LaplacianRidge(1.0, G), X[:, 0], X),
    "laplacian svc": (mercer.LaplacianSVC(G), c, X),
    "ica": (mercer.ICA(n_init=10**6), None, X),
    "pursuit": (mercer.ProjectionPursuit(n_init=10**6), None, X),
    "kernels": (MultipleKernel(mercer.SVC(), [Gaussian(0.5), G]), c, X),
}


@pytest.fixture
def ticking(monkeypatch):
    """Let time go by with every look, and compiled loops look whenever they can."""
    clock = Ticking(0.01)
    monkeypatch.setattr(deadline, "clock", clock)
    if NATIVE:
        from mercer import _native  # there is none without a compiler

        _native.watch_polls(check, 0.0)
        yield clock
        _native.watch_polls(check)
    else:
        yield clock


def fit(machine, y, rows):
    return machine.fit(rows) if y is None else machine.fit(rows, y)


def test_every_machine_with_a_time_limit_is_here():
    public = [getattr(mercer, name) for name in mercer.__all__]
    limited = {
        kind
        for kind in public
        if isinstance(kind, type) and "time_limit" in getattr(kind, "_get_param_names", list)()
    }
    asked = {type(machine) for machine, *_ in CASES.values()}
    # no rows: a few points; and the limit of a search, which has tests of its own
    elsewhere = {mercer.MaximumEntropy, mercer.Tuned}
    # these train with torch: tests/with_torch
    elsewhere |= {mercer.Autoencoder, mercer.VariationalAutoencoder}
    assert limited - asked <= elsewhere


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("looks", [5, 60, 400])
def test_every_fit_ends_after_so_many_looks(name, looks, ticking):
    machine, y, rows = CASES[name]
    limit = looks * ticking.step
    machine = clone(machine).set_params(time_limit=limit)
    before = dict(vars(machine))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit(machine, y, rows)
        except TimeLimitError as error:
            assert "time_limit" in str(error)
            assert vars(machine) == before
    # past the limit: one grace for those with nothing to show, one to put together what there is,
    # and as many looks again in which phases that are short by nature end
    assert ticking.reads * ticking.step <= limit + 3 * deadline.GRACE


@pytest.mark.parametrize("name", CASES)
def test_fits_look_at_the_clock(name, ticking):
    machine, y, rows = CASES[name]
    if "n_init" in machine.get_params():
        machine = clone(machine).set_params(n_init=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # alone, as in `looks_of`
        with mercer.config(threads=1):
            fit(clone(machine).set_params(time_limit=1e9), y, rows)
    assert ticking.reads > 5


# --- phases ----------------------------------------------------------------------------------


def looks_of(work, ticking):
    """Count the looks of some work under a limit that it keeps.

    The thread that was called looks after each task that it takes itself. How many its helpers
    leave to it is the system's choice, on a busy machine none: it works alone here.
    """
    before = ticking.reads
    with mercer.config(threads=1), within(1e9, "test"):
        work()
    return ticking.reads - before


@pytest.mark.skipif(not NATIVE, reason="compiled loops")
def test_compiled_loops_look_between_tiles(ticking):
    big = rng.standard_normal((1920, 3))
    for need in (Need.MATRIX, Need.SAMPLE):
        gram = make_gram(G, big, need)
        assert looks_of(lambda gram=gram: gram @ np.ones(1920), ticking) >= 10
    assert looks_of(lambda: make_gram(G, big, Need.MATRIX), ticking) >= 10
    A = np.eye(1920)
    assert looks_of(lambda: choose_backend().cholesky(A.copy()), ticking) >= 10
    assert looks_of(lambda: choose_backend().band_reduce(A[:640, :640].copy(), 32), ticking) >= 10


def test_one_long_pair_of_strings_looks_at_every_letter(ticking):
    rows = np.array(["ab" * 40, "ba" * 30], dtype=object)
    assert looks_of(lambda: Subsequence(2)(rows[:1], rows[1:]), ticking) >= 80 * 60
    with pytest.raises(TimeLimitError), within(1.0, "test"):
        Subsequence(2)(rows[:1], rows[1:])


def test_string_counts_look_at_every_sequence(ticking):
    rows = np.array(["abcab"] * 500, dtype=object)
    assert looks_of(lambda: Spectrum(3)(rows), ticking) >= 500


def test_numpy_evaluates_column_by_column(ticking):
    with mercer.config(backend="reference"):
        assert looks_of(lambda: make_gram(G, X, Need.MATRIX), ticking) >= X.shape[1]
        assert looks_of(lambda: choose_backend().cholesky(np.eye(600)), ticking) >= 4


@pytest.mark.parametrize("name", ["eigh", "qr", "svd", "triangle", "solve", "log_determinant"])
def test_factorizations_look_between_panels(name, ticking, monkeypatch):
    monkeypatch.setattr(factorizations, "SHORT", 30)
    monkeypatch.setattr(factorizations, "_WORK", 1e6)
    A = rng.standard_normal((300, 300))
    A = A + A.T
    given = (A, A) if name == "solve" else (A,)
    assert looks_of(lambda: getattr(factorizations, name)(*given), ticking) >= 4
    with pytest.raises(TimeLimitError), within(-10.0, "test"):
        getattr(factorizations, name)(*given)


# --- the deadline itself ---------------------------------------------------------------------


def test_the_earlier_deadline_holds(ticking):
    with within(1.0, "outer"):
        with within(100.0, "inner"):
            ticking.reads += 300
            with pytest.raises(TimeLimitError, match="outer: time_limit=1 s"):
                check()
    check()
    with within(None, "nobody"):
        check()


def test_what_was_found_is_kept_and_gets_a_second_grace(ticking):
    with within(1.0, "test"):
        ticking.reads += 100
        assert deadline.is_over()
        check()  # the first grace
        ticking.reads += int(deadline.GRACE / ticking.step)
        with cut_short() as cut:
            check()
        assert cut
        check()  # the second
        ticking.reads += int(deadline.GRACE / ticking.step)
        with pytest.raises(TimeLimitError), cut_short(lambda: False):
            check()


def test_a_watch_sees_the_deadline_around_it(ticking):
    watch = Watch()
    with within(0.5, "test"):
        assert not watch.tick(0, 1.0)
        ticking.reads += 60
        assert watch.tick(1, 1.0)
    assert watch.stopped is Status.TIME_LIMIT


def test_a_certificate_without_time_is_made_when_it_is_read(monkeypatch):
    whole = mercer.KernelRidge(0.1, kernel=G).fit(X, t)
    monkeypatch.setattr(deadline, "is_over", lambda: True)
    monkeypatch.setattr("mercer.machines.base.certificate._QUICK", 0)  # as if of many rows
    late = mercer.KernelRidge(0.1, kernel=G, time_limit=60.0).fit(X, t)
    monkeypatch.undo()
    assert not isinstance(late._judgement, mercer.certificates.Certificate)
    assert late.certificate_.ok and str(late.certificate_) == str(whole.certificate_)


def test_restarts_that_were_left_out_are_told(ticking):
    machine = mercer.SpectralClustering(3, kernel=G, n_init=10**6, time_limit=20.0)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        machine.fit(X)
    assert machine.solution_.status is Status.TIME_LIMIT


def test_products_that_take_too_long_leave_the_last_step(ticking):
    gram = make_gram(G, X, Need.SAMPLE)
    assert isinstance(gram, LazyGram)
    with mercer.config(memory="60 kB"), pytest.warns(ConvergenceWarning, match="time limit"):
        machine = mercer.LogisticRegression(G, 1e-4, time_limit=3.0).fit(X, c)
    assert machine.solution_.status is Status.TIME_LIMIT
    assert np.isfinite(machine.decision_function(X)).all()


def test_preparing_a_group_ends_with_the_time_of_a_search(monkeypatch):
    def prepare(self):
        deadline.clock = Ticking(1e6)
        check()

    monkeypatch.setattr(deadline, "clock", deadline.clock)
    monkeypatch.setattr(Refit, "prepare", prepare)
    with pytest.raises(RuntimeError, match="time limit was reached before any candidate"):
        # probabilities are not shared: each point is fitted
        machine, grid = mercer.SVC(G, probability=True), {"C": [1.0, 2.0]}
        tune(machine, X, c, grid=grid, scoring="neg_log_loss", time_limit=50.0)
