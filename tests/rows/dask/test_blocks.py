"""Blocks on a cluster: the same sums as in memory, and what is refused."""

import numpy as np
import pytest
from helpers import cluster_functions as there

da = pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("distributed", reason="Dask is not installed")

from mercer import deadline  # noqa: E402
from mercer.blocks import ArrayBlocks, as_blocks  # noqa: E402
from mercer.distributed import ChunkBlocks, ClusterError, DaskBlocks, running_client  # noqa: E402

ROWS = np.random.default_rng(0).standard_normal((60, 3))


def chunked(rows=ROWS, size=20):
    return da.from_array(rows, chunks=(size, *rows.shape[1:]))


def test_sums_are_those_of_rows_in_memory(client):
    blocks = DaskBlocks(chunked(), chunked(ROWS[:, 0]), client=client)
    n, K = blocks.total(there.products)
    assert (n, blocks.n_rows, blocks.n_columns) == (60, 60, 3)
    assert np.allclose(K, ROWS.T @ ROWS, rtol=1e-13)
    assert blocks.gather(there.first_rows) == [0, 20, 40]
    drawn, same = blocks.sample(7, 1), ArrayBlocks(ROWS, ROWS[:, 0], rows=20).sample(7, 1)
    assert np.array_equal(drawn.X, same.X) and np.array_equal(drawn.y, same.y)


def test_state_stays_on_the_workers(client):
    blocks, here = DaskBlocks(chunked(), client=client), ArrayBlocks(ROWS, rows=20)
    W, v = np.ones((3, 2)), np.array([1.0, -2.0])
    kept, local = blocks.start(there.features, W), here.start(there.features, W)
    for _ in range(3):
        kept, total = blocks.step(kept, there.shifted, v)
        local, expected = here.step(local, there.shifted, v)
        assert total == pytest.approx(expected, rel=1e-12)


def test_many_blocks_are_added_in_a_tree(client):
    blocks = DaskBlocks(chunked(size=3), client=client)
    assert sorted(b for group in blocks.groups for b in group) == list(range(20))
    assert np.allclose(blocks.total(there.products)[1], ROWS.T @ ROWS, rtol=1e-13)


def test_blocks_lie_evenly_on_the_workers(client):
    one = min(client.scheduler_info()["workers"])
    here = client.scatter(list(ROWS.reshape(6, 10, 3)), workers=[one], hash=False)
    import dask.delayed

    parts = [da.from_delayed(dask.delayed(part), (10, 3), float) for part in here]
    blocks = DaskBlocks(da.concatenate(parts), client=client)
    assert sorted(map(len, blocks.groups)) == [3, 3]
    assert blocks.gather(there.first_rows) == [0, 10, 20, 30, 40, 50]
    assert np.allclose(blocks.total(there.products)[1], ROWS.T @ ROWS, rtol=1e-13)


def test_a_sum_does_not_change_what_is_kept(client):
    blocks = DaskBlocks(chunked(), client=client)
    assert np.array_equal(blocks.total(there.zeros), np.zeros(3))
    assert np.array_equal(blocks.total(there.zeros), np.zeros(3))


def test_chunks_of_unknown_size_and_empty_ones(client):
    X = chunked()
    filtered = X[X[:, 0] > 100.0]  # nothing, and Dask does not know it
    some = da.concatenate([filtered, X[X[:, 1] > 0]])
    blocks = DaskBlocks(some, client=client)
    assert blocks.n_rows == int((ROWS[:, 1] > 0).sum())
    firsts = blocks.gather(there.first_rows)
    assert firsts[0] == 0 and len(firsts) == 3
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        DaskBlocks(filtered, client=client)


def test_data_frames_have_names(client):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    frame = dd.from_pandas(table, npartitions=3)
    blocks = DaskBlocks(frame[["a", "b"]], frame["c"], client=client)
    assert blocks.names == ("a", "b") and blocks.n_rows == 60
    assert np.allclose(blocks.sample(60).y, ROWS[:, 2])
    frame["d"] = "text"
    with pytest.raises(TypeError, match="column 'd' of X"):
        DaskBlocks(frame, client=client)


def test_targets_beside_the_rows(client):
    blocks = DaskBlocks(chunked(), client=client)
    weights = np.arange(60.0)
    with_both = blocks.with_targets(ROWS[:, 0], weights)
    assert np.array_equal(with_both.sample(100).y, ROWS[1:, 0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        blocks.with_targets(ROWS[:5, 0])
    with pytest.raises(ValueError, match="must be finite and nonnegative"):
        blocks.with_targets(weights=-weights).total(len)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (da.from_array(ROWS, chunks=(20, 1)), None, r"X\.rechunk\(\{1: -1\}\)"),
        (chunked(ROWS[:, 0]), None, "two dimensions"),
        (chunked(), chunked(ROWS[:30, 0]), "inconsistent numbers of samples"),
        (chunked()[chunked()[:, 0] > 0], ROWS[:, 0], "sizes of the chunks of X are not known"),
        (chunked()[chunked()[:, 0] > 0], chunked(ROWS[:, 0], 30), "compute_chunk_sizes"),
    ],
)
def test_collections_that_are_refused(client, X, y, words):
    with pytest.raises(ValueError, match=words):
        DaskBlocks(X, y, client=client)


def test_a_bad_block_is_named(client):
    bad = ROWS.copy()
    bad[45, 1] = np.nan
    with pytest.raises(ValueError, match=r"block 2 contains NaN.*row 5 of the block"):
        DaskBlocks(chunked(bad), client=client)
    unequal = da.concatenate([chunked(ROWS.astype("float32")), chunked(ROWS)])
    as_if = da.Array(unequal.dask, unequal.name, unequal.chunks, dtype="float32")
    mixed = as_if.map_blocks(lambda x: x.astype("float64"), dtype="float32")
    with pytest.raises(ValueError, match=r"block \d of X holds float64.*says float32"):
        DaskBlocks(mixed, client=client)


def test_errors_of_functions_come_back(client):
    with pytest.raises(ArithmeticError, match=r"row \d+"):
        DaskBlocks(chunked(), client=client).gather(there.failing)


def test_a_time_limit_holds_and_takes_work_back(client):
    blocks = DaskBlocks(chunked(size=5), client=client)
    with pytest.raises(deadline.TimeLimitError), deadline.within(0.2, "test"):
        blocks.total(there.slow, 0.5)
    assert blocks.total(len) == 60


def test_without_a_client_chunks_come_one_by_one():
    found = as_blocks(chunked(), chunked(ROWS[:, 0]))
    assert isinstance(found, ChunkBlocks) and found.total(len) == 60
    with pytest.raises(ClusterError, match="no Dask client is running"):
        running_client()
    with pytest.raises(TypeError, match=r"must be a distributed\.Client"):
        running_client("tcp://127.0.0.1:8786")


def test_a_closed_client_is_said(client):
    from distributed import Client

    with Client(client.scheduler.address, set_as_default=False) as closed:
        blocks = DaskBlocks(chunked(), client=closed)
    with pytest.raises(ClusterError, match="closed"):
        blocks.total(len)
    with pytest.raises(ClusterError, match="closed"):
        DaskBlocks(chunked(), client=closed)
