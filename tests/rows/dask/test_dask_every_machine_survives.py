"""Workers that go in the middle of a fit, with all that they hold: for every machine."""

import logging

import numpy as np
import pytest
from helpers import cluster_functions as there
from helpers.cluster_machines import MACHINES, X, named
from sklearn.base import clone

da = pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("distributed", reason="Dask is not installed")

from mercer import PCA, LogisticRegression  # noqa: E402
from mercer.blocks import ArrayBlocks  # noqa: E402
from mercer.deadline import TimeLimitError  # noqa: E402
from mercer.rows.dask import cluster as waiting  # noqa: E402
from mercer.rows.dask.cluster import ClusterError  # noqa: E402

TASK = 4  # of a worker: passes have three or four, so that something is held by then


@pytest.fixture(scope="module")
def cluster():
    from distributed import Client, LocalCluster

    options = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client


def fitted_while_workers_go(cluster, machine, y, most, marker):
    """Fit while workers go; the cluster has two again afterwards."""
    cluster, client = cluster
    marker.mkdir()
    plugin = there.ClosedAt(TASK, most, marker)
    client.register_plugin(plugin)
    try:
        with client.as_current():
            return machine.fit(
                da.from_array(X, chunks=(20, 2)), None if y is None else da.from_array(y, chunks=20)
            )
    finally:
        client.unregister_worker_plugin(plugin.name)
        gone = [name for name, worker in cluster.workers.items() if worker.status.name == "closed"]
        for name in gone:
            cluster.workers.pop(name)
            cluster.worker_spec.pop(name)
        cluster.scale(2)
        client.wait_for_workers(2, timeout=10)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", MACHINES, ids=named)
def test_a_worker_that_goes_changes_no_answer(cluster, tmp_path, case):
    machine, y = case
    here = clone(machine).fit(ArrayBlocks(X, y, rows=20))
    found = fitted_while_workers_go(cluster, clone(machine), y, 1, tmp_path / "gone")
    assert len(list((tmp_path / "gone").iterdir())) == 1
    assert found.solution_.status is here.solution_.status and found.certificate_.ok
    method = "transform" if isinstance(machine, PCA) else "predict"
    expected, answer = getattr(here, method)(X), getattr(found, method)(X)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(answer, expected, rtol=1e-6, atol=1e-8)
    else:
        np.testing.assert_array_equal(answer, expected)


def test_the_loss_of_all_workers_ends_in_words(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(waiting, "_ALONE", 0.3)
    machine = LogisticRegression()
    with pytest.raises(ClusterError, match="no worker"):
        fitted_while_workers_go(cluster, machine, MACHINES[2][1], 2, tmp_path / "gone")
    assert "solution_" not in vars(machine)


def test_the_loss_of_all_workers_ends_at_the_time_limit(cluster, tmp_path):
    machine = LogisticRegression(time_limit=1.0)
    with pytest.raises((TimeLimitError, ClusterError)):
        fitted_while_workers_go(cluster, machine, MACHINES[2][1], 2, tmp_path / "gone")
    assert "solution_" not in vars(machine)
