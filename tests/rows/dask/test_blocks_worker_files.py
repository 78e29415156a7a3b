"""Workers that read files themselves: the rows, samples and answers of one machine."""

import warnings

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import mercer
from mercer import KernelRidge
from mercer.blocks import FileBlocks
from mercer.distributed import ClusterError, WorkerFileBlocks, on_cluster
from mercer.rows.dask.blocks import FilesThere
from mercer.rows.file_blocks import sampled_table

RNG = np.random.default_rng(0)
N = 4000
A, B = RNG.normal(size=(2, N))
TOWN = RNG.choice(["Ulm", '"Bern\nCity"', "Bonn"], N)
Y = A - 2.0 * B + (TOWN == "Ulm") + 0.1 * RNG.normal(size=N)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("shared") / "towns.csv"
    lines = [f"{a:.6f},{b:.6f},{t},{y:.6f}" for a, b, t, y in zip(A, B, TOWN, Y, strict=True)]
    path.write_text("a,b,town,y\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr("mercer.rows.dask.blocks._LEAST", 1 << 13)


def test_fits_to_files_that_workers_read(processes, file):
    here = FileBlocks(file, target="y", prepare=True)
    there = WorkerFileBlocks(file, target="y", prepare=True, client=processes)
    assert len(there.there.pieces) >= 8
    assert there.count() == N
    one, other = (KernelRidge(0.1).fit(blocks) for blocks in (here, there))
    assert other.certificate_.ok
    np.testing.assert_allclose(other._expansion.weights, one._expansion.weights, rtol=1e-8)


def test_workers_draw_the_rows_that_one_machine_draws(client, file):
    here = FileBlocks(file, prepare=True)
    there = FilesThere([file], here.schema, client)
    expected, found = sampled_table(here.tables(), 500, 3), there.sample(500, 3)
    for name in expected.columns:
        np.testing.assert_array_equal(found[name], expected[name])


def test_tables_past_memory_are_fitted_on_the_cluster(client, file, monkeypatch):
    monkeypatch.setattr("mercer.fitting.rows.exceeds_memory", lambda path: True)
    monkeypatch.setattr("mercer.rows.dask.blocks._LEAST", 1 << 10)
    lines = file.read_text().splitlines(keepends=True)
    few = file.with_name("few.csv")
    few.write_text("".join(lines[: next(k for k in range(300, 400) if "Ulm" in lines[k]) + 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        here = mercer.fit(few, "y", machine=KernelRidge(0.1))
        with on_cluster(client):
            there = mercer.fit(few, "y", machine=KernelRidge(0.1))
    table = mercer.data.read(few).drop("y")
    np.testing.assert_allclose(there.predict(table), here.predict(table), rtol=1e-6)
    assert there.certificate.ok
    assert any("workers of the cluster read" in note for note in there.notes)


def test_a_file_that_a_worker_lacks_is_said(client, file, monkeypatch):
    def lost(piece):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("mercer.rows.dask.blocks.quotes_in", lost)
    with pytest.raises(ClusterError, match=r"worker at .* cannot read .*towns\.csv.*No such file"):
        WorkerFileBlocks(file, target="y", prepare=True, client=client)


def test_what_is_refused(client, file):
    with pytest.raises(KeyError, match="no column 'z'"):
        WorkerFileBlocks(file, target="z", client=client)
    with pytest.raises(TypeError, match="must be a TablePreparation"):
        WorkerFileBlocks(file, prepare=3, client=client)
    with pytest.raises(TypeError, match="column 'town' holds categories"):
        WorkerFileBlocks(file, target="y", client=client)
