"""Pair steps on a card: the CUDA text, compiled for a card and run as C++ by a thread alone."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from mercer.backends.boxes import Box, BoxPath, PathStep
from mercer.backends.host_matrix import HostMatrix
from mercer.backends.reference.box_paths import solve_path
from mercer.backends.reference.smo import low, on_stored, up

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch.backend import Torch  # noqa: E402
from mercer.backends.torch.boxes import descents, paths  # noqa: E402 - after the skip
from mercer.backends.torch.boxes.descent_kernel import (  # noqa: E402
    BYTES,
    FIXED,
    NAME,
    descent_text,
)
from mercer.backends.torch.boxes.sets import descend_in_sets  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 3))
K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2)).astype(np.float32)
SIGN = np.where(X[:, 0] + 0.3 * rng.standard_normal(120) > 0, 1.0, -1.0)
TARGET = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(120)
ZERO = np.zeros(120)

# what CUDA means with one thread: nobody to wait for, and nobody to hear from
SHIM = r"""
#include <cmath>
#include <cstring>
#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(x)
#define __syncthreads()
#define __ldg(p) (*(p))
#define __fdividef(a, b) ((a) / (b))
#define __shfl_xor_sync(mask, x, o) (x)
static struct { int x; } threadIdx;
static float memory[1 << 16];
static float __int_as_float(int i) { float f; std::memcpy(&f, &i, 4); return f; }
static int atomicAdd(int *p, int by) { int old = *p; *p += by; return old; }
using std::fmax; using std::fmin;
"""

svc = Box(SIGN, ZERO, np.minimum(2.0 * SIGN, 0.0), np.maximum(2.0 * SIGN, 0.0))
svr = Box(TARGET, ZERO, np.full(120, -2.0), np.full(120, 2.0), epsilon=np.full(120, 0.1))
ridge = Box(TARGET, ZERO, np.full(120, -np.inf), np.full(120, np.inf), shift=np.full(120, 0.5))
part = np.arange(10, 70)
pair = Box(
    SIGN[part],
    ZERO[part],
    np.minimum(SIGN[part], 0.0),
    np.maximum(SIGN[part], 0.0),
    rows=part,
)
stuck = Box(SIGN, ZERO, ZERO, ZERO)  # nothing can move


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    folder = tmp_path_factory.mktemp("descent")
    text = descent_text(1, tube=True, shifted=True)
    text = text.replace("extern __shared__ float memory[];", "")
    (folder / "descent.cpp").write_text(SHIM + text)
    library = folder / "descent.so"
    command = ["g++", "-O1", "-w", "-shared", "-fPIC", "-o", library, folder / "descent.cpp"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library)).descend


def descend(on_cpu, boxes, tol, limit, rounds=1):
    state = descents.State(torch.from_numpy(K), boxes)
    arrays = [state.begin, state.rows, state.diagonal, state.lower, state.upper]
    arrays += [state.epsilons, state.shifts, state.b, state.F]
    arrays += [state.finished, state.steps, state.violations]
    for _ in range(rounds):
        turn = torch.zeros(1, dtype=torch.int32)
        pointers = [ctypes.c_void_p(a.data_ptr()) for a in arrays]
        first = [
            ctypes.c_void_p(state.K.data_ptr()),
            120,
            len(boxes),
            ctypes.c_void_p(turn.data_ptr()),
        ]
        on_cpu(*first, *pointers, ctypes.c_double(tol), limit)
    return state.answers()


def objective(box, b):
    rows = np.arange(120) if box.rows is None else box.rows
    A = K[np.ix_(rows, rows)].astype(float)
    A = A if box.shift is None else A + np.diag(box.shift)
    cost = 0.0 if box.epsilon is None else box.epsilon @ np.abs(b)
    return b @ A @ b / 2 - box.gradient @ b + cost


def test_all_programmes_end_where_those_of_the_reference_do(on_cpu):
    boxes = [svc, svr, ridge, pair, stuck]
    for box, answer in zip(boxes, descend(on_cpu, boxes, 1e-4, 10**6), strict=True):
        wanted = on_stored(K, box, 1e-4, 10**6, None)
        assert (answer.b >= box.lower).all() and (answer.b <= box.upper).all()
        assert abs(answer.b.sum()) < 1e-9
        best = objective(box, wanted.b)
        assert objective(box, answer.b) <= best + 1e-5 * max(1.0, abs(best))
        if box is stuck:
            assert answer.violation == -np.inf and answer.iterations == 0
            continue
        assert answer.violation <= 1e-4 and answer.iterations > 0
        epsilon = np.zeros(len(answer.b)) if box.epsilon is None else box.epsilon
        F = wanted.gradient + 0.0
        rows = np.arange(120) if box.rows is None else box.rows
        A = K[np.ix_(rows, rows)].astype(float)
        shift = 0.0 if box.shift is None else box.shift * answer.b
        F = box.gradient - A @ answer.b - shift
        rising, falling = (
            F + up(answer.b, box.upper, epsilon),
            F + low(answer.b, box.lower, epsilon),
        )
        assert rising.max() - falling.min() < 2e-4
        np.testing.assert_allclose(answer.gradient, F, atol=1e-5)


def test_a_descent_goes_on_where_it_was_cut(on_cpu):
    whole = descend(on_cpu, [svc, svr], 1e-4, 10**6)
    cut = descend(on_cpu, [svc, svr], 1e-4, 5, rounds=400)
    for a, b in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(a.b, b.b)
        assert a.iterations == b.iterations
    assert descend(on_cpu, [svc], 1e-4, 5)[0].iterations == 5


def test_what_is_not_finite_has_no_violation(on_cpu):
    gradient = SIGN.copy()
    gradient[3] = np.nan
    box = Box(gradient, ZERO, svc.lower, svc.upper)
    assert np.isnan(descend(on_cpu, [box], 1e-3, 50)[0].violation)


@pytest.mark.parametrize("tube", [False, True])
def test_nvrtc_takes_the_text(tube):
    utils = pytest.importorskip("torch.cuda._utils")
    try:
        utils._get_gpu_rtc_library()
    except (AttributeError, OSError):
        pytest.skip("this torch has no NVRTC")
    text = descent_text(1024, tube=tube, shifted=tube)
    binary, name = utils._nvrtc_compile(text, NAME, compute_capability="90")
    assert name == NAME and binary


def test_the_host_descends_without_a_card():
    answers = Torch("cpu", Host()).box_qps(K, [svc], 1e-3, 100, None)
    assert answers == ["of the host"]


class Host:
    def box_qps(self, K, boxes, tol, max_iter, poll):
        return ["of the host"]


@pytest.mark.parametrize(
    ("boxes", "can"),
    [
        ([svc], True),
        ([svc, Box(SIGN, ZERO, ZERO, ZERO, group=np.zeros(120, dtype=np.int64))], True),
        ([Box(SIGN, ZERO, ZERO, ZERO, group=(SIGN > 0).astype(np.int64))], False),  # two sums
        ([], False),
    ],
)
def test_what_a_card_can_descend_on(monkeypatch, boxes, can):
    assert not descents.can_descend(boxes)  # too small for a card
    monkeypatch.setattr(descents, "LEAST", 1)
    assert descents.can_descend(boxes) == can


def test_programmes_too_large_for_a_block_go_in_sets(monkeypatch):
    class Card:
        shared_memory_per_block_optin = FIXED + 100 * BYTES

    def small(K, boxes, tol, max_iter, poll):
        assert all(len(box.gradient) <= 100 for box in boxes)
        return [on_stored(K.numpy(), box, tol, max_iter, poll) for box in boxes]

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Card)
    monkeypatch.setattr(descents, "descend", small)
    found = descents.solve_boxes(torch.from_numpy(K), [pair, svc], 1e-3, 10**6, None)
    assert [len(answer.b) for answer in found] == [60, 120]
    assert max(answer.violation for answer in found) <= 1e-3


@pytest.mark.parametrize("box", [svc, svr, ridge, pair], ids=["svc", "svr", "ridge", "pair"])
@pytest.mark.parametrize("size", [8, 40])
def test_sets(box, size):
    def inner(small, part, tol, steps):
        return on_stored(small.numpy(), part, tol, steps, None)

    found = descend_in_sets(torch.from_numpy(K), box, 1e-4, 10**6, None, inner, size)
    wanted = on_stored(K, box, 1e-4, 10**6, None)
    assert found.violation <= 1e-4 and found.iterations > 0
    assert (found.b >= box.lower).all() and (found.b <= box.upper).all()
    assert abs(found.b.sum()) < 1e-9
    best = objective(box, wanted.b)
    assert objective(box, found.b) <= best + 1e-4 * max(1.0, abs(best))
    rows = np.arange(120) if box.rows is None else box.rows
    A = K[np.ix_(rows, rows)].astype(float)
    shift = 0.0 if box.shift is None else box.shift * found.b
    np.testing.assert_allclose(found.gradient, box.gradient - A @ found.b - shift, atol=1e-6)
    stopped = descend_in_sets(torch.from_numpy(K), box, 1e-4, 10**6, lambda *_: True, inner, size)
    assert stopped.iterations == 0 and stopped.violation > 1e-4


# --- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("filling", [1, 128])
def test_paths_end_where_those_of_the_reference_do(monkeypatch, filling):
    monkeypatch.setattr(paths, "FILLING", filling)
    matrix, tensor = HostMatrix(K.copy()), torch.from_numpy(K)
    steps = [PathStep(bound=c, start=k - 1) for k, c in enumerate((0.1, 1.0, 5.0))]
    seen = np.arange(0, 120, 7)
    given = [
        BoxPath(svc, np.zeros(1), steps, seen),
        BoxPath(pair, np.zeros(1), steps[:2], seen),
        BoxPath(Box(SIGN, SIGN * 0.01, svc.lower, svc.upper), np.full(1, 0.3), steps, seen),
    ]

    def descend(boxes, poll):
        return [on_stored(K, box, 1e-4, 10**6, poll) for box in boxes]

    def values(path, b):
        return paths.values_at(tensor, path, b, Device("cpu"))

    found = paths.solve_paths(matrix, given, descend, None, values)
    for path, answer in zip(given, found, strict=True):
        wanted = solve_path(K, path, 1e-4, 10**6, None)
        assert (answer.violation <= 1e-4).all()
        np.testing.assert_allclose(answer.b.sum(axis=1), wanted.b.sum(axis=1), atol=1e-9)
        np.testing.assert_allclose(answer.values, wanted.values, atol=2e-3)
        np.testing.assert_allclose(answer.offsets, wanted.offsets, atol=2e-3)
    stopped = paths.solve_paths(matrix, given, descend, lambda *_: True, values)
    assert all(np.isinf(answer.violation).all() for answer in stopped)
