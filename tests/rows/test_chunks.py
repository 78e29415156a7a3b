"""Chunks of rows in threads: results in order, and errors that end the work."""

import threading

import numpy as np
import pytest

from mercer import config
from mercer.rows.chunks import chunked, gathered

ROWS = 100_001
CHUNKS = 16


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_results_are_in_order(threads):
    with config(threads=threads):
        found = chunked(lambda rows: (rows.start, rows.stop), ROWS)
        nested = chunked(lambda rows: sum(chunked(lambda r: r.stop - r.start, 20_000)), ROWS)
    assert [first for first, _ in found] == [0] + [last for _, last in found[:-1]]
    assert found[-1][1] == ROWS and len(found) == CHUNKS
    assert nested == [20_000] * CHUNKS


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, IndexError, SystemExit])
def test_an_error_in_any_thread_ends_the_work(monkeypatch, kind):
    """Chunks that no one has begun are not begun, whoever meets the error."""
    # whatever the machine has, or OMP_NUM_THREADS says
    monkeypatch.setattr("mercer.rows.chunks.thread_limit", lambda: 2)
    caller, begun, failed = threading.get_ident(), [], threading.Event()

    def work(rows):
        begun.append(rows.start)
        if threading.get_ident() != caller:
            failed.set()
            raise kind
        assert failed.wait(10)

    before = threading.active_count()
    with pytest.raises(kind):
        chunked(work, ROWS)
    assert len(begun) <= 4  # two at work, and what the caller takes before it sees the error
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_rows_are_gathered_as_by_their_index(threads):
    rng = np.random.default_rng(0)
    X, index = rng.standard_normal((ROWS, 3)), rng.integers(0, ROWS, 90_000)
    with config(threads=threads):
        np.testing.assert_array_equal(gathered(X, index), X[index])
