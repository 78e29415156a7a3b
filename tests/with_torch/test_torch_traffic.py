"""How often work is handed to a card, and numbers travel, counted without one."""

from collections import Counter

import numpy as np
import pytest

import mercer
from mercer.backends.host_matrix import HostMatrix
from mercer.kernels import Gaussian
from mercer.solvers import Status

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import backend, device_matrix, pairs  # noqa: E402 - after the skip
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

    def descend(K, boxes, tol, max_iter, poll):
        counts["descents"] += 1
        with mercer.config(backend=None, device=None):
            return HostMatrix(K.numpy()).box_qps(boxes, tol, max_iter, poll)

    monkeypatch.setattr(Device, "is_card", True)
    monkeypatch.setattr(Device, "free", lambda self: 10**9)
    for module in (backend, device_matrix):
        monkeypatch.setattr(module, "solve_boxes", descend)
        monkeypatch.setattr(module, "can_descend", lambda boxes: True)
    monkeypatch.setattr(backend, "is_available", lambda: False)  # the interpreter is slow
    counting(TorchPairs, "__init__", "bound")
    counting(Device, "put", "sent")
    for module in (device_matrix, pairs):
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
    # K; and a sample of rows of the dozen programmes that speak for all, in float64
    assert counted["bound"] <= 13
    assert counted["sent"] <= 70
    assert counted["brought"] <= 16
    counted.clear()
    assert machine.certificate_.ok
    assert counted["bound"] == 1 and counted["brought"] == 1


def test_ridge_sends_rows_and_brings_coefficients(counted):
    X = rng.standard_normal((300, 4))
    machine = mercer.KernelRidge(0.1, kernel=Gaussian(2.0)).fit(X, X[:, 0])
    assert machine.solution_.status is Status.SOLVED
    assert counted["bound"] <= 2  # K, and the residual in float64
    assert counted["brought"] <= 4


def test_components_bring_a_product_for_each_pass(counted):
    X = rng.standard_normal((1500, 2))
    machine = mercer.PCA(4, kernel=Gaussian(1.5)).fit(X)
    assert counted["bound"] <= 2  # K, and a sample in float64
    assert counted["brought"] <= machine.solution_.iterations + 3
