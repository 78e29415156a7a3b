"""A worker that is killed with all that it holds, and what travels between those that live."""

import numpy as np
import pytest
from helpers import cluster_functions as there

da = pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("distributed", reason="Dask is not installed")

from mercer.blocks import ArrayBlocks  # noqa: E402
from mercer.distributed import DaskBlocks  # noqa: E402

ROWS = np.random.default_rng(0).standard_normal((400, 50))
V = np.full(40, 0.25)


def walked(blocks, W, marker, v=V):
    kept, totals = blocks.start(there.features, W), []
    for step in range(4):
        killed_here = str(marker) if step == 2 else ""
        kept, total = blocks.step(kept, there.shifted_until_killed, v, killed_here)
        totals.append(total)
    return totals


def test_an_iteration_moves_numbers_of_the_size_of_the_centres(processes):
    blocks = DaskBlocks(da.from_array(ROWS, chunks=(100, 50)), client=processes)
    kept = blocks.start(there.features, np.ones((50, 40)))
    kept, _ = blocks.step(kept, there.shifted, V)

    def bytes_so_far():
        return sum(processes.run(there.received).values())

    before, sent = bytes_so_far(), blocks.sending.sent_bytes
    for _ in range(5):
        kept, _ = blocks.step(kept, there.shifted, V)
    each = (bytes_so_far() - before) / 5
    assert (blocks.sending.sent_bytes - sent) / 5 < 2 * V.nbytes + 500
    assert each < 10_000 < ROWS[:100].nbytes, f"{each} bytes an iteration"


def test_a_killed_worker_is_survived(processes, tmp_path):
    expected = walked(ArrayBlocks(ROWS, rows=100), np.ones((50, 40)), "")
    blocks = DaskBlocks(da.from_array(ROWS, chunks=(100, 50)), client=processes)
    found = walked(blocks, np.ones((50, 40)), tmp_path / "killed")
    assert (tmp_path / "killed").exists()
    assert np.allclose(found, expected, rtol=1e-12)


def test_large_arguments_lost_with_their_worker_are_sent_again(processes, tmp_path):
    W, v = np.ones((50, 3000)), np.full(3000, 0.01)
    assert W.nbytes > 1_000_000  # beyond what travels with the tasks
    expected = walked(ArrayBlocks(ROWS, rows=100), W, "", v)
    blocks = DaskBlocks(da.from_array(ROWS, chunks=(100, 50)), client=processes)
    found = walked(blocks, W, tmp_path / "killed", v)
    assert (tmp_path / "killed").exists()
    assert np.allclose(found, expected, rtol=1e-12)
