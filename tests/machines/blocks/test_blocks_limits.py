"""Memory stays in the budget, time limits and Ctrl-C end fits, and refusals name the remedy."""

import gc
import tracemalloc

import numpy as np
import pytest

import mercer
from mercer import (
    PCA,
    SVC,
    EnclosingBall,
    GaussianMixture,
    KernelRidge,
    KMeans,
    LogisticRegression,
    NaiveBayes,
)
from mercer.blocks import ArrayBlocks, blocks_of
from mercer.deadline import TimeLimitError
from mercer.kernels import Gaussian
from mercer.machines.svm import blocks as screened_margin
from mercer.streaming import predict

ROWS, COLUMNS, BLOCKS = 500, 20, 60
BUDGET = 1_100_000  # bytes: less than a quarter of what the rows take


def made():
    for number in range(BLOCKS):
        rng = np.random.default_rng(number)
        X = rng.standard_normal((ROWS, COLUMNS))
        yield X, X[:, 0] - 0.5 * X[:, 1] + 0.1 * rng.standard_normal(ROWS)


def labelled():
    for X, y in made():
        yield X, (y > 0).astype(int)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("machine", "rows"),
    [
        (KernelRidge(1.0), made),
        (LogisticRegression(), labelled),
        (PCA(3), made),
        (NaiveBayes(), labelled),
        (GaussianMixture(1, n_init=1), made),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_a_table_of_five_budgets_is_fitted_within_one(machine, rows):
    assert 8 * BLOCKS * ROWS * COLUMNS > 4 * BUDGET
    blocks = blocks_of(rows)
    with mercer.config(memory=BUDGET):
        first = next(iter(blocks))
        machine.fit(ArrayBlocks(first.X[:50], first.y[:50]))  # modules and caches
        gc.collect()
        tracemalloc.start()
        try:
            machine.fit(blocks)
            assert machine.certificate_.ok
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < BUDGET, f"{peak} bytes"


def test_answers_are_written_within_the_budget(tmp_path):
    machine = KernelRidge(1.0).fit(*next(made()))
    path = tmp_path / "answers.npy"
    with mercer.config(memory=BUDGET):
        tracemalloc.start()
        try:
            predict(machine, blocks_of(made), out=path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < BUDGET
    np.testing.assert_allclose(np.load(path)[:ROWS], machine.predict(next(made())[0]))


@pytest.mark.parametrize("machine", [LogisticRegression(time_limit=1), SVC("linear", time_limit=2)])
def test_a_time_limit_keeps_what_was_found(machine, monkeypatch):
    monkeypatch.setattr(screened_margin, "_FEW", 10)  # rows brought together: the way of many rows
    ticks = iter(np.arange(0, 1e6, 0.01))
    monkeypatch.setattr("mercer.deadline.clock", lambda: float(next(ticks)))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = (X[:, 0] + rng.standard_normal(400) > 0).astype(int)
    with pytest.warns(match="time limit"):
        machine.fit(ArrayBlocks(X, y, rows=20))
    assert machine.solution_.status is mercer.solvers.Status.TIME_LIMIT
    assert machine.predict(X).shape == (400,)


def test_a_limit_before_any_answer_changes_nothing(monkeypatch):
    ticks = iter(np.arange(0, 1e6, 0.1))
    monkeypatch.setattr("mercer.deadline.clock", lambda: float(next(ticks)))
    X = np.random.default_rng(0).standard_normal((400, 3))
    machine = KernelRidge(time_limit=0.5)
    with pytest.raises(TimeLimitError, match="time_limit"):
        machine.fit(ArrayBlocks(X, X[:, 0], rows=20))
    assert not hasattr(machine, "kernel_")


def test_an_interrupt_leaves_the_machine_as_it_was():
    X = np.random.default_rng(0).standard_normal((100, 3))
    machine = KernelRidge().fit(X, X[:, 0])
    before = dict(machine.__dict__)
    passes = []

    def interrupted():
        passes.append(1)
        yield X, X[:, 0]
        if len(passes) > 3:
            raise KeyboardInterrupt
        yield X, X[:, 1]

    with pytest.raises(KeyboardInterrupt):
        machine.fit(blocks_of(interrupted))
    assert machine.__dict__ == before


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (EnclosingBall(), "cannot be fitted to rows in blocks.*KernelRidge.*sample"),
        (KernelRidge(kernel=Gaussian(1.0), approximation=None), "no finite feature map.*Nystrom"),
        (KernelRidge(kernel="precomputed"), "precomputed"),
        (LogisticRegression(loss="tanh"), "loss='tanh'"),
        (LogisticRegression(penalty=0), "penalty=0"),
        (SVC("linear", nu=0.5), "nu=0.5"),
        (SVC("linear", np.inf), "finite"),
        (SVC("linear", probability=True), "probability=True"),
        (KMeans(2, balanced=True), "balanced=True"),
        (KMeans(2, init=np.zeros(100, dtype=int)), "init"),
        (NaiveBayes("cv"), "alpha='cv'"),
    ],
)
def test_what_blocks_cannot_have_is_refused(machine, message):
    X = np.random.default_rng(0).standard_normal((100, 2))
    with pytest.raises((TypeError, ValueError), match=message):
        machine.fit(ArrayBlocks(X, (X[:, 0] > 0).astype(int), rows=30))


def test_targets_are_asked_for():
    X = np.random.default_rng(0).standard_normal((100, 2))
    with pytest.raises(ValueError, match="KernelRidge needs targets"):
        KernelRidge().fit(ArrayBlocks(X))
    with pytest.raises(ValueError, match="needs labels"):
        SVC("linear").fit(ArrayBlocks(X))
    with pytest.raises(ValueError, match="only one class"):
        SVC("linear").fit(ArrayBlocks(X), np.zeros(100))
    with pytest.raises(ValueError, match="no number"):
        KernelRidge().fit(ArrayBlocks(X, np.array(["a"] * 100)))


def test_other_methods_point_to_streaming():
    X = np.random.default_rng(0).standard_normal((100, 2))
    machine = KernelRidge().fit(X, X[:, 0])
    with pytest.raises(TypeError, match=r"mercer\.streaming\.predict"):
        machine.predict(ArrayBlocks(X))


# --- hostile scales -------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e60])
@pytest.mark.parametrize("machine", [KernelRidge(0.0), PCA(2)], ids=["ridge", "pca"])
def test_scales_of_columns_do_not_matter(machine, scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3)) * [3.0, 1.0, 0.1]
    y = X @ [1.0, 2.0, 3.0]
    apart = machine.fit(ArrayBlocks(scale * X, y, rows=30))
    assert apart.certificate_.ok and apart.solution_.status.ok
    if isinstance(machine, KernelRidge):
        np.testing.assert_allclose(apart.predict(scale * X), y, rtol=1e-8, atol=1e-8)
    else:
        whole = PCA(2).fit(X)
        np.testing.assert_allclose(
            apart.transform(scale * X) / scale, whole.transform(X), rtol=1e-6
        )


def test_far_origins_cost_no_digits():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = X @ [1.0, 2.0, 3.0]
    near, far = (KernelRidge(1.0).fit(ArrayBlocks(X + t, y + t, rows=70)) for t in (0.0, 1e8))
    np.testing.assert_allclose(far.predict(X + 1e8) - 1e8, near.predict(X), atol=1e-5)
    parts = [PCA(2).fit(ArrayBlocks(X + t, rows=70)).transform(X + t) for t in (0.0, 1e8)]
    np.testing.assert_allclose(parts[1], parts[0], atol=1e-6)


def test_too_large_numbers_are_refused_with_the_row():
    X = np.ones((50, 2))
    X[33] = 1e200
    with pytest.raises(ValueError, match="row 33 of X"):
        KernelRidge().fit(ArrayBlocks(X, np.arange(50.0), rows=20))


@pytest.mark.parametrize("rows", [1, 2, 50])
def test_few_and_equal_rows(rows):
    X = np.ones((rows, 2))
    machine = KernelRidge(1.0).fit(ArrayBlocks(X, np.full(rows, 3.0)))
    np.testing.assert_allclose(machine.predict([[1.0, 1.0], [5.0, 0.0]]), 3.0)
    if rows > 1:
        assert not PCA(1).fit(ArrayBlocks(X)).transform(X).any()


def test_all_weight_on_one_row():
    X = np.random.default_rng(0).standard_normal((20, 2))
    weights = np.zeros(20)
    weights[7] = 2.0
    machine = KernelRidge(1.0).fit(ArrayBlocks(X, np.arange(20.0), weights, rows=6))
    np.testing.assert_allclose(machine.predict(X), 7.0)
    with pytest.raises(ValueError, match="only one class"):
        SVC("linear").fit(ArrayBlocks(X, np.arange(20) % 2, weights, rows=6))
