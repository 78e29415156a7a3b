"""Machines that are moved to a device work there, and their points stay."""

import copy
import pickle
import warnings
from threading import Event

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer.backends import choose_backend
from mercer.kernels import Gaussian, Linear
from mercer.rows import devices as places
from mercer.rows import foreign

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import evaluate  # noqa: E402 - after the skip
from mercer.backends.torch import pairs as pairs_module  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.evaluate import CenteredRows  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402

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
    tables, made = [], CenteredRows.__init__

    def init(self, rows, centre, device):
        tables.append(rows.shape)
        made(self, rows, centre, device)

    monkeypatch.setattr(evaluate.CenteredRows, "__init__", init)
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
    place = places.DeviceContext("cpu")
    array = np.ones(3)
    place.keep(array, "form", "made")
    assert place.known(array, "form") == "made" and place.known(np.ones(3), "form") is None
    del array
    assert place.known(np.ones(3), "form") is None and not place.kept


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
    monkeypatch.setattr(foreign, "device_name", lambda X: "cuda:1")
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


# --- several devices, and settings that no backend can follow ------------------------------------


def test_tables_of_the_processor_may_be_shared_by_several_devices():
    K = Gaussian(2.0)(X, Z)
    with mercer.config(backend="torch", device="cpu,cpu"):
        V = np.ones((len(Z), 2))
        found = choose_backend().pairs(Gaussian(2.0).expression(), X, Z, np.float64).matmul(V)
    np.testing.assert_allclose(found, K @ V, atol=1e-12)


def test_what_is_interrupted_is_not_waited_for(monkeypatch):
    """A product on several devices that takes for ever is left alone after Ctrl-C."""
    ended, looks = Event(), []

    def endless(self, V):
        ended.wait(60)
        return np.zeros((self.shape[0], V.shape[1]))

    def press():
        looks.append(1)
        raise KeyboardInterrupt

    with mercer.config(backend="torch", device="cpu,cpu"):
        pairs = choose_backend().pairs(Gaussian(2.0).expression(), X, Z, np.float64)
        pairs._shares  # noqa: B018 - the rows are sent
        monkeypatch.setattr(TorchPairs, "matmul", endless)
        monkeypatch.setattr("mercer.deadline.check", press)
        with pytest.raises(KeyboardInterrupt):
            pairs.matmul(np.ones((len(Z), 1)))
    assert looks and not ended.is_set()
    ended.set()


def test_failures_on_one_of_several_devices_are_told(monkeypatch):
    def failing(self, V):
        raise FloatingPointError("on one device")

    with mercer.config(backend="torch", device="cpu,cpu"):
        pairs = choose_backend().pairs(Gaussian(2.0).expression(), X, Z, np.float64)
        monkeypatch.setattr(TorchPairs, "matmul", failing)
        with pytest.raises(FloatingPointError, match="one device"):
            pairs.matmul(np.ones((len(Z), 1)))


def test_rows_on_one_of_several_configured_cards_are_taken(monkeypatch):
    monkeypatch.setattr(foreign, "device_name", lambda X: "cuda:1")
    rows = {"X": torch.zeros(3, 2)}
    with mercer.config(backend="torch", device="cuda:0,cuda:1"):
        assert foreign._one_device("PCA.fit", rows)[1] == "cuda:1"
    with (
        mercer.config(backend="torch", device="cuda:0,cuda:2"),
        pytest.raises(ValueError, match="cuda:1"),
    ):
        foreign._one_device("PCA.fit", rows)


def test_one_array_is_kept_in_each_of_its_forms(sent):
    """Points that are compared by distances and by products have a centre, and have none."""
    machine = mercer.KernelRidge(0.1, Gaussian(2.0) + Linear()).fit(X, y)
    mercer.to_device(machine, "cpu")
    machine.predict(Z)
    sent.clear()
    machine.predict(Z)
    assert set(sent) == {Z.shape}


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_products_that_a_processor_does_not_have_are_refused(backend):
    with (
        mercer.config(backend=backend, products="float16"),
        pytest.raises(ValueError, match="is for the torch backend"),
    ):
        mercer.KernelRidge(0.1, Gaussian(2.0)).fit(X, y)


def test_short_numbers_of_torch_are_read_and_quantized_ones_refused():
    wanted = torch.from_numpy(X).to(torch.float8_e4m3fn)
    found = foreign.on_host(wanted)
    np.testing.assert_array_equal(found, wanted.float().numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch is about to give them up
        tensor = torch.quantize_per_tensor(torch.from_numpy(X).float(), 0.1, 0, torch.qint8)
    with pytest.raises(TypeError, match="dequantize"):
        foreign.on_host(tensor)


def test_a_card_that_fills_between_asking_and_sending_leaves_matrices_to_the_host(monkeypatch):
    def full(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    K = Gaussian(2.0)(X, X)
    with mercer.config(backend="torch", device="cpu"):
        backend = choose_backend()
        monkeypatch.setattr(Device, "put", full)
        np.testing.assert_array_equal(backend.stored(K.copy()).dense(), K)


def test_operands_without_room_leave_products_to_blocks(monkeypatch):
    def full(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(pairs_module, "fuse", full)
    made = TorchPairs(Gaussian(2.0).expression(), X, Z, np.float32, Device("cpu"), fused=True)
    wanted = Gaussian(2.0)(X, Z) @ np.ones((len(Z), 1))
    np.testing.assert_allclose(made.matmul(np.ones((len(Z), 1))), wanted, rtol=1e-5)
