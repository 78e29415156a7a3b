"""The contract of rows in blocks, on arrays."""

import numpy as np
import pytest

from mercer.blocks import ArrayBlocks, Largest, Least


def squares(block, shift):
    return len(block), ((block.X - shift) ** 2).sum(axis=0)


def counter(block):
    return np.zeros(len(block))


def counted(block, kept, by):
    return kept + by, float(kept.sum())


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((17, 3))


@pytest.mark.parametrize("rows", [1, 4, 17, 100])
def test_sums_do_not_depend_on_the_blocks(X, rows):
    n, total = ArrayBlocks(X, rows=rows).total(squares, 0.5)
    assert n == 17
    np.testing.assert_allclose(total, ((X - 0.5) ** 2).sum(axis=0), rtol=1e-13)


def test_what_is_kept_stays_with_its_block(X):
    blocks = ArrayBlocks(X, rows=5)
    kept = blocks.start(counter)
    kept, first = blocks.step(kept, counted, 1.0)
    _, second = blocks.step(kept, counted, 1.0)
    assert (first, second) == (0.0, 17.0)


def test_sums_do_not_change_what_blocks_return(X):
    ArrayBlocks(X, rows=5).total(lambda block: block.X[0])
    assert (X == np.random.default_rng(0).standard_normal((17, 3))).all()


def test_a_sample_has_rows_that_count(X):
    weights = (np.arange(17) % 2).astype(float)
    blocks = ArrayBlocks(X, np.arange(17), weights, rows=5)
    found = blocks.sample(4, 0)
    assert len(found) == 4 and (found.y % 2 == 1).all()
    np.testing.assert_array_equal(found.X, X[found.y])
    assert len(blocks.sample(100, 0)) == 8
    other = ArrayBlocks(X, np.arange(17), weights, rows=2).sample(4, 0)
    np.testing.assert_array_equal(found.y, other.y)


def test_least_and_largest():
    assert (Least(2.0) + Least(1.0)).value == 1.0
    assert (Largest(2.0) + Largest(1.0)).value == 2.0
    assert np.isnan((Largest(1.0) + Largest(np.nan) + Largest(3.0)).value)
