"""The compose file of the guide: what it says can be read, and its commands make a cluster."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from helpers import cluster_functions as there

da = pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("distributed", reason="Dask is not installed")
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

from mercer import KernelRidge  # noqa: E402
from mercer.distributed import ClusterError, DaskBlocks  # noqa: E402

FILE = Path(__file__).resolve().parents[3] / "docs" / "cluster" / "compose.yaml"
DASK = shutil.which("dask", path=os.path.dirname(sys.executable))
SERVICE = {"build", "environment", "command", "ports", "depends_on", "deploy"}  # of the format
X = np.random.default_rng(0).standard_normal((60, 2))


def services():
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]


def test_the_file_is_what_compose_reads():
    whole = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert all(name == "services" or name.startswith("x-") for name in whole)
    assert set(whole["services"]) == {"scheduler", "worker"}
    for service in whole["services"].values():
        assert set(service) <= SERVICE
        context = (FILE.parent / service["build"]["context"]).resolve()
        assert (context / service["build"]["dockerfile"]).is_file()
        assert (context / "pyproject.toml").is_file()
        assert all(isinstance(value, str) for value in service["environment"].values())
        assert shlex.split(service["command"])[0] == "dask"
        for port in service.get(
            "ports", []
        ):  # of this machine alone: Dask asks nobody who they are
            assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)
        assert set(service.get("depends_on", [])) <= set(whole["services"])
    assert whole["services"]["worker"]["deploy"] == {"replicas": 2}
    assert "tcp://scheduler:8786" in whole["services"]["worker"]["command"]


@contextmanager
def process(command, environment):
    """Run a command of the file here, in a group of its own that is ended in the end."""
    started = subprocess.Popen(
        [DASK, *shlex.split(command)[1:]],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


@pytest.mark.skipif(DASK is None, reason="the command dask is not installed")
def test_its_commands_make_a_cluster_whose_loss_is_said(tmp_path):
    from distributed import Client

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    told = services()
    path = os.pathsep.join([*sys.path[:1], str(FILE.parents[2] / "tests"), *sys.path[1:]])
    environment = {**told["scheduler"]["environment"], "PYTHONPATH": path}
    with ExitStack() as stack:
        command = f"{told['scheduler']['command']} --port {port} --dashboard-address 127.0.0.1:0"
        scheduler = stack.enter_context(process(command, environment))
        command = told["worker"]["command"].replace("tcp://scheduler:8786", address)
        command += f" --no-dashboard --local-directory {tmp_path}"
        stack.enter_context(process(command, environment))
        client = stack.enter_context(Client(address, timeout=60, set_as_default=False))
        client.wait_for_workers(1, timeout=60)
        with client.as_current():
            machine = KernelRidge(0.1).fit(da.from_array(X, chunks=(20, 2)), X[:, 0])
        np.testing.assert_allclose(
            machine.predict(X), KernelRidge(0.1).fit(X, X[:, 0]).predict(X), rtol=1e-9
        )
        before, blocks = dict(vars(machine)), DaskBlocks(da.from_array(X), client=client)
        threading.Timer(0.5, scheduler.kill).start()
        begun = time.monotonic()
        with pytest.raises(ClusterError, match="scheduler is gone"):
            blocks.total(there.slow, 600)
        assert time.monotonic() - begun < 300  # it ends
        with client.as_current(), pytest.raises(ClusterError, match="scheduler is gone"):
            machine.fit(da.from_array(X, chunks=(20, 2)), X[:, 0])
        assert vars(machine) == before
