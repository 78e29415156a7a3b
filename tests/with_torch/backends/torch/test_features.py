"""Features that are made on a card stay there: fits, folds and certificates bring vectors only."""

import pickle
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer.approximation import Nystrom, RandomFeatures
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Linear
from mercer.machines.svm import problem
from mercer.selection.sharing import steps
from mercer.selection.sharing.base import Stopped
from mercer.selection.sharing.steps import SharedFeatures, SharedSteps
from mercer.solvers import Status

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import backend, device, features  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.features import TorchFeatures  # noqa: E402
from mercer.rows import device_arrays, device_rows, staging  # noqa: E402
from mercer.rows.device_arrays import CardArray  # noqa: E402
from mercer.rows.device_rows import CardRows  # noqa: E402

rng = np.random.default_rng(0)
N, LANDMARKS = 3000, 40
X = rng.standard_normal((N, 5))
F = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.6 * rng.standard_normal(N)
LABELS = (F > 0).astype(int)
THREE = np.argmax(X[:, :3] + 0.6 * rng.standard_normal((N, 3)), axis=1)
TOO_LARGE = N * LANDMARKS * 8 // 4  # bytes; the features are four times as many
UNIFORM = Nystrom(LANDMARKS, sampling="uniform")  # which looks at no row


@pytest.fixture
def travelled(monkeypatch):
    """Let the CPU pass for a card; note the bytes of every array that would travel."""
    sizes = []

    def noting(verb):
        def noted(tensor, *arguments):
            sizes.append(tensor.nbytes)
            return verb(tensor, *arguments)

        return noted

    monkeypatch.setattr(Device, "is_card", True)
    monkeypatch.setattr(Device, "free", lambda self: 10**9)
    monkeypatch.setattr(backend, "_SENT", 1)
    monkeypatch.setattr(backend, "is_available", lambda: False)  # the interpreter is slow
    for name in ("send", "bring"):
        verb = noting(getattr(staging, name))
        for module in (staging, device):
            monkeypatch.setattr(module, name, verb)
    mercer.backends._try.cache_clear()  # backends are made once, and this one is another
    with mercer.config(backend="torch", device="cpu"):
        yield sizes
    mercer.backends._try.cache_clear()


def on_host():
    return mercer.config(backend=None, device=None)


MACHINES = {
    "hinge": (mercer.SVC(C=1.0), LABELS),
    "squared": (mercer.SVC(C=1.0, slack="l2"), LABELS),
    "pairs": (mercer.SVC(C=1.0), THREE),
    "rest": (mercer.SVC(C=1.0, multiclass="ovr"), THREE),
    "tube": (mercer.SVR(C=1.0, epsilon=0.2), F),
    "nu": (mercer.SVC(nu=0.5), LABELS),
    "one class": (mercer.OneClassSVM(nu=0.2), None),
}


@pytest.fixture(params=["vectors here", "vectors there"])
def long(request, monkeypatch):
    """Let vectors of the length of the rows be the host's, or the card's however short they are."""
    if request.param == "vectors there":
        for module in (features, problem, device_arrays, device_rows):
            monkeypatch.setattr(module, "LONG", 1)
    return request.param == "vectors there"


@pytest.mark.parametrize("name", MACHINES)
def test_features_of_a_fit_never_travel(travelled, long, name):
    """The rows go there once; then vectors, and squares of the size of the landmarks."""
    machine, y = MACHINES[name]
    given = (X,) if y is None else (X, y)
    machine = clone(machine).set_params(kernel=Gaussian(2.0), approximation=UNIFORM)
    with on_host():
        wanted = clone(machine).fit(*given)
        judged = wanted.certificate_
    machine.fit(*given)
    found = machine.certificate_
    assert machine.solution_.status is Status.SOLVED
    assert found.ok and judged.ok
    assert max(travelled[1:]) < TOO_LARGE and travelled[0] == X.nbytes
    if name in ("hinge", "squared", "tube"):
        objective = found.quantities.primal
        np.testing.assert_allclose(objective, judged.quantities.primal, rtol=1e-5)
    np.testing.assert_allclose(values(machine), values(wanted), atol=2e-3)
    assert isinstance(machine.support_vectors_, np.ndarray)
    assert pickle.loads(pickle.dumps(machine)).predict(X[:2]).shape == (2,)


@pytest.mark.parametrize("frequencies", [False, True])
@pytest.mark.parametrize("written_out", [5_000_000, 1])
@pytest.mark.parametrize("y", [LABELS, THREE])
def test_newton_steps_of_logistic_regression_bring_vectors(
    travelled, long, monkeypatch, y, written_out, frequencies
):
    monkeypatch.setattr("mercer.gram.build.WRITTEN_OUT", written_out)
    approximation = RandomFeatures(LANDMARKS) if frequencies else UNIFORM
    machine = mercer.LogisticRegression(Gaussian(2.0), penalty=1e-2, approximation=approximation)
    with on_host():
        wanted = clone(machine).fit(X, y)
        judged = wanted.certificate_
    machine.fit(X, y)
    assert machine.solution_.status is Status.SOLVED
    assert machine.certificate_.ok and judged.ok
    assert travelled[0] == X.nbytes
    assert max(travelled[1:], key=but_for_the_stated_error) < TOO_LARGE
    np.testing.assert_allclose(
        machine.predict_proba(X[:99]), wanted.predict_proba(X[:99]), atol=1e-7
    )
    objective = machine.certificate_.quantities.objective
    np.testing.assert_allclose(objective, judged.quantities.objective, rtol=1e-9)


def test_cosines_and_sines_are_taken_there(travelled):
    kernel = RandomFeatures(30).of(Gaussian(2.0).on([0, 2, 3]), X)
    rows = CardRows(torch.from_numpy(X.astype(np.float32)))
    there = kernel.phi.placed(rows)
    assert isinstance(there, CardRows) and there.dtype == np.float64
    np.testing.assert_allclose(there, kernel.phi(np.asarray(rows).astype(float)), atol=1e-13)
    travelled.clear()
    machine = mercer.SVC(Gaussian(2.0), approximation=RandomFeatures(LANDMARKS)).fit(X, LABELS)
    assert machine.certificate_.ok
    assert max(travelled[1:], key=but_for_the_stated_error) < TOO_LARGE


def but_for_the_stated_error(size):
    return 0 if size == 8 * 500**2 else size  # kernel values between 500 rows, whatever N is


def values(machine):
    return getattr(machine, "decision_function", machine.predict)(X[:99])


@pytest.mark.parametrize("name", ["hinge", "tube", "logistic"])
def test_features_of_folds_never_travel(travelled, long, name):
    """One F for a scale and a fold: costs are fitted on it, and rows left out scored from it.

    The rows are sent once, and folds of all scales are taken from them there.
    """
    machine, y = MACHINES.get(name, (mercer.LogisticRegression(), LABELS))
    machine = clone(machine).set_params(kernel=Gaussian(2.0), approximation=UNIFORM)
    cost = "penalty" if name == "logistic" else "C"
    grid = {"kernel__scale": [1.0, 2.0], cost: [0.1, 1.0]}
    with on_host():
        wanted = mercer.tune(machine, X, y, grid=grid, cv=3)
    found = mercer.tune(machine, X, y, grid=grid, cv=3)
    assert sum(size > TOO_LARGE for size in travelled) == 0
    assert travelled.count(X.nbytes) == 1 and 2 * X.nbytes // 3 not in travelled
    assert found.best_params == wanted.best_params
    scores = [[list(trial.test.values()) for trial in each.trials] for each in (found, wanted)]
    np.testing.assert_allclose(*scores, atol=2e-3)


def test_features_that_have_no_room_come_to_the_host(travelled, monkeypatch):
    machine = mercer.SVC(Gaussian(2.0), approximation=Nystrom(LANDMARKS))
    with on_host():
        wanted = clone(machine).fit(X, LABELS)
    monkeypatch.setattr(Device, "free", lambda self: N * LANDMARKS * 8)
    machine.fit(X, LABELS)
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
    np.testing.assert_allclose(values(machine), values(wanted), atol=2e-3)


def test_few_columns_with_many_features_are_sent(travelled, monkeypatch):
    """Rows of a few numbers stay here until they have more features than that."""
    monkeypatch.setattr(backend, "_SENT", X.size + 1)
    machine = mercer.SVC(Gaussian(2.0), approximation=UNIFORM).fit(X, LABELS)
    assert machine.certificate_.ok and max(travelled) < TOO_LARGE
    assert travelled.count(X.nbytes) == 1


def test_a_gram_on_the_card_answers_as_one_here(travelled):
    with on_host():
        kernel = Nystrom(LANDMARKS).of(Gaussian(2.0), X)
        here = make_gram(kernel, X, Need.BOX)
    made = Nystrom(LANDMARKS).of(Gaussian(2.0), CardRows(torch.from_numpy(X)))
    there = make_gram(made, CardRows(torch.from_numpy(X)), Need.BOX)
    assert isinstance(there.placed, CardRows) and isinstance(there.factor, np.ndarray)
    V, W, some = rng.standard_normal((N, 2)), rng.standard_normal((LANDMARKS, 2)), np.arange(7)
    close = {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(there.diag(), here.diag(), **close)
    np.testing.assert_allclose(there @ V, here @ V, **close)
    np.testing.assert_allclose(there.rows(some), here.rows(some), **close)
    np.testing.assert_allclose(there.sampled(some) @ W, there.push(W)[some], **close)
    np.testing.assert_allclose(there.pull(V), there.factor.T @ V, **close)
    np.testing.assert_allclose(there.expand(V)(X[:9]), here.expand(V)(X[:9]), **close)
    np.testing.assert_allclose(there.cross(X[:9]) @ V, here.cross(X[:9]) @ V, **close)
    assert type(pickle.loads(pickle.dumps(there)).placed) is np.ndarray


@pytest.mark.parametrize("index", [None, rng.integers(0, 300, 500)])
def test_rows_that_lie_there_are_worked_with_by_number(travelled, index):
    host = mercer.backends.choose_backend()._host
    A, group = rng.standard_normal((300, 6)), rng.integers(-1, 2, 300 if index is None else 500)
    there = TorchFeatures(CardRows(torch.from_numpy(A)), index, Device("cpu"), host)
    B = A if index is None else A[index]
    assert there.shape == B.shape
    w, x, c = rng.standard_normal(6), rng.standard_normal(len(B)), rng.standard_normal(6)
    E = np.hstack([B - c, group[:, None] == np.arange(2)])
    h = rng.random(len(B))
    np.testing.assert_allclose(there.matvec(w), B @ w, atol=1e-12)
    np.testing.assert_allclose(there.rmatvec(x), B.T @ x, atol=1e-12)
    np.testing.assert_allclose(there.multiply(x[:, None]), B @ (B.T @ x[:, None]), atol=1e-11)
    np.testing.assert_allclose(
        there.gram(h, c, group.astype(np.int8), 2), E.T @ (h[:, None] * E), atol=1e-11
    )


def test_linear_machines_work_on_the_rows_themselves(travelled):
    machine = mercer.SVC(Linear(), C=0.1)
    with on_host():
        wanted = clone(machine).fit(X, LABELS)
    machine.fit(X, LABELS)
    assert machine.certificate_.ok
    np.testing.assert_allclose(machine.coef_, wanted.coef_, atol=2e-3)
    assert sum(size >= X.nbytes for size in travelled) == 1


@pytest.mark.parametrize("loss", ["log", "squared", "tanh"])
@pytest.mark.parametrize("y", [LABELS, THREE])
def test_losses_on_the_card_are_those_of_the_host(travelled, long, loss, y):
    weights = rng.random(N)
    machine = mercer.LogisticRegression(
        Gaussian(2.0), penalty=1.0, loss=loss, approximation=UNIFORM
    )
    with on_host():
        wanted = clone(machine).fit(X[:900], y[:900], weights[:900])
    machine.fit(X[:900], y[:900], weights[:900])
    assert machine.solution_.status is wanted.solution_.status
    assert machine.certificate_.ok == wanted.certificate_.ok
    found, other = machine.certificate_.quantities, wanted.certificate_.quantities
    np.testing.assert_allclose(found.objective, other.objective, rtol=1e-9)
    np.testing.assert_allclose(values(machine), values(wanted), atol=1e-5)
    assert isinstance(machine.dual_coef_ if hasattr(machine, "dual_coef_") else y, np.ndarray)


@pytest.mark.parametrize("name", ["hinge", "squared", "tube", "nu", "one class"])
def test_vectors_travel_once_where_many_rows_become_few(travelled, monkeypatch, name):
    """Rows near a corner are few: what is known of them comes to the host with them, once."""
    for module in (features, problem, device_arrays, device_rows):
        monkeypatch.setattr(module, "LONG", 1500)
    monkeypatch.setattr("mercer.machines.svm.primal.interior_point._SMALLEST_SAMPLE", 300)
    monkeypatch.setattr("mercer.machines.svm.primal.interior_point._ROWS_PER_UNKNOWN", 2)
    monkeypatch.setattr("mercer.machines.svm.primal.interior_point._FEWEST", 100)
    monkeypatch.setattr("mercer.machines.svm.primal.interior_point._FEW_PER_UNKNOWN", 2)
    met, bring = [], CardArray.on_host

    def noted(self):
        met.append(len(self))
        return bring(self)

    monkeypatch.setattr(CardArray, "on_host", noted)
    machine, y = MACHINES[name]
    machine = clone(machine).set_params(kernel=Gaussian(2.0), approximation=UNIFORM)
    machine.fit(X, *(() if y is None else (y,)))
    assert machine.certificate_.ok
    assert len(met) <= 40  # 100 to 440 where residuals of few rows stayed behind


@pytest.mark.parametrize("make", [mercer.SVC, mercer.LogisticRegression])
def test_an_interrupted_fit_leaves_the_machine_as_it_was(travelled, long, make):
    def interrupt(progress):
        if progress.iteration >= 2:
            raise KeyboardInterrupt

    machine = make(Gaussian(2.0), approximation=UNIFORM).fit(X, LABELS)
    before = values(machine)
    machine.set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, 1 - LABELS)
    np.testing.assert_array_equal(values(machine), before)


@pytest.mark.parametrize("make", [mercer.SVC, mercer.LogisticRegression, mercer.SVR])
def test_a_card_that_is_full_in_the_middle_says_so(travelled, long, make, monkeypatch):
    """Vectors are small beside features, but a card may be full to the last byte."""
    machine = make(Gaussian(2.0), approximation=UNIFORM)
    left = [40 if long else 10**9]
    put = CardArray.__init__

    def full(self, tensor):
        left[0] -= 1
        if left[0] < 0:
            raise torch.cuda.OutOfMemoryError("full")
        put(self, tensor)

    monkeypatch.setattr(CardArray, "__init__", full)
    if long:
        with pytest.raises(mercer.MemoryBudgetError, match=r"full|fit"):
            machine.fit(X, LABELS)
    left[0] = 10**9
    assert machine.fit(X, LABELS).certificate_.ok


def test_few_folds_are_on_the_card_at_a_time(travelled, monkeypatch):
    """Threads take turns for Python after every launch: more of them are slower."""
    active, most, lock, judge = [0], [0], Lock(), SharedSteps.judge

    def noted(self, unit, stop):
        with lock:
            active[0] += 1
            most[0] = max(most[0], active[0])
        try:
            return judge(self, unit, stop)
        finally:
            with lock:
                active[0] -= 1

    monkeypatch.setattr(SharedSteps, "judge", noted)
    machine = mercer.SVC(Gaussian(2.0), approximation=UNIFORM)
    grid = {"kernel__scale": [1.0, 2.0, 3.0], "C": [0.1, 1.0]}
    with mercer.config(threads=8):
        found = mercer.tune(machine, X, LABELS, grid=grid, cv=4)
    assert len(found.trials) == 24 and 1 <= most[0] <= 2


def test_a_search_that_waits_for_the_card_hears_that_it_is_over(travelled):
    task = SimpleNamespace(X=CardRows(torch.from_numpy(X)), splits=((0, 1),))
    group = SharedFeatures(task, None, {0: {}})
    held = [steps._ON_CARD.acquire(timeout=1.0) for _ in range(2)]
    try:
        assert all(held)
        with pytest.raises(Stopped):
            group.judge(0, lambda: True)
    finally:
        for _ in held:
            steps._ON_CARD.release()
