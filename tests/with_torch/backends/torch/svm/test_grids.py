"""Searches over scales and costs on a card: programmes of all kernels and folds in one descent."""

import shutil

import numpy as np
import pytest

import mercer
from mercer.backends.box_programs import Box, BoxPath, PathStep
from mercer.backends.reference.smo import solve_path
from mercer.expression import Exp, SqDist
from mercer.kernels import Gaussian
from mercer.resources import MemoryBudgetError

torch = pytest.importorskip("torch", reason="make test-torch")
from helpers.cuda_alone import compiled, descend_alone  # noqa: E402

from mercer.backends.torch.backend import Torch  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.matrices import DeviceMatrix  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402
from mercer.backends.torch.svm import confirm, grids  # noqa: E402
from mercer.backends.torch.svm.confirm import StoredPaths  # noqa: E402
from mercer.selection.sharing import svm  # noqa: E402

CPU = Device("cpu")
rng = np.random.default_rng(0)
X = rng.standard_normal((150, 3))
SIGN = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(150) > 0, 1.0, -1.0)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    return compiled(tmp_path_factory.mktemp("scales"), 40)


@pytest.fixture
def on_cpu(kernels, monkeypatch):
    descend_alone(monkeypatch, *kernels)


@pytest.fixture
def card(on_cpu, monkeypatch):
    """Let the CPU stand for a card: matrices stay there, and descents run on them."""
    monkeypatch.setattr(Torch, "keeps", lambda self, size: size < 1e9)
    monkeypatch.setattr(Torch, "descends_on_several", lambda self, variables, dtype: True)
    monkeypatch.setattr(
        DeviceMatrix, "_descends", lambda self, boxes: self.tensor.dtype is torch.float32
    )
    monkeypatch.setattr(svm, "SHARED_FLOAT64_ROWS", 10)


def pairs(scale, dtype=np.float32):
    return TorchPairs(Exp(-0.5 / scale**2 * SqDist()), X, None, dtype, CPU)


def path(rows, costs, seen):
    s = SIGN[rows]
    box = Box(s, np.zeros(len(s)), np.minimum(s, 0.0), np.maximum(s, 0.0), rows=rows)
    return BoxPath(box, np.zeros(1), [PathStep(bound=C) for C in costs], seen)


def two_folds(costs):
    odd = np.arange(150) % 2 == 1
    halves = np.flatnonzero(odd), np.flatnonzero(~odd)
    return [path(halves[0], costs, halves[1]), path(halves[1], costs, halves[0])]


def watched(monkeypatch):
    """Return a list of the matrices of each descent, which grows."""
    calls, solve = [], grids._solve

    def seen(blocks, *rest):
        calls.append(blocks)
        return solve(blocks, *rest)

    monkeypatch.setattr(grids, "_solve", seen)
    return calls


def test_programmes_on_several_matrices_end_where_those_of_each_do(on_cpu):
    scales, costs = (0.5, 1.0, 3.0), (0.1, 10.0)
    blocks = [StoredPaths(pairs(s).stored().tensor, two_folds(costs)) for s in scales]
    found = grids.solve_grids(blocks, 1e-4, 10**6, None, CPU)
    for block, answers in zip(blocks, found, strict=True):
        for one, answer in zip(block.paths, answers, strict=True):
            wanted = solve_path(block.K.numpy(), one, 1e-4, 10**6, None)
            assert (answer.violation <= 1e-4).all() and not answer.confirmed
            np.testing.assert_allclose(answer.values, wanted.values, atol=2e-3)
            np.testing.assert_allclose(answer.offsets, wanted.offsets, atol=2e-3)


def test_answers_on_a_rounded_matrix_are_those_of_the_exact_one(on_cpu):
    exact, costs = pairs(2.0, np.float64), (0.1, 1e3)
    K = exact.dense()
    rough = torch.from_numpy((K + 1e-6 * rng.standard_normal(K.shape)).astype(np.float32))
    rough = (rough + rough.T) / 2
    given = two_folds(costs)
    (found,) = grids.solve_grids([StoredPaths(rough, given, exact)], 1e-3, 10**6, None, CPU)
    (plain,) = grids.solve_grids([StoredPaths(rough, given)], 1e-3, 10**6, None, CPU)
    seen = []
    for one, answer, other in zip(given, found, plain, strict=True):
        assert answer.confirmed and (answer.violation <= 1e-3).all()
        rows = one.box.rows
        for s, C in enumerate(costs):
            for which, end in ((0, answer), (1, other)):
                F = one.box.gradient - K[np.ix_(rows, rows)] @ end.b[s]
                rising, falling = F[end.b[s] < C * one.box.upper], F[end.b[s] > C * one.box.lower]
                seen.append((which, rising.max() - falling.min()))
        np.testing.assert_allclose(
            answer.values, answer.b @ K[np.ix_(rows, one.evaluation_rows)], atol=1e-3
        )
    assert max(v for which, v in seen if which == 0) < 1.4e-3
    assert max(v for which, v in seen if which == 1) > 2e-3  # what rounding alone leaves


def test_gradients_are_computed_anew_only_where_rounding_could_be_seen(on_cpu, monkeypatch):
    exact, calls, costs = pairs(2.0, np.float64), [], (10.0, 100.0, 1e3)
    K, times = exact.dense(), exact.times
    rough = torch.from_numpy((K + 1e-6 * rng.standard_normal(K.shape)).astype(np.float32))
    rough = (rough + rough.T) / 2
    given = two_folds(costs)
    monkeypatch.setattr(exact, "times", lambda right: calls.append(right.shape[1]) or times(right))
    computed = []
    for unseen in (confirm._UNSEEN, 1e30):  # as it is, and as if all could be seen
        calls.clear()
        monkeypatch.setattr(confirm, "_UNSEEN", unseen)
        (found,) = grids.solve_grids([StoredPaths(rough, given, exact)], 1e-3, 10**6, None, CPU)
        computed.append(sum(calls))
        for one, answer in zip(given, found, strict=True):
            rows, box = one.box.rows, one.box
            assert (answer.violation <= 1e-3).all()
            for b, C in zip(answer.b, costs, strict=True):
                F = box.gradient - K[np.ix_(rows, rows)] @ b
                assert F[b < C * box.upper].max() - F[b > C * box.lower].min() <= 1.4e-3
    assert 0 < computed[0] < computed[1]


def test_paths_that_do_not_fit_at_once_take_turns(on_cpu, monkeypatch):
    given, calls = two_folds((0.1, 1.0)), []
    solve = grids._solve

    def full(blocks, *rest):
        calls.append(sum(len(block.paths) for block in blocks))
        if calls[-1] > 1:
            raise torch.cuda.OutOfMemoryError
        return solve(blocks, *rest)

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    blocks = [StoredPaths(pairs(s).stored().tensor, given) for s in (1.0, 2.0)]
    wanted = grids.solve_grids(blocks, 1e-4, 10**6, None, CPU)
    monkeypatch.setattr(grids, "_solve", full)
    found = grids.solve_grids(blocks, 1e-4, 10**6, None, CPU)
    assert calls == [4, 1, 1, 1, 1]
    for some, others in zip(found, wanted, strict=True):
        for one, other in zip(some, others, strict=True):
            np.testing.assert_allclose(one.b, other.b, atol=1e-12)


def test_a_card_without_room_for_one_path_says_what_it_needs(monkeypatch):
    def full(*given):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(grids, "_solve", full)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(Device, "free", lambda self: 1000)
    block = StoredPaths(pairs(1.0).stored().tensor, two_folds((0.1, 1.0)))
    with pytest.raises(MemoryBudgetError, match=r"needs .* on the device 'cpu' .* are free"):
        grids.solve_grids([block], 1e-4, 10**6, None, CPU)


def test_scales_and_costs_are_judged_in_one_descent(card, monkeypatch):
    y = SIGN > 0
    grid = {"kernel__scale": [0.5, 1.0, 3.0], "C": [0.1, 1.0, 100.0]}
    wanted = mercer.tune(mercer.SVC(kernel=Gaussian(1.0)), X, y, grid=grid, cv=4)
    calls, solve = [], grids._solve
    monkeypatch.setattr(
        grids, "_solve", lambda blocks, *r: calls.append(blocks) or solve(blocks, *r)
    )
    with mercer.config(backend="torch", device="cpu"):
        found = mercer.tune(mercer.SVC(kernel=Gaussian(1.0)), X, y, grid=grid, cv=4)
    assert [len(blocks) for blocks in calls] == [3] and len(calls[0][0].paths) == 4
    key = "mean_test_score"
    np.testing.assert_allclose(found.cv_results[key], wanted.cv_results[key], atol=0.02)
    assert found.best_params == wanted.best_params


def test_kernels_share_a_card_as_far_as_it_has_room(card, monkeypatch):
    y = SIGN > 0
    monkeypatch.setattr(Torch, "keeps", lambda self, size: size < 2.5 * 4 * 150**2)
    monkeypatch.setattr(svm, "_COPIES", 0)
    calls, solve = [], grids._solve
    monkeypatch.setattr(
        grids, "_solve", lambda blocks, *r: calls.append(blocks) or solve(blocks, *r)
    )
    grid = {"kernel__scale": [0.5, 1.0, 2.0, 3.0, 4.0], "C": [1.0, 10.0]}
    with mercer.config(backend="torch", device="cpu"):
        found = mercer.tune(mercer.SVC(kernel=Gaussian(1.0)), X, y, grid=grid, cv=3)
    assert sorted(len(blocks) for blocks in calls) == [1, 1, 1, 2, 2]  # the last, fold by fold
    assert np.isfinite(found.cv_results["mean_test_score"]).all()


def test_descents_that_find_nothing_more_are_left_to_the_host(on_cpu, monkeypatch):
    seen = []
    monkeypatch.setattr(confirm, "descend", lambda *a, **k: (seen.append(k), (0, 0))[1])
    exact = pairs(2.0, np.float64)
    rough = torch.from_numpy((exact.dense() + 1e-4 * np.eye(150)).astype(np.float32))
    (found,) = grids.solve_grids(
        [StoredPaths(rough, two_folds((1e3,)), exact)], 1e-3, 10**6, None, CPU
    )
    assert len(seen) == 1 and any((answer.violation > 1e-3).any() for answer in found)


TARGET = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(150)
GRIDS = {
    "pairs of classes": (mercer.SVC(), np.digitize(X[:, 0], [-0.5, 0.5]), {"C": [0.1, 10.0]}),
    "shares": (mercer.SVC(nu=0.5), SIGN > 0, {"nu": [0.3, 0.5]}),
    "tubes": (mercer.SVR(), TARGET, {"C": [0.1, 10.0], "epsilon": [0.01, 0.3]}),
}


@pytest.mark.parametrize("name", GRIDS)
def test_other_machines_are_judged_alike(card, name):
    machine, y, grid = GRIDS[name]
    machine.set_params(kernel=Gaussian(1.0))
    grid = {"kernel__scale": [0.5, 2.0], **grid}
    wanted = mercer.tune(machine, X, y, grid=grid, cv=3)
    with mercer.config(backend="torch", device="cpu"):
        found = mercer.tune(machine, X, y, grid=grid, cv=3)
    key = "mean_test_score"
    np.testing.assert_allclose(found.cv_results[key], wanted.cv_results[key], atol=0.02)
