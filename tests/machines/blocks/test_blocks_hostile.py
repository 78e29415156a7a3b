"""Blocks as they come: empty, of one row, of other types, without weight, cut off, interrupted."""

import warnings

import numpy as np
import pytest
from helpers.block_machines import block_machines

import mercer
from mercer import PCA, SVC, KernelRidge, KMeans, LogisticRegression, NaiveBayes
from mercer.approximation import Nystrom
from mercer.blocks import ArrayBlocks, blocks_of
from mercer.kernels import Gaussian
from mercer.machines.svm.blocks_interior_point import NearBlocks, NearRows

RNG = np.random.default_rng(0)
X = np.abs(np.concatenate([RNG.standard_normal((30, 3)), RNG.standard_normal((30, 3)) + 3.0]))
LABELS = np.repeat([0, 1], 30)
LABELS[:2] = 1
Y = X @ [1.0, 2.0, 3.0]
KERNEL = Nystrom(10).of(Gaussian(2.0), X)
MACHINES = block_machines(KERNEL, Y, LABELS)
every = pytest.mark.parametrize("name", MACHINES)


def answers(machine):
    return machine.transform(X) if isinstance(machine, PCA) else machine.predict(X)


def cut(name, where, dtypes=(np.float64,)):
    """Return blocks that end at some rows; equal ends make empty blocks."""
    y = MACHINES[name][1]

    def parts():
        for number, (a, b) in enumerate(zip([0, *where], [*where, len(X)], strict=True)):
            rows = X[a:b].astype(dtypes[number % len(dtypes)])
            yield rows if y is None else (rows, y[a:b])

    return blocks_of(parts)


@every
def test_empty_blocks_and_blocks_of_one_row(name):
    machine, y = MACHINES[name]
    expected = answers(machine.fit(ArrayBlocks(X, y)))
    found = machine.fit(cut(name, [0, 1, 2, 2, 2, 31, 60, 60]))
    assert found.solution_.status.ok and found.certificate_.ok
    np.testing.assert_allclose(answers(found), expected, rtol=1e-6, atol=1e-6)


@every
def test_blocks_without_weight_are_not_there(name):
    machine, y = MACHINES[name]
    weights = np.repeat([0.0, 1.0, 1.0, 0.0], 15)
    found = machine.fit(ArrayBlocks(X, y, weights, rows=15))
    assert found.certificate_.ok
    part = slice(15, 45)
    expected = machine.fit(ArrayBlocks(X[part], None if y is None else y[part]))
    np.testing.assert_allclose(answers(found), answers(expected), rtol=1e-6, atol=1e-6)


@every
def test_an_interrupt_between_blocks_leaves_the_machine_as_it_was(name):
    machine, y = MACHINES[name]
    machine = machine.fit(ArrayBlocks(X, y, rows=20))
    before, passes = dict(vars(machine)), []

    def interrupted():
        passes.append(1)
        for a in (0, 30):
            if a and len(passes) > 2:
                raise KeyboardInterrupt
            rows = slice(a, a + 30)
            yield X[rows] if y is None else (X[rows], y[rows])

    with pytest.raises(KeyboardInterrupt):
        machine.fit(blocks_of(interrupted))
    assert vars(machine) == before


@every
def test_a_gap_in_the_last_block_is_named(name):
    machine, y = MACHINES[name]
    bad = X.copy()
    bad[-1, 1] = np.nan
    with pytest.raises(ValueError, match=r"block 2.*NaN"):
        machine.fit(ArrayBlocks(bad, y, rows=20))


@every
def test_models_of_blocks_are_saved_and_loaded(name, tmp_path):
    machine, y = MACHINES[name]
    found = machine.fit(ArrayBlocks(X, y, rows=20))
    mercer.save(found, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(answers(again), answers(found))
    assert again.solution_.status is found.solution_.status


def test_labels_in_one_block_only():
    y = np.zeros(60, dtype=int)
    y[-3:] = 1
    for machine in (SVC("linear"), LogisticRegression(), NaiveBayes(kinds="gaussian")):
        found = machine.fit(ArrayBlocks(X, y, rows=20))
        assert found.classes_.tolist() == [0, 1] and found.certificate_.ok


@pytest.mark.parametrize("weight", [1e-200, 1e-20, 1e6])
def test_tiny_and_large_weights_of_a_support_vector_machine(weight):
    found = SVC("linear").fit(ArrayBlocks(X, LABELS, np.full(60, weight), rows=20))
    assert found.solution_.status.ok and found.certificate_.ok


def test_a_far_origin_of_a_support_vector_machine():
    near = SVC("linear").fit(ArrayBlocks(X, LABELS, rows=20))
    far = SVC("linear").fit(ArrayBlocks(X + 1e6, LABELS, rows=20))
    assert far.solution_.status.ok and far.certificate_.ok
    np.testing.assert_allclose(far.decision_function(X + 1e6), near.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kinds", [1, 2])
@pytest.mark.parametrize("weights", [None, np.tile([1.0, 0.0, 2.0], 14)], ids=["ones", "some"])
def test_copies_of_rows_are_spread_over_clusters_as_in_memory(kinds, weights):
    rows = np.tile([[0.0, 1.0], [5.0, 5.0]][:kinds], (42 // kinds, 1))
    with pytest.warns(UserWarning, match=f"only {kinds} rows differ"):
        here = KMeans(4).fit(rows, sample_weight=weights)
    with pytest.warns(UserWarning, match=f"only {kinds} rows differ"):
        apart = KMeans(4).fit(ArrayBlocks(rows, None, weights, rows=10))
    for found in (here, apart):
        assert found.solution_.status.ok and found.certificate_.ok
        assert (found.cluster_sizes_ > 0).all()
        ones = np.ones(42) if weights is None else weights
        sizes = np.bincount(found.labels_, ones, minlength=4)
        np.testing.assert_allclose(sizes, found.cluster_sizes_)
        np.testing.assert_allclose(found.transform(rows).min(axis=1), 0.0, atol=1e-7)


def test_rows_near_a_corner_are_dropped_as_soon_as_they_are_too_many():
    none = np.zeros(0)
    part = NearRows(0, none, np.zeros((3, 1)), np.ones(3), np.ones(3), none, 0.0, 0.0)
    one = NearBlocks((part,), 7)
    assert len((one + one).parts) == 2
    assert (one + one + one).parts is None
    assert (NearBlocks(None, 7) + one).parts is None


def test_types_that_differ_between_blocks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="block 1"):
            KernelRidge(0.1).fit(cut("KernelRidge", [20, 40], (np.float64, np.float32)))
