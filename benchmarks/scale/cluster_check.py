"""Does the schedule of `cluster_schedule` say how long a pass takes? Measured on clusters here.

`python -m benchmarks.scale.cluster_check` measures the constants of the formula on a cluster of one
worker, on small tasks and on few features. Then it predicts passes on clusters of other sizes, with
other numbers of rows, blocks and features, and runs them: no constant comes from the runs that are
predicted.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.scale.cluster_schedule import Cluster, Pass, Simulation, predicted
from benchmarks.scale.dask_workers import received_bytes

COLUMNS = 10
REPEATS = 2  # the shortest time of so many counts: others are of a machine that did something else


@contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    """Start so many workers, each a process with one thread."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.scheduler.work-stealing": False})  # as in the compose file
    options: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": logging.ERROR}
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def blocks_on(client: Any, rows: int, block: int) -> Any:
    """Return random rows with targets, held by the workers."""
    import dask.array as da

    from mercer.distributed import DaskBlocks

    X = da.random.default_rng(0).standard_normal((rows, COLUMNS), chunks=(block, COLUMNS))
    X = client.persist(X)
    return DaskBlocks(X, X[:, 0], client=client)


def features_of(m: int) -> Any:
    """Return m Nystrom features of a Gaussian kernel."""
    from mercer.approximation import Nystrom
    from mercer.kernels import Gaussian
    from mercer.kernels.features import feature_map

    sample = np.random.default_rng(1).standard_normal((5000, COLUMNS))
    kernel = Nystrom(m, sampling="uniform").of(Gaussian(3.0), sample)
    return feature_map(kernel.expression(), COLUMNS)


def shortest(work: Any) -> float:
    """Return the seconds of the quickest of a few runs, after one that is not counted."""
    work()
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def moments(blocks: Any, features: Any) -> None:
    """Add up products: a result of the size of the features squared."""
    from mercer.machines.blocks.features import block_moments

    blocks.total(block_moments, features, True, True)


def residual(blocks: Any, features: Any) -> None:
    """Add up residuals: a result of the size of the features."""
    from mercer.machines.ridge.blocks import residual_sums

    m = features.dimension
    none, zero = np.zeros((m, 1)), np.zeros(1)
    blocks.total(residual_sums, features, none, zero, np.zeros(m), zero)


PASSES = {"moments": (moments, lambda m: 8.0 * m * m), "residual": (residual, lambda m: 32.0 * m)}


def measured_cluster(client: Any) -> Cluster:
    """Measure scheduler, latency, bandwidth and sums on a cluster of one worker."""
    few, many = blocks_on(client, 400, 10), blocks_on(client, 2000, 10)
    one = blocks_on(client, 10, 10)
    once = shortest(lambda: one.total(len))
    times = [shortest(lambda blocks=blocks: blocks.total(len)) for blocks in (few, many)]
    task = (times[1] - times[0]) / (160 * 9 / 8)
    latency = max((once / 3 - task) / 2, 1e-5)  # call, block and sum, one after the other
    load = np.random.default_rng(0).standard_normal(8_000_000)
    bandwidth = load.nbytes / shortest(lambda: client.scatter(load, hash=False))
    part = np.ones((1000, 1000))
    total = np.zeros((1000, 1000))
    add = part.nbytes / shortest(lambda: np.add(total, part, out=total))
    return Cluster(1, task, latency, bandwidth, add)


def row_seconds(client: Any, cluster: Cluster) -> dict[str, np.ndarray]:
    """Return p and q of the seconds of a row, p m + q m^2, from two numbers of features."""
    found, sizes, rows, block = {}, (100, 300), 60_000, 20_000
    blocks = blocks_on(client, rows, block)
    for name, (run, result) in PASSES.items():
        seconds = []
        for m in sizes:
            features = features_of(m)
            took = shortest(lambda run=run, features=features: run(blocks, features))
            beside = predicted(cluster, Pass(rows, block, 0.0, result(m), 0.0))[0]
            seconds.append((took - beside) / rows)
        table = np.array([[m, m * m] for m in sizes], dtype=float)
        found[name] = np.maximum(np.linalg.solve(table, np.array(seconds)), 0.0)
    return found


def main() -> None:
    """Measure, predict, run, and print all three."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    given = parser.parse_args()
    with cluster_of(1) as client:
        cluster = measured_cluster(client)
        rows_cost = row_seconds(client, cluster)
    print(
        f"task {1e3 * cluster.task:.2f} ms, latency {1e3 * cluster.latency:.2f} ms, bandwidth "
        f"{1e-9 * cluster.bandwidth:.2f} GB/s, add {1e-9 * cluster.add:.2f} GB/s"
    )
    for name, (p, q) in rows_cost.items():
        print(f"a row of the pass {name}: {1e9 * p:.1f} m + {1e9 * q:.3f} m^2 ns")
    print("workers    rows   block    m pass      measured s formula simulation   MB formula")
    for workers in given.workers:
        with cluster_of(workers) as client:
            for rows, block, m in (
                (300_000, 15_000, 500),
                (100_000, 5_000, 200),
                (20_000, 100, 50),
            ):
                blocks, features = blocks_on(client, rows, block), features_of(m)
                for name, (run, result) in PASSES.items():
                    row = float(rows_cost[name] @ np.array([m, m * m], dtype=float))
                    work = Pass(rows, block, row, result(m), 8.0 * m)
                    here = replace(cluster, workers=workers)
                    formula, moved = predicted(here, work)
                    simulated = Simulation(here, work).run()[0]
                    before = sum(client.run(received_bytes).values())
                    took = shortest(lambda run=run, b=blocks, f=features: run(b, f))
                    sent = (sum(client.run(received_bytes).values()) - before) / (REPEATS + 1)
                    print(
                        f"{workers:7d} {rows:7d} {block:7d} {m:4d} {name:9s} {took:10.3f} "
                        f"{formula:7.3f} {simulated:10.3f} {sent / 1e6:6.2f} {moved / 1e6:6.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
