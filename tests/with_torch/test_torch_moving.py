"""Machines that are moved to a device work there, and their points stay."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import foreign_arrays, places
from mercer.backends import choose_backend
from mercer.kernels import Gaussian, Linear

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import operands  # noqa: E402 - after the skip
from mercer.backends.torch.operands import Rows  # noqa: E402

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((80, 4)), rng.standard_normal((9, 4))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(80)
LABELS = (y > 0).astype(int)
MACHINES = [
    (mercer.KernelRidge(0.1, kernel=Gaussian(2.0)), y, "predict"),
    (mercer.PCA(2, kernel=Gaussian(2.0)), None, "transform"),
    (mercer.SVC(C=2.0, kernel=Gaussian(2.0)), LABELS, "decision_function"),
    (mercer.NearestNeighbors(3), LABELS, "predict"),
    (mercer.KMeans(3, kernel=Gaussian(2.0), random_state=0), None, "predict"),
]


@pytest.fixture
def sent(monkeypatch):
    """Count the tables that are sent."""
    tables, made = [], Rows.__init__

    def init(self, rows, centre, device):
        tables.append(rows.shape)
        made(self, rows, centre, device)

    monkeypatch.setattr(operands.Rows, "__init__", init)
    return tables


@pytest.mark.parametrize(("machine", "target", "verb"), MACHINES, ids=lambda m: type(m).__name__)
def test_answers_are_the_same_and_points_are_sent_once(sent, machine, target, verb):
    given = () if target is None else (target,)
    machine.fit(X, *given)
    wanted = getattr(machine, verb)(Z)
    assert not sent
    assert mercer.to_device(machine, "cpu") is machine
    first = getattr(machine, verb)(Z)
    once = len(sent)
    again = getattr(machine, verb)(Z)
    np.testing.assert_allclose(first, wanted, atol=1e-12)
    np.testing.assert_array_equal(again, first)
    assert once > 0 and set(sent[once:]) <= {Z.shape}
    mercer.to_device(machine, None)
    sent.clear()
    np.testing.assert_array_equal(getattr(machine, verb)(Z), wanted)
    assert not sent and places.place_of(machine) is None


def test_a_fit_runs_there_and_forgets_old_points(sent):
    machine = mercer.to_device(mercer.KernelRidge(0.1, kernel=Gaussian(2.0)), "cpu")
    machine.fit(X, y)
    assert sent
    machine.predict(Z)
    assert len(places.place_of(machine).kept) == 1
    machine.fit(X[:40], y[:40])
    assert not places.place_of(machine).kept
    found = machine.predict(Z)
    wanted = mercer.KernelRidge(0.1, kernel=Gaussian(2.0)).fit(X[:40], y[:40]).predict(Z)
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_what_is_kept_ends_with_the_points():
    place = places.Place("cpu")
    array = np.ones(3)
    place.keep(array, "made")
    assert place.known(array) == "made" and place.known(np.ones(3)) is None
    del array
    assert place.known(np.ones(3)) is None and not place.kept


def test_copies_are_not_on_the_device():
    machine = mercer.to_device(mercer.KernelRidge(kernel=Gaussian(2.0)).fit(X, y), "cpu")
    machine.predict(Z)
    for other in (copy.deepcopy(machine), pickle.loads(pickle.dumps(machine)), clone(machine)):
        assert places.place_of(other) is None
    assert choose_backend().name != "torch"


def test_the_place_of_the_machine_goes_before_the_settings(sent):
    machine = mercer.to_device(mercer.KernelRidge(kernel=Gaussian(2.0)).fit(X, y), "cpu")
    with mercer.config(backend="reference"):
        machine.predict(Z)
    assert sent


def test_another_device_than_that_of_the_rows_is_refused(monkeypatch):
    machine = mercer.to_device(mercer.KernelRidge(kernel=Gaussian(2.0)).fit(X, y), "cpu")
    monkeypatch.setattr(foreign_arrays, "device_name", lambda X: "cuda:1")
    with pytest.raises(ValueError, match=r"rows are on 'cuda:1', but the machine was moved to"):
        machine.predict(torch.from_numpy(Z))


def test_tensors_of_the_processor_go_where_the_machine_is(sent):
    machine = mercer.to_device(mercer.KernelRidge(kernel=Gaussian(2.0)).fit(X, y), "cpu")
    found = machine.predict(torch.from_numpy(Z))
    assert torch.is_tensor(found) and sent


@pytest.mark.parametrize("device", ["gpu", 3, "cuda:99"])
def test_devices_that_are_not_there(device):
    machine = mercer.KernelRidge(kernel=Linear()).fit(X, y)
    with pytest.raises((ValueError, RuntimeError), match="device="):
        mercer.to_device(machine, device)
    assert places.place_of(machine) is None


def test_only_machines_are_moved():
    with pytest.raises(TypeError, match=r"to_device: machine=\[\] is no machine of Mercer"):
        mercer.to_device([], "cpu")
