"""One cluster of threads for all tests here; tests that kill workers start their own."""

import logging
from importlib.util import find_spec

import pytest

if find_spec("dask") is None:  # a module `distributed` is found whatever is installed: this folder
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def client():
    from distributed import Client, LocalCluster

    options = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def processes():
    """Two workers that are processes of their own."""
    from distributed import Client, LocalCluster

    options = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
