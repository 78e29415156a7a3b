"""What is kept of each row stays within the budget: in memory as far as it goes, then in a file."""

import errno
import gc
import tempfile

import numpy as np
import pytest

import mercer
from mercer import SVC, KMeans
from mercer.blocks import ArrayBlocks, Block, as_blocks
from mercer.rows.blocks import FilePosition

ROWS = np.random.default_rng(0).standard_normal((600, 3))
LABELS = (ROWS[:, 0] + 0.3 * ROWS[:, 1] > 0).astype(int)


def tripled(block):
    return 3.0 * block.X[:, 0]


def raised(block, state, by):
    return state + by, float(state.sum())


def doubled(block):
    return np.column_stack([2.0 * block.X, np.ones(len(block))])


def in_file(kept):
    return sum(isinstance(value, FilePosition) for value in kept._values)


def test_results_go_to_a_file_where_the_budget_ends():
    blocks, whole = ArrayBlocks(ROWS, rows=100), ArrayBlocks(ROWS, rows=100).start(tripled)
    assert in_file(whole) == 0
    with mercer.config(memory=8_000):  # a quarter of it is the vector of two blocks
        kept = blocks.start(tripled)
        assert 0 < in_file(kept) < len(kept) == 6
        assert kept.bytes <= 2_000
        for number in range(6):
            assert np.array_equal(kept[number], whole[number])
        new, total = blocks.step(kept, raised, 1.0)
        assert total == pytest.approx(3.0 * ROWS[:, 0].sum())
        assert in_file(new) == 6  # the old ones have the room
        del kept, whole
        gc.collect()
        assert in_file(blocks.step(new, raised, 1.0)[0]) < 6  # and gave it back


def test_rows_made_of_rows_are_kept_the_same_way():
    for memory in (None, 8_000):
        with mercer.config(memory=memory):
            made = ArrayBlocks(ROWS, LABELS, rows=100).mapped(doubled)
            assert made.n_columns == 4
            assert made.total(tripled_sum) == pytest.approx(6.0 * ROWS[:, 0].sum())
            assert np.array_equal(made.sample(600).y, LABELS)


def tripled_sum(block: Block) -> float:
    return float(tripled(block).sum())


def test_fits_whose_rows_exceed_the_budget_are_the_same():
    blocks = ArrayBlocks(ROWS, LABELS, rows=60)
    free = SVC("linear", 1.0).fit(blocks)
    with mercer.config(memory=20_000):
        tight = SVC("linear", 1.0).fit(blocks)
    np.testing.assert_allclose(tight.decision_function(ROWS), free.decision_function(ROWS))
    assert tight.certificate_.ok


def test_labels_that_are_too_many_stay_with_their_rows():
    with mercer.config(memory=30_000), pytest.warns(UserWarning, match=r"streaming\.predict"):
        machine = KMeans(2, n_init=1).fit(ArrayBlocks(ROWS, rows=60))
    assert not hasattr(machine, "labels_") and machine.certificate_.ok


def test_a_full_disk_is_said(monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with mercer.config(memory=4_000), pytest.raises(OSError, match="TMPDIR"):
        ArrayBlocks(ROWS, rows=100).start(tripled)


def test_an_array_file_cut_short_is_said(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    content = (tmp_path / "rows.npy").read_bytes()
    (tmp_path / "rows.npy").write_bytes(content[:5000])
    with pytest.raises(ValueError, match=r"rows\.npy.*cut short"):
        as_blocks(tmp_path / "rows.npy")
