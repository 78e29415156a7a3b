"""Arguments of launches are written down once: what the driver is given, without a driver."""

import ctypes

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch.svm import descents, programs  # noqa: E402 - after the skip


class Driver:
    def __init__(self, code=0):
        self.code, self.seen = code, []

    def cuLaunchKernel(self, handle, *rest):
        pointers = rest[8]
        kinds = (ctypes.c_void_p, ctypes.c_int, ctypes.c_double)
        values = [kind.from_address(p).value for kind, p in zip(kinds, pointers, strict=True)]
        self.seen.append((handle, rest[:7], values))
        return self.code


class Kernel:
    func = "handle"


class Stream:
    cuda_stream = 7


def test_the_driver_gets_grid_block_and_values(monkeypatch):
    driver, tensor = Driver(), torch.arange(3)
    monkeypatch.setattr(programs, "_driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: Stream)
    start = programs.prepared(Kernel(), [tensor, -5, 0.25], 64, 1024)
    start((2, 3, 1))
    start((4, 1, 1))
    values = [tensor.data_ptr(), -5, 0.25]
    assert driver.seen == [
        ("handle", (2, 3, 1, 64, 1, 1, 1024), values),
        ("handle", (4, 1, 1, 64, 1, 1, 1024), values),
    ]
    driver.code = 1
    with pytest.raises(RuntimeError, match="CUDA error 1"):
        start((1, 1, 1))


def test_torch_launches_where_there_is_no_driver(monkeypatch):
    seen = []
    monkeypatch.setattr(programs, "_driver", lambda: None)
    start = programs.prepared(lambda **given: seen.append(given), [1, 2.0], 32)
    start((5, 1, 1))
    assert seen == [{"grid": (5, 1, 1), "block": (32, 1, 1), "args": [1, 2.0], "shared_mem": 0}]


def test_steps_that_are_lost_to_rounding_come_to_an_end():
    progress, both = descents._Progress(), np.arange(2)
    falling = [progress.is_made(np.array([0.5**k, 1.0]), both).tolist() for k in range(3)]
    assert falling == [[True, True]] * 3
    wandering = [progress.is_made(np.array([0.2 + 0.1 * (k % 3), 1.0]), both) for k in range(501)]
    assert not wandering[-1].any()
