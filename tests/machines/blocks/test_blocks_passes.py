"""Passes over the rows: as many for many rows as for few, so that time is linear in the rows."""

import numpy as np
import pytest

from mercer import SVC, KMeans
from mercer.blocks import ArrayBlocks
from mercer.machines.svm import blocks as screened_margin
from mercer.solvers import Status


class Counted(ArrayBlocks):
    """Blocks that count how often they are gone through."""

    passes = 0

    def parts(self):
        """Begin one more pass."""
        self.passes += 1
        return super().parts()


def rows_of(n, columns=4):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, columns))
    X[:, -1] *= rng.random(n) < 0.002  # a column that few rows have
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 3.0 * X[:, -1] + rng.standard_normal(n) > 0.3
    return X, y.astype(int)


@pytest.fixture
def few(monkeypatch):
    """Let few rows be brought together, so that small tables go the way of large ones."""
    monkeypatch.setattr(screened_margin, "_FEW", 300)


def test_passes_of_a_support_vector_machine_do_not_grow(few):
    passes = []
    for n in (1500, 40_000):
        X, y = rows_of(n)
        blocks = Counted(X, y, rows=n // 5)
        machine = SVC("linear").fit(blocks)
        assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
        assert machine.certificate_.quantities.relative_gap < 1e-8
        passes.append(blocks.passes)
    assert max(passes) <= 25 and passes[1] <= passes[0] + 8, passes


@pytest.mark.parametrize("weight", ["ones", "many"])
def test_rows_near_a_corner_are_enough(few, weight):
    X, y = rows_of(2000)
    weights = None if weight == "ones" else np.random.default_rng(1).integers(0, 4, 2000) * 0.5
    apart = SVC("linear", tol=1e-8).fit(ArrayBlocks(X, y, weights, rows=450))
    whole = SVC("linear", tol=1e-8).fit(X, y, sample_weight=weights)
    found, expected = apart.decision_function(X), whole.decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_rows_on_their_corner_go_the_longer_way(few):
    # all rows of few kinds: whatever the rounding, too many of them are near
    X, y = np.repeat([[0.0], [1.0], [2.0]], 400, axis=0), np.tile([0, 1, 1, 0], 300)
    machine = SVC("linear").fit(ArrayBlocks(X, y, rows=500))
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok


def test_passes_of_k_means_do_not_grow():
    passes = []
    for n in (2000, 40_000):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, 2)) + 3.0 * rng.integers(0, 3, (n, 1))  # clusters that touch
        blocks = Counted(X, rows=n // 4)
        machine = KMeans(3, refine=False, n_init=2).fit(blocks)
        assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
        assert machine.certificate_.quantities.reassignment_gain <= 1e-7
        passes.append(blocks.passes)
    assert passes[1] <= passes[0] + 6, passes


def test_the_nearer_of_two_answers_counts():
    # separable, with a large C: rounding ends the search a little short, and scores that were
    # added up over the steps of the other method are off by what the first weights lost
    rng = np.random.default_rng(0)
    X, normal = rng.standard_normal((1900, 9)), rng.standard_normal(9)
    y = np.where(X @ normal > 0, 1, -1)
    X += 0.2 * y[:, None] * normal / np.linalg.norm(normal)
    weights = np.where(y > 0, 1e-4, 1.0)
    machine = SVC("linear", 1e7).fit(ArrayBlocks(X, y, weights, rows=400))
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
    assert machine.certificate_.quantities.relative_gap < 1e-6


def test_weights_of_many_magnitudes(few):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 3))
    y, weights = X[:, 0] + rng.standard_normal(900) > 0, 10.0 ** rng.uniform(-8, 8, 900)
    machine = SVC("linear", 10.0).fit(ArrayBlocks(X, y, weights, rows=100))
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
