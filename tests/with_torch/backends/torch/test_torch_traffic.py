"""How often work is handed to a card, and numbers travel, counted without one."""

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer.approximation import Nystrom
from mercer.backends.host import HostMatrix
from mercer.gram import LazyGram
from mercer.gram.evaluated import Source
from mercer.kernels import Gaussian
from mercer.machines.ridge import normal_equations
from mercer.problems import LinearSystem
from mercer.solvers import PrimalConjugateGradient, SketchAndProject, Status, solve

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import backend, landmarks, matrices, pairs  # noqa: E402 - after the skip
from mercer.backends.torch import device as device_arrays  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402

rng = np.random.default_rng(0)
CLASSES = 10


@pytest.fixture
def counted(monkeypatch):
    """Let the CPU pass for a card; count what would be launches and transfers."""
    counts = Counter()

    def counting(owner, name, called):
        verb = getattr(owner, name)

        def counted_verb(*arguments, **options):
            counts[called] += 1
            return verb(*arguments, **options)

        monkeypatch.setattr(owner, name, counted_verb)

    def descend(K, boxes, tol, max_iter, poll, device):
        counts["descents"] += 1
        with mercer.config(backend=None, device=None):
            return HostMatrix(K.numpy()).box_qps(boxes, tol, max_iter, poll)

    monkeypatch.setattr(Device, "is_card", True)
    monkeypatch.setattr(Device, "free", lambda self: 10**9)
    for module in (backend, matrices):
        monkeypatch.setattr(module, "solve_boxes", descend)
        monkeypatch.setattr(module, "can_descend", lambda *_: True)
    monkeypatch.setattr(backend, "is_available", lambda: False)  # the interpreter is slow
    counting(TorchPairs, "__init__", "bound")
    counting(Device, "put", "sent")
    for module in (matrices, pairs):
        counting(module, "to_host", "brought")
    mercer.backends._try.cache_clear()  # backends are made once, and this one is another
    with mercer.config(backend="torch", device="cpu"):
        yield counts
    mercer.backends._try.cache_clear()


def test_all_pairs_of_classes_are_one_launch(counted):
    y = np.arange(1200) % CLASSES
    X = rng.standard_normal((CLASSES, 4))[y] + 0.5 * rng.standard_normal((1200, 4))
    machine = mercer.SVC(C=1.0, kernel=Gaussian(1.0)).fit(X, y)
    assert machine.solution_.status is Status.SOLVED
    assert counted["descents"] == 1
    # K; and a sample of rows of the dozen programmes that speak for all, in float64, at once
    assert counted["bound"] == 2
    assert counted["sent"] <= 10
    assert counted["brought"] <= 4
    counted.clear()
    assert machine.certificate_.ok
    assert counted["bound"] == 1 and counted["brought"] == 1


def test_ridge_sends_rows_and_brings_coefficients(counted):
    X = rng.standard_normal((300, 4))
    machine = mercer.KernelRidge(0.1, kernel=Gaussian(2.0)).fit(X, X[:, 0])
    assert machine.solution_.status is Status.SOLVED
    assert counted["bound"] <= 2  # K, and the residual in float64
    assert counted["brought"] <= 4


def test_components_stay_there_until_they_are_found(counted, monkeypatch):
    """Krylov spaces lie where K does: passes bring products of vectors, none of them themselves."""
    X, brought = rng.standard_normal((1500, 2)), []

    def measured(tensor, bring=device_arrays.to_host):
        brought.append(max(tensor.shape))
        return bring(tensor)

    monkeypatch.setattr(device_arrays, "to_host", measured)
    machine = mercer.PCA(4, kernel=Gaussian(1.5)).fit(X)
    assert counted["bound"] <= 2  # K, and a sample in float64
    assert counted["brought"] <= 4
    assert len(brought) >= 4 * machine.solution_.iterations
    assert brought.count(len(X)) <= 3
    assert machine.certificate_.ok
    with mercer.config(backend=None, device=None):
        wanted = mercer.PCA(4, kernel=Gaussian(1.5)).fit(X)
    np.testing.assert_allclose(machine.solution_.value.values, wanted.solution_.value.values)


def test_spaces_without_room_there_are_held_on_the_host(counted, monkeypatch):
    monkeypatch.setattr(device_arrays.DeviceArrays, "has_room", lambda self, size: False)
    machine = mercer.PCA(4, kernel=Gaussian(1.5)).fit(rng.standard_normal((1500, 2)))
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok


@pytest.mark.parametrize("sample", [None, 300])
@pytest.mark.parametrize("bias", [True, False])
def test_rows_at_landmarks_stay_there(counted, monkeypatch, sample, bias):
    """Passes of conjugate gradients bring a few numbers for each landmark, none for a row."""
    X = rng.standard_normal((3000, 3)) + 5.0
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(3000) + 3.0
    weights = rng.integers(0, 3, 3000).astype(float)
    brought, solve = [], PrimalConjugateGradient.run

    def measured(tensor, bring=landmarks.to_host):
        brought.append(tensor.shape)
        return bring(tensor)

    monkeypatch.setattr(landmarks, "to_host", measured)
    monkeypatch.setattr("mercer.gram.build.WRITTEN_OUT", 1)
    machine = mercer.KernelRidge(1e-2, kernel=Gaussian(1.0), approximation=Nystrom(60), bias=bias)
    with mercer.config(backend=None, device=None):
        wanted = machine.fit(X, y, weights).predict(X[:9])

    def alone(self, *arguments):
        counted.clear()
        brought.clear()  # lengths of some rows, which tell the error of the landmarks
        found = solve(self, *arguments)
        assert counted["brought"] <= 3 * found.iterations + 10  # solutions with the factor
        return found

    monkeypatch.setattr(PrimalConjugateGradient, "run", alone)
    machine.set_params(solver=PrimalConjugateGradient(sample=sample)).fit(X, y, weights)
    assert machine.solution_.status is Status.SOLVED and machine.solution_.iterations > 1
    assert len(brought) >= 2 * machine.solution_.iterations
    assert {shape[0] for shape in brought} <= {1, 60}
    assert machine.certificate_.ok
    np.testing.assert_allclose(machine.predict(X[:9]), wanted, atol=1e-6)
    assert pickle.loads(pickle.dumps(machine)).predict(X[:1]).shape == (1,)


def test_blocks_of_steps_stay_there(counted, monkeypatch):
    """A step brings a few numbers for each row of its block: no matrix, and none is sent."""
    X, solver = rng.standard_normal((400, 3)), SketchAndProject(block=50)
    gram = LazyGram(Source(Gaussian(1.0).expression(), X, np.float64, True))
    problem = LinearSystem(gram, np.sin(X[:, :1]), np.array([0.5]), np.ones(400), True)
    with mercer.config(backend=None, device=None):
        wanted = solve(problem, solver).value
    travelled = []

    def measured(module, name, size):
        verb = getattr(module, name)

        def noted(*arguments, **options):
            found = verb(*arguments, **options)
            travelled.append((name, size(found)))
            return found

        monkeypatch.setattr(module, name, noted)

    for module in (matrices, pairs):
        measured(module, "to_host", np.size)
    measured(Device, "put", lambda tensor: tensor.numel())
    gram = LazyGram(Source(Gaussian(1.0).expression(), X, np.float64, True))
    found = solve(replace(problem, gram=gram), solver)
    assert found.status is Status.SOLVED
    np.testing.assert_allclose(found.value.coef, wanted.coef, atol=1e-5)
    # rows, once in float64 and once for products
    large = [size for _, size in travelled if size > 2 * len(X)]
    assert len(large) <= 5 and max(large) <= 3 * len(X)
    assert len(travelled) > 20


def test_landmarks_that_explain_one_another_are_left_out(counted):
    X = np.repeat(rng.standard_normal((40, 2)), 20, axis=0)
    machine = mercer.KernelRidge(1e-2, kernel=Gaussian(1.0), approximation=Nystrom(60))
    machine.fit(X, X[:, 0])
    assert machine.kernel_.phi.dimension <= 40 and machine.certificate_.ok


def test_squares_of_many_columns_are_made_there(counted, monkeypatch):
    monkeypatch.setattr(normal_equations, "_SENT", 7)
    E, share = rng.standard_normal((50, 7)), rng.random(50)
    wanted = E.T @ (share[:, None] * E)
    np.testing.assert_allclose(normal_equations._square(E.copy(), share), wanted, atol=1e-12)
    assert counted["sent"] > 0


def test_directions_of_classes_send_no_matrix(counted):
    y = np.arange(300) % 3
    X = rng.standard_normal((3, 4))[y] + rng.standard_normal((300, 4))
    weights = rng.integers(1, 4, 300).astype(float)
    machine = mercer.FisherDiscriminant(kernel=Gaussian(2.0))
    with mercer.config(backend=None, device=None):
        wanted = machine.fit(X, y, weights).transform(X[:9])
    counted.clear()
    machine.fit(X, y, weights)
    assert machine.certificate_.ok
    assert counted["bound"] <= 2
    np.testing.assert_allclose(machine.transform(X[:9]), wanted, atol=1e-6)
