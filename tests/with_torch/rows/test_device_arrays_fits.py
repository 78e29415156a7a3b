"""Rows on a card answer as arrays do, and fits to them are fits to the arrays."""

import pickle

import numpy as np
import pytest

import mercer
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.machines.base.targets import distinct_rows

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import backend  # noqa: E402 - after the skip
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.rows.device_rows import CardRows  # noqa: E402

rng = np.random.default_rng(0)


@pytest.fixture
def card(monkeypatch):
    """Let the CPU pass for a card that takes rows of any number."""
    monkeypatch.setattr(Device, "is_card", True)
    monkeypatch.setattr(Device, "free", lambda self: 10**9)
    monkeypatch.setattr(backend, "can_descend", lambda *_: False)
    monkeypatch.setattr("mercer.backends.torch.matrices.can_descend", lambda *_: False)
    monkeypatch.setattr(backend, "is_available", lambda: False)  # the interpreter is slow
    monkeypatch.setattr(backend, "_SENT", 1)
    mercer.backends._try.cache_clear()
    with mercer.config(backend="torch", device="cpu"):
        yield
    mercer.backends._try.cache_clear()


@pytest.fixture(params=[np.float32, np.float64])
def both(request):
    X = (rng.standard_normal((50, 7)) * 3).astype(request.param)
    return X, CardRows(torch.from_numpy(X.copy()))


def test_questions_have_the_answers_of_arrays(both):
    X, rows = both
    assert rows.shape == X.shape and len(rows) == 50 and rows.size == X.size
    assert rows.dtype == X.dtype and rows.nbytes == X.nbytes and rows.ndim == 2
    np.testing.assert_array_equal(rows.min(axis=0), X.min(axis=0))
    np.testing.assert_array_equal(rows.max(axis=0), X.max(axis=0))
    assert rows.min() == X.min() and rows.max() == X.max()
    np.testing.assert_array_equal(rows.max(axis=1), X.max(axis=1))
    np.testing.assert_allclose(rows.mean(axis=0, dtype=np.float64), X.mean(axis=0, dtype=float))
    np.testing.assert_allclose(rows.sum(dtype=np.float64), X.sum(dtype=float))
    direction = rng.standard_normal(7)
    np.testing.assert_allclose(rows.projected(direction), X @ direction, atol=1e-13)


def test_parts_are_taken_there(both):
    X, rows = both
    some, mask = rng.integers(0, 50, 20), rng.random(50) < 0.5
    for index in (some, mask, slice(3, 20), slice(0, 0), -some[:4] - 1, some[:0]):
        found = rows[index]
        assert isinstance(found, CardRows)
        np.testing.assert_array_equal(np.asarray(found), X[index])
    columns = np.array([2, 0])
    assert isinstance(rows[:, columns], CardRows)
    np.testing.assert_array_equal(rows[:, columns], X[:, columns])
    others = [(3, 2), (slice(None), 2), (some[:2], columns), slice(None, None, -1)]
    for index in (3, -1, [1, 2], *others):
        found = rows[index]
        np.testing.assert_array_equal(found, X[index])


@pytest.fixture
def brought(monkeypatch):
    """Count the rows that are brought to the host."""
    counts = []

    def counted(tensor):
        counts.append(len(tensor))
        return tensor.clone()

    monkeypatch.setattr("mercer.rows.staging.bring", counted)
    return counts


@pytest.mark.parametrize("order", ["C", "F", "read only"])
def test_rows_that_are_on_the_host_are_not_brought(both, brought, order):
    X, _ = both
    host = np.asfortranarray(X) if order == "F" else X.copy()
    host.flags.writeable = order != "read only"
    rows = CardRows(torch.from_numpy(X.copy()), host)
    some, mask = rng.integers(0, 50, 20), rng.random(20) < 0.5
    found = rows[some][mask].on_host()
    np.testing.assert_array_equal(found, X[some][mask])
    np.testing.assert_array_equal(rows[5:30][some[:0]].on_host(), X[:0])
    assert not brought and not np.shares_memory(found, host)
    columns = rows[:, np.array([1, 2])][some]  # others are brought as before
    np.testing.assert_array_equal(columns.on_host(), X[:, [1, 2]][some])
    assert brought == [20]


def test_what_was_brought_in_parts_is_not_brought_again(both, brought):
    X, rows = both
    parts = [rows[np.arange(k, 30, 3)] for k in range(3)]
    for part in parts:
        part.on_host()
    assert brought == [10, 10, 10]
    some = rng.permutation(30)[:17]
    np.testing.assert_array_equal(rows[some].on_host(), X[some])
    assert brought == [10, 10, 10]
    np.testing.assert_array_equal(rows[25:40].on_host(), X[25:40])  # some are not known
    assert brought[3:] == [15]


def test_rows_do_not_hold_those_they_were_taken_from(both, brought):
    X, _ = both
    rows = CardRows(torch.from_numpy(X.copy()), X.copy())
    some = rows[np.arange(4)]
    del rows
    np.testing.assert_array_equal(some.on_host(), X[:4])
    assert brought == [4]


def test_what_the_caller_changes_after_a_fit_is_not_read(both, brought):
    X, _ = both
    host = X.copy()
    rows = CardRows(torch.from_numpy(X.copy()), host)
    some = rows[np.arange(4)]
    for one in (some, rows):
        one.forget_given()
    host[:] = 0.0
    np.testing.assert_array_equal(some.on_host(), X[:4])
    np.testing.assert_array_equal(rows.on_host(), X)
    assert brought == [4, 50]


def test_support_vectors_of_many_classes_are_brought_once(card, brought, monkeypatch):
    # a sample of the rows is brought for the medians of a check: here not all of them
    monkeypatch.setattr("mercer.machines.base.certificate._MIDDLE", 30)
    X = rng.standard_normal((90, 5))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    for rows, once in ((X, 0), (CardRows(torch.from_numpy(X.copy())), 1)):
        brought.clear()
        machine = mercer.SVC(kernel=Gaussian(2.0), C=3.0).fit(rows, y)
        np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
        assert len(machine.n_support_) == 3
        assert brought.count(len(machine.support_)) == once  # those of all classes together


def test_everything_else_is_left_to_arrays(both):
    X, rows = both
    np.testing.assert_array_equal(rows + 1.0, X + 1.0)
    np.testing.assert_array_equal(2.0 - rows, 2.0 - X)
    np.testing.assert_array_equal(X * rows, X * X)
    np.testing.assert_array_equal(np.ones(50, np.float32) @ rows, np.ones(50, np.float32) @ X)
    np.testing.assert_array_equal(abs(rows), abs(X))
    np.testing.assert_array_equal(rows == X, np.ones(X.shape, bool))
    np.testing.assert_array_equal(np.isfinite(rows), np.isfinite(X))
    np.testing.assert_array_equal(rows.T, X.T)
    np.testing.assert_array_equal(rows.astype(np.float16), X.astype(np.float16))
    assert type(pickle.loads(pickle.dumps(rows))) is np.ndarray
    with pytest.raises(AttributeError):
        rows.no_such_word  # noqa: B018


def test_products_are_made_there_in_float64(both, monkeypatch):
    X, rows = both
    double = X.astype(float)
    monkeypatch.setattr("mercer.rows.device_rows._ENTRIES", 100)  # several blocks
    monkeypatch.setattr(CardRows, "on_host", lambda self: pytest.fail("the rows have travelled"))
    for shape in ((), (1,), (3,), (0,)):
        W, V = rng.standard_normal((7, *shape)), rng.standard_normal((50, *shape))
        np.testing.assert_allclose(rows @ W, double @ W, atol=1e-12)
        np.testing.assert_allclose(rows.T @ V, double.T @ V, atol=1e-12)
        np.testing.assert_allclose(V.T @ rows, V.T @ double, atol=1e-12)
        np.testing.assert_allclose(W.T @ rows.T, W.T @ double.T, atol=1e-12)
        np.testing.assert_allclose(abs(rows.T) @ V, abs(double.T) @ V, atol=1e-12)
    np.testing.assert_allclose(rows[:3] @ rows.T, double[:3] @ double.T, atol=1e-12)
    np.testing.assert_allclose(rows.squared_lengths(), (double**2).sum(axis=1), rtol=1e-14)


def test_other_forms_of_the_rows_stay_there(both):
    X, rows = both
    double, mean = rows.astype(np.float64), X.mean(axis=0, dtype=float)
    below, moved = rows.below(rows[:3]), double.from_origin(mean)
    assert all(isinstance(one, CardRows) for one in (double, below, moved))
    assert double.dtype == np.float64 and rows.astype(X.dtype, copy=False) is rows
    np.testing.assert_array_equal(double, X.astype(float))
    np.testing.assert_array_equal(below, np.concatenate([X, X[:3]]))
    np.testing.assert_array_equal(moved, X.astype(float) - mean)
    np.testing.assert_array_equal(list(rows.T), list(X.T))
    np.testing.assert_array_equal(rows.T + 1.0, X.T + 1.0)


def test_what_a_full_card_has_no_room_for_is_made_here(both, monkeypatch):
    X, rows = both
    full = torch.cuda.OutOfMemoryError("full")

    class Full:
        shape, dtype, device = rows.tensor.shape, rows.tensor.dtype, rows.tensor.device

        def __getattr__(self, name):
            raise full

        __getitem__ = __sub__ = __getattr__

    moved = CardRows(Full(), X)
    monkeypatch.setattr(torch, "cat", lambda *_: moved.tensor.cat)
    assert isinstance(moved[np.arange(3)], np.ndarray)
    np.testing.assert_array_equal(moved[np.arange(3)], X[:3])
    np.testing.assert_array_equal(moved.from_origin(np.ones(7)), X - np.ones(7))
    np.testing.assert_array_equal(moved.below(moved), np.concatenate([X, X]))
    other = np.float32 if X.dtype == np.float64 else np.float64
    np.testing.assert_array_equal(moved.astype(other), X.astype(other))
    double, V = X.astype(float), rng.standard_normal((50, 2))
    np.testing.assert_allclose(moved.projected(V[:7, 0]), double @ V[:7, 0], atol=1e-12)
    np.testing.assert_allclose(abs(moved.T) @ V, abs(double.T) @ V, atol=1e-12)


def test_equal_rows_project_alike_wherever_they_lie():
    X = rng.standard_normal((1, 33)).astype(np.float32)
    rows = CardRows(torch.from_numpy(np.repeat(X, 1001, axis=0)))
    assert len(np.unique(rows.projected(rng.standard_normal(33)))) == 1


@pytest.mark.parametrize("kind", ["one", "codes", "targets"])
@pytest.mark.parametrize("repeated", [0, 1])
def test_rows_are_sorted_there(both, repeated, kind, monkeypatch):
    """In the order of the host, by label first; rows that may be equal are left to it."""
    X, _ = both
    X = np.vstack([X, X[:repeated]])
    labels, weights = np.zeros(len(X)), rng.random(len(X)) + 0.5
    if kind == "codes":
        labels = np.arange(len(X)) % 3
    elif kind == "targets":
        labels = np.round(rng.standard_normal(len(X)), 1)
    labels[len(X) - repeated :] = labels[:repeated]
    wanted = distinct_rows(X, labels, weights)
    orders, sort = [], CardRows.order_along

    def noted(self, direction, labels):
        orders.append(sort(self, direction, labels))
        return orders[-1]

    monkeypatch.setattr(CardRows, "order_along", noted)
    found = distinct_rows(CardRows(torch.from_numpy(X)), labels, weights)
    assert [order is None for order in orders] == [bool(repeated)]
    np.testing.assert_array_equal(found.first, wanted.first)
    np.testing.assert_array_equal(found.weight, wanted.weight)
    np.testing.assert_array_equal(found.group, wanted.group)
    weights[3] = 0.0  # left out: by the host
    distinct_rows(CardRows(torch.from_numpy(X)), labels, weights)
    assert len(orders) == 1


def test_equal_rows_are_merged(both):
    X, _ = both
    X = X[rng.integers(0, 50, 200)]
    X[::3] *= -1.0
    X[::5] = 0.0
    X[::10] = -0.0
    labels, weights = rng.integers(0, 3, 200), rng.integers(0, 3, 200).astype(float)
    wanted = distinct_rows(X, labels, weights)
    found = distinct_rows(CardRows(torch.from_numpy(X)), labels, weights)
    np.testing.assert_array_equal(X[found.first], X[wanted.first])
    np.testing.assert_array_equal(found.weight, wanted.weight)
    np.testing.assert_array_equal(found.group, wanted.group)


X = rng.standard_normal((400, 5))
X[300:] = X[:100]
LABELS = (X[:, 0] + 0.3 * rng.standard_normal(400) > 0).astype(int)
LABELS[300:] = LABELS[:100]
MACHINES = [
    mercer.SVC(kernel=Gaussian(1.5)),
    mercer.SVC(kernel="gaussian", probability=True),
    mercer.SVC(kernel=Linear()),
    mercer.SVR(kernel=Gaussian(1.5)),
    mercer.KernelRidge(0.1, kernel=Gaussian(1.5)),
    mercer.KernelRidge("loo", kernel=Gaussian([1.0, 2.0, 1.0, 2.0, 1.0])),
    mercer.KernelRidge(0.1, kernel=Polynomial(2)),
    mercer.KernelRidge(0.1, kernel=Gaussian(1.5), approximation=Nystrom(40)),
    mercer.PCA(3, kernel=Gaussian(1.5)),
    mercer.LogisticRegression(kernel=Gaussian(1.5)),
    mercer.FisherDiscriminant(kernel=Gaussian(1.5)),
    mercer.KMeans(3, kernel=Gaussian(1.5)),
    mercer.GaussianProcess(kernel=Gaussian(1.5)),
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: f"{type(m).__name__}-{m.kernel}")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fits_are_those_to_arrays(card, machine, dtype):
    rows = X.astype(dtype)
    with mercer.config(backend=None, device=None):
        wanted = machine.fit(rows, LABELS)
        said = _answers(wanted, rows)
    found = machine.fit(rows, LABELS)
    assert found.certificate_.ok
    assert not any(isinstance(value, CardRows) for value in vars(found).values())
    np.testing.assert_allclose(_answers(found, rows), said, atol=2e-3)
    np.testing.assert_allclose(_answers(pickle.loads(pickle.dumps(found)), rows), said, atol=2e-3)


@pytest.mark.parametrize("machine", [MACHINES[0], MACHINES[4], MACHINES[-1]], ids=repr)
def test_files_hold_such_machines(card, machine, tmp_path):
    machine.fit(X, LABELS)
    mercer.save(machine, tmp_path / "machine")
    with mercer.config(backend=None, device=None):
        found = _answers(mercer.load(tmp_path / "machine"), X)
    np.testing.assert_allclose(found, _answers(machine, X), atol=1e-10)


KEEPERS = [  # of training rows, or of what a card made of them
    mercer.PCA(3, kernel=Gaussian(1.5)),
    mercer.PCA(3, kernel=Gaussian(1.5), approximation=Nystrom(40)),
    mercer.KernelRidge(0.1, kernel=Gaussian(1.5), approximation=Nystrom(40)),
    mercer.GaussianProcess(kernel=Gaussian(1.5)),
    mercer.GaussianProcessClassifier(kernel=Gaussian(1.5)),
    mercer.NearestNeighbors(3),
    mercer.Perceptron(kernel=Gaussian(0.3)),
    mercer.SpectralClustering(3, neighbors=8),
    mercer.LabelPropagation(),
]


@pytest.mark.parametrize("machine", KEEPERS, ids=lambda m: f"{type(m).__name__}-{m.kernel}")
def test_fitted_machines_hold_no_rows_of_a_card(card, machine, tmp_path):
    few = np.concatenate([X[:150], X[:20]])
    found = machine.fit(few, np.append(LABELS[:150], LABELS[:20]))
    assert found.certificate_.ok  # which waits with its rows until it is read
    assert b"card_rows" not in pickle.dumps(found)
    assert not list(_card_rows(found, set()))
    said = _answers(found, X)
    mercer.save(found, tmp_path / "model.mercer")
    with mercer.config(backend=None, device=None):
        read = mercer.load(tmp_path / "model.mercer")
        np.testing.assert_allclose(_answers(read, X), said, atol=1e-6)


def _card_rows(value, seen):
    """Return rows on a card that are reached from an object of ours."""
    if isinstance(value, CardRows):
        yield value
    if id(value) in seen:
        return
    seen.add(id(value))
    ours = type(value).__module__.startswith("mercer")
    inner = vars(value).values() if ours and hasattr(value, "__dict__") else ()
    inner = value.values() if isinstance(value, dict) else inner
    for part in value if isinstance(value, list | tuple) else inner:
        yield from _card_rows(part, seen)


def _answers(machine, rows):
    for name in ("decision_function", "transform", "predict"):
        if hasattr(machine, name):
            return np.abs(getattr(machine, name)(rows[:50]))  # eigenvectors have no sign
    raise AssertionError


def test_nan_is_refused_with_its_row_and_column(card):
    bad = X.copy()
    bad[17, 3] = np.nan
    with pytest.raises(ValueError, match="first in row 17, column 3"):
        mercer.SVC(kernel=Gaussian(1.0)).fit(bad, LABELS)
    bad[17, 3] = 1e9
    with pytest.warns(UserWarning, match="differ in scale"):
        mercer.SVC(kernel=Gaussian(1.0)).fit(bad * [1.0, 1.0, 1.0, 1.0, 1e-9], LABELS)


def test_weights_mean_repetition(card):
    weights = rng.integers(0, 3, 400)
    machine = mercer.SVC(kernel=Gaussian(1.5), C=2.0)
    wanted = machine.fit(np.repeat(X, weights, axis=0), np.repeat(LABELS, weights))
    wanted = wanted.decision_function(X[:9])
    found = machine.fit(X, LABELS, weights).decision_function(X[:9])
    np.testing.assert_array_equal(found, wanted)
