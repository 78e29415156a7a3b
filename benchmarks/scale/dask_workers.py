"""One worker against two: ridge on Nystrom features of rows that the workers make themselves.

`python -m benchmarks.scale.dask_workers --rows 1000000 --features 1000` takes a minute or two on
one core. Printed for each number of workers: wall time of the fit, processor time of the busiest
worker, of the client with its scheduler, and the bytes that workers sent to one another. On a
machine that others use the wall times are noise, and the ratio of the busiest worker's processor
times is what two free cores would show, less the time of the client.
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

import numpy as np


def processor_seconds(dask_worker: Any) -> float:
    return time.process_time()


def received_bytes(dask_worker: Any) -> int:
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def measured(workers: int, rows: int, features: int, chunk: int) -> dict[str, float]:
    """Fit on so many workers, and return seconds and bytes."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    from mercer import KernelRidge
    from mercer.approximation import Nystrom
    from mercer.kernels import Gaussian

    dask.config.set({"distributed.scheduler.work-stealing": False})  # as in the compose file
    options: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": logging.ERROR}
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, **options) as cluster,
        Client(cluster) as client,
    ):
        X = da.random.default_rng(0).standard_normal((rows, 10), chunks=(chunk, 10))
        y = da.sin(X[:, 0]) + X[:, 1] * X[:, 2]
        X, y = client.persist([X, y])
        sample = np.random.default_rng(1).standard_normal((5000, 10))
        kernel = Nystrom(features, sampling="uniform").of(Gaussian(3.0), sample)
        KernelRidge(1.0, kernel).fit(X[:chunk], y[:chunk])  # workers have imported all they need
        before, moved = client.run(processor_seconds), sum(client.run(received_bytes).values())
        here, wall = time.process_time(), time.perf_counter()
        machine = KernelRidge(1.0, kernel).fit(X, y)
        wall, here = time.perf_counter() - wall, time.process_time() - here
        busy = {name: s - before[name] for name, s in client.run(processor_seconds).items()}
        moved = sum(client.run(received_bytes).values()) - moved
        passes = machine.solution_.iterations + 1  # one more for the certificate
        assert machine.certificate_.ok
    return {
        "workers": workers,
        "wall s": wall,
        "busiest worker s": max(busy.values()),
        "all workers s": sum(busy.values()),
        "client and scheduler s": here,
        "MB between workers": moved / 1e6,
        "passes": passes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--chunk", type=int, default=25_000)
    given = parser.parse_args()
    found = [measured(w, given.rows, given.features, given.chunk) for w in (1, 2)]
    for one in found:
        print(", ".join(f"{name} {value:.4g}" for name, value in one.items()))
    for name in ("wall s", "busiest worker s"):
        print(f"{name}: one over two workers {found[0][name] / found[1][name]:.2f}")


if __name__ == "__main__":
    main()
