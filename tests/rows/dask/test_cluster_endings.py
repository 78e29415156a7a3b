"""Fits that do not come to their end: Ctrl-C, a scheduler that is gone, a worker that is killed."""

import signal
import time

import numpy as np
import pytest
from helpers import cluster_functions as there

da = pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("distributed", reason="Dask is not installed")

from mercer import SVC, GaussianMixture, KernelRidge, SpectralClustering  # noqa: E402
from mercer.approximation import Nystrom  # noqa: E402
from mercer.blocks import ArrayBlocks  # noqa: E402
from mercer.kernels import Gaussian  # noqa: E402

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.standard_normal((60, 2)), RNG.standard_normal((60, 2)) + 4.0])
Y = np.where(X.sum(axis=1) > 4.0, 1.0, -1.0)
KERNEL = Nystrom(12).of(Gaussian(2.0), X)


def test_ctrl_c_leaves_the_machine_as_it_was_and_takes_work_back(client):
    machine = KernelRidge().fit(X, Y)
    before = dict(vars(machine))
    slow = da.from_array(X, chunks=(6, 2)).map_blocks(there.slowly, 0.25, dtype=float)

    def interrupted(number, frame):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupted)
    signal.setitimer(signal.ITIMER_REAL, 0.6)
    try:
        with client.as_current(), pytest.raises(KeyboardInterrupt):
            machine.fit(slow, da.from_array(Y, chunks=6))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert vars(machine) == before
    waited = 0
    while any(client.processing().values()) and waited < 20:  # those that have begun end
        time.sleep(0.1)
        waited += 1
    assert not any(client.processing().values())  # twenty chunks would take 2.5 s
    with client.as_current():
        assert KernelRidge().fit(da.from_array(X, chunks=(60, 2)), Y).certificate_.ok


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("machine", "task"),
    [(SVC(KERNEL), 9), (GaussianMixture(2, n_init=1), 25), (SpectralClustering(2, KERNEL), 21)],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value),
)
def test_a_worker_killed_during_a_fit_changes_no_answer(processes, tmp_path, machine, task):
    y = Y if isinstance(machine, SVC) else None
    method = "transform" if isinstance(machine, SpectralClustering) else "predict"
    expected = getattr(machine.fit(ArrayBlocks(X, y, rows=30)), method)(X)
    killer = there.KilledAt(task, tmp_path / "killed")
    processes.register_plugin(killer)
    try:
        with processes.as_current():
            found = machine.fit(
                da.from_array(X, chunks=(30, 2)), None if y is None else da.from_array(y, chunks=30)
            )
    finally:
        processes.unregister_worker_plugin(killer.name)
    assert (tmp_path / "killed").exists()
    assert found.certificate_.ok
    np.testing.assert_allclose(getattr(found, method)(X), expected, rtol=1e-8)
