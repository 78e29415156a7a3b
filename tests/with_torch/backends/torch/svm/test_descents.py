"""Pair steps on a card: the CUDA text, compiled for a card and run as C++ by a thread alone."""

import shutil
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer.backends.box_programs import Box, BoxPath, PathStep, multiplier
from mercer.backends.host import HostMatrix
from mercer.backends.reference.smo import low, on_stored, solve_path, up
from mercer.gram.policy import descents_at_once

torch = pytest.importorskip("torch", reason="make test-torch")
from helpers.cuda_alone import Alone, compiled, descend_alone  # noqa: E402

from mercer.backends.torch.backend import Torch  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.matrices import DeviceMatrix  # noqa: E402
from mercer.backends.torch.svm import descents, grids, programs, rounds  # noqa: E402
from mercer.backends.torch.svm import grids as paths  # noqa: E402
from mercer.backends.torch.svm import rounds as strands  # noqa: E402
from mercer.backends.torch.svm.confirm import StoredPaths  # noqa: E402
from mercer.backends.torch.svm.cuda import FOLLOW, SOLVE, follow_text, solve_text  # noqa: E402
from mercer.backends.torch.svm.programs import on_device  # noqa: E402

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 3))
K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2)).astype(np.float32)
SIGN = np.where(X[:, 0] + 0.3 * rng.standard_normal(120) > 0, 1.0, -1.0)
TARGET = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(120)
ZERO = np.zeros(120)

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
HALF = np.where(SIGN > 0, 0.5, -0.5) / np.where(SIGN > 0, (SIGN > 0).sum(), (SIGN < 0).sum())
nu = replace(
    svc,
    gradient=-K.astype(float) @ (20.0 * HALF),
    start=20.0 * HALF,
    group=(SIGN > 0).astype(np.int64),
)  # two classes, each with its own sum
one_sided = replace(
    nu, lower=np.where(SIGN > 0, 0.0, nu.start), upper=np.maximum(nu.start, svc.upper)
)
stuck = Box(SIGN, ZERO, ZERO, ZERO)  # nothing can move


@pytest.fixture(scope="module", params=[8, 40])
def kernels(request, tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    return compiled(tmp_path_factory.mktemp("descent"), request.param)


@pytest.fixture
def on_cpu(kernels, monkeypatch):
    descend_alone(monkeypatch, *kernels)


def descend(boxes, tol, limit, poll=None):
    # texts are compiled for what variables have: an epsilon and a shift, here
    both = [
        replace(
            box,
            epsilon=np.zeros(len(box.start)) if box.epsilon is None else box.epsilon,
            shift=np.zeros(len(box.start)) if box.shift is None else box.shift,
        )
        for box in boxes
    ]
    return descents.solve_boxes(torch.from_numpy(K), both, tol, limit, poll, Device("cpu"))


def objective(box, b):
    rows = np.arange(120) if box.rows is None else box.rows
    A = K[np.ix_(rows, rows)].astype(float)
    A = A if box.shift is None else A + np.diag(box.shift)
    cost = 0.0 if box.epsilon is None else box.epsilon @ np.abs(b)
    return b @ A @ b / 2 - box.gradient @ b + cost


def test_all_programmes_end_where_those_of_the_reference_do(on_cpu):
    boxes = [svc, svr, ridge, pair, stuck]
    for box, answer in zip(boxes, descend(boxes, 1e-4, 10**6), strict=True):
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


def test_what_was_left_in_shared_memory_is_not_read(on_cpu, monkeypatch):
    wanted = descend([svc, svr, pair], 1e-4, 10**6)
    for left in (0.0, 1e30, np.inf):
        monkeypatch.setattr(Alone, "left", left)
        for answer, same in zip(descend([svc, svr, pair], 1e-4, 10**6), wanted, strict=True):
            assert answer.iterations == same.iterations
            np.testing.assert_array_equal(answer.b, same.b)


@pytest.mark.parametrize("box", [nu, one_sided], ids=["two sums", "one of them stuck"])
def test_two_sums_are_kept(on_cpu, box):
    (found,) = descend([box], 1e-4, 10**6)
    wanted = on_stored(K, box, 1e-4, 10**6, None)
    assert found.violation <= 1e-4 and found.iterations > 0
    for g in (0, 1):
        assert abs(found.b[box.group == g].sum() - box.start[box.group == g].sum()) < 1e-9
    change = K.astype(float) @ (found.b - box.start)
    np.testing.assert_allclose(found.gradient, box.gradient - change, atol=1e-9)
    best = wanted.b @ K.astype(float) @ wanted.b
    assert found.b @ K.astype(float) @ found.b <= best + 1e-4 * abs(best)


def test_a_descent_ends_at_its_limit_with_a_gradient_that_is_right(on_cpu):
    (found,) = descend([svc], 1e-6, 7)
    assert found.iterations == 7 and found.violation > 1e-6
    np.testing.assert_allclose(found.gradient, SIGN - K.astype(float) @ found.b, atol=1e-12)
    assert abs(found.b.sum()) < 1e-12


def test_whoever_is_polled_can_stop_it(on_cpu, monkeypatch):
    monkeypatch.setattr(descents, "_DESCENTS_FIRST", 1)
    seen = []
    (found,) = descend([svc], 1e-9, 10**6, lambda *told: seen.append(told) or len(seen) > 2)
    assert len(seen) == 3 and seen[-1][0] <= found.iterations and found.violation > 1e-9
    np.testing.assert_allclose(found.gradient, SIGN - K.astype(float) @ found.b, atol=1e-12)


def test_what_is_not_finite_has_no_violation(on_cpu):
    gradient = SIGN.copy()
    gradient[3] = np.nan
    box = Box(gradient, ZERO, svc.lower, svc.upper)
    assert np.isnan(descend([box], 1e-3, 50)[0].violation)


@pytest.mark.parametrize("box", [svc, svr], ids=["svc", "svr"])
@pytest.mark.parametrize("entry", [0.0, 1.0, 1e3])
def test_equal_rows_end_at_their_bounds(on_cpu, monkeypatch, box, entry):
    monkeypatch.setitem(globals(), "K", np.full((120, 120), entry, dtype=np.float32))
    (found,) = descend([box], 1e-3, 10**5)
    assert (found.b >= box.lower).all() and (found.b <= box.upper).all()
    assert abs(found.b.sum()) < 1e-9
    assert found.violation <= 1e-3 and found.iterations < 10**4


def test_targets_with_a_large_mean_keep_their_digits(on_cpu):
    box = replace(svr, gradient=TARGET + 1e6)
    (found,) = descend([box], 1e-4, 10**6)
    assert found.violation <= 1e-4
    best = objective(svr, on_stored(K, svr, 1e-4, 10**6, None).b)
    assert objective(svr, found.b) <= best + 1e-4 * abs(best)


def test_wide_tubes_about_large_targets_keep_their_digits(on_cpu):
    wide = replace(
        svr,
        gradient=1e5 * TARGET,
        lower=np.full(120, -1e6),
        upper=np.full(120, 1e6),
        epsilon=np.full(120, 3e4),
    )
    (found,) = descend([wide], 1e-3, 10**6)  # float32 has steps of 2e-3 at epsilon
    assert found.violation <= 1e-3
    best = objective(wide, on_stored(K, wide, 1e-3, 10**6, None).b)
    assert objective(wide, found.b) <= best + 1e-6 * abs(best)


@pytest.mark.parametrize("tube", [False, True])
def test_nvrtc_takes_the_texts(tube):
    utils = pytest.importorskip("torch.cuda._utils")
    try:
        utils._get_gpu_rtc_library()
    except (AttributeError, OSError):
        pytest.skip("this torch has no NVRTC")
    texts = {
        FOLLOW: follow_text(64, size=192, sums=1 + tube, tube=tube),
        SOLVE: solve_text(512, size=192, sums=1 + tube, tube=tube, shifted=tube),
    }
    for name, text in texts.items():
        binary, found = utils._nvrtc_compile(text, name, compute_capability="90")
        assert found == name and binary


def test_the_host_descends_without_a_card():
    answers = Torch("cpu", Host()).box_qps(K, [svc], 1e-3, 100, None)
    assert answers == ["of the host"]


def test_of_a_matrix_on_a_device_small_programmes_need_only_a_part(monkeypatch):
    matrix = DeviceMatrix(torch.from_numpy(K), Device("cpu"))
    few = replace(
        pair,
        rows=part[::-1][:40],
        **{
            name: getattr(pair, name)[::-1][:40] for name in ("gradient", "start", "lower", "upper")
        },
    )
    (found,) = matrix.box_qps([few], 1e-4, 10**6, None)
    (wanted,) = HostMatrix(K.copy()).box_qps([few], 1e-4, 10**6, None)
    np.testing.assert_allclose(found.b, wanted.b, atol=1e-12)
    assert "_array" not in matrix.__dict__  # all of K stayed where it is
    matrix.box_qps([svc], 1e-4, 10**6, None)
    assert "_array" in matrix.__dict__


class Host:
    def box_qps(self, K, boxes, tol, max_iter, poll):
        return ["of the host"]


@pytest.mark.parametrize(
    ("boxes", "can"),
    [
        ([svc], True),
        ([svc, Box(SIGN, ZERO, ZERO, ZERO, group=np.zeros(120, dtype=np.int64))], True),
        ([nu], True),
        ([Box(SIGN, ZERO, ZERO, ZERO, group=np.arange(120) % 3)], False),  # three sums
        ([Box(SIGN, ZERO, ZERO, ZERO, group=np.full(120, -1))], False),  # none
        ([], False),
    ],
)
def test_what_a_card_can_descend_on(monkeypatch, boxes, can):
    assert not descents.can_descend(boxes)  # too small for a card
    monkeypatch.setattr(descents, "LEAST", 1)
    assert descents.can_descend(boxes) == can


@pytest.mark.parametrize(("room", "size"), [(232448, 192), (101376, 128), (49152, 64)])
def test_sets_are_as_large_as_the_card_has_room_for(monkeypatch, room, size):
    class Card:
        shared_memory_per_block_optin = room

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Card)
    assert rounds._size_of_sets("cuda:0") == size


def test_programmes_in_strands_end_where_they_do_alone(on_cpu, monkeypatch):
    boxes = [svc, svr, ridge, pair]
    alone = [descend([box], 1e-4, 10**6)[0] for box in boxes]
    monkeypatch.setattr(strands, "_LEAST", 1)
    monkeypatch.setattr(descents, "_DESCENTS_FIRST", 1)
    monkeypatch.setattr(descents, "_ROUNDS", 1)
    monkeypatch.setattr(strands, "wait_for_all", lambda streams: None)
    monkeypatch.setattr(descents, "wait_for_all", lambda streams: None)
    monkeypatch.setattr(descents, "own_streams", lambda K: nullcontext([None] * 3))
    dealt, split = [], strands.split

    def seen(*given):
        found = split(*given)
        dealt.append([list(strand.numbers) for strand in found])
        return found

    monkeypatch.setattr(descents, "split", seen)
    for box, one, other in zip(boxes, descend(boxes, 1e-4, 10**6), alone, strict=True):
        assert one.violation <= 1e-4 and abs(one.b.sum()) < 1e-9
        best = objective(box, other.b)
        assert abs(objective(box, one.b) - best) <= 1e-5 * max(1.0, abs(best))
        rows = np.arange(120) if box.rows is None else box.rows
        F = box.gradient - K[np.ix_(rows, rows)].astype(float) @ one.b
        F -= 0.0 if box.shift is None else box.shift * one.b
        np.testing.assert_allclose(one.gradient, F, atol=1e-9)
    assert len(dealt[0]) == 3 and sorted(np.concatenate(dealt[0])) == [0, 1, 2, 3]
    assert len(dealt) > 1  # those that are left are dealt anew


def test_programmes_that_do_not_fit_at_once_take_turns(on_cpu, monkeypatch):
    def full(K, boxes):
        if len(boxes) > 1:
            raise torch.cuda.OutOfMemoryError
        return on_device(K, boxes)

    wanted = descend([svc, pair, svr], 1e-4, 10**6)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(descents, "on_device", full)
    for one, other in zip(descend([svc, pair, svr], 1e-4, 10**6), wanted, strict=True):
        np.testing.assert_allclose(one.b, other.b, atol=1e-12)


def test_descents_on_a_card_take_none_of_the_hosts_memory(monkeypatch):
    matrix = DeviceMatrix(torch.from_numpy(K), Device("cpu"))
    with mercer.config(memory=1000):
        assert descents_at_once(matrix, 120) == 1
        matrix.descends_elsewhere = True
        assert descents_at_once(matrix, 120) > 1000


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


def test_a_grid_is_made_and_solved_where_K_is(on_cpu):
    steps = [PathStep(bound=c, epsilon=e) for c in (0.1, 1.0, 5.0) for e in (0.5, 1.0)]
    seen, ones = np.arange(0, 120, 7), np.ones(120)
    given = [
        BoxPath(replace(svr, shift=0.1 * ones), np.zeros(1), steps, seen),
        BoxPath(replace(svc, epsilon=0.0 * ones, shift=ZERO), np.zeros(1), steps[:2], seen),
    ]
    assert grids.begin_at_zero(given)
    found = grids.solve_grids(
        [StoredPaths(torch.from_numpy(K), given)], 1e-4, 10**6, None, Device("cpu")
    )[0]
    for path, answer in zip(given, found, strict=True):
        wanted = solve_path(K, path, 1e-4, 10**6, None)
        assert (answer.violation <= 1e-4).all() and (answer.iterations > 0).all()
        np.testing.assert_allclose(answer.b.sum(axis=1), 0.0, atol=1e-9)
        np.testing.assert_allclose(answer.gradient, wanted.gradient, atol=2e-3)
        np.testing.assert_allclose(answer.values, wanted.values, atol=2e-3)
        np.testing.assert_allclose(answer.offsets, wanted.offsets, atol=2e-3)
    told = grids.solve_grids(
        [StoredPaths(torch.from_numpy(K), given)], 1e-4, 10**6, lambda *_: True, Device("cpu")
    )[0]
    assert all(np.isinf(answer.violation).all() for answer in told)


def test_starts_that_are_not_zero_are_no_grid():
    steps = [PathStep()]
    for box, total in ((svc, 0.3), (replace(svc, start=0.01 * SIGN), 0.0)):
        assert not grids.begin_at_zero([BoxPath(box, np.full(1, total), steps, np.arange(2))])


def test_multipliers_are_those_of_the_host():
    rng = np.random.default_rng(1)
    rising = rng.standard_normal((6, 9))
    falling = np.where(rng.random((6, 9)) < 0.3, rising, rising + 1.0)
    falling[2] = rising[2] + 1.0  # none is free
    rising[3], falling[4], rising[5], falling[5] = -np.inf, np.inf, -np.inf, np.inf
    found = programs.multipliers(torch.from_numpy(rising), torch.from_numpy(falling)).numpy()
    wanted = [multiplier(r, f) for r, f in zip(rising, falling, strict=True)]
    np.testing.assert_allclose(found, wanted, atol=1e-15)
