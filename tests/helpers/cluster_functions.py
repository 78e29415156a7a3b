"""Functions of blocks that workers import: what tests of clusters run there."""

import os
import signal

import numpy as np
from distributed.diagnostics.plugin import WorkerPlugin


def products(block):
    return len(block), block.X.T @ block.X


def features(block, W):
    return block.X @ W


def shifted(block, F, v):
    return F + v, float((F @ v).sum())


def shifted_until_killed(block, F, v, marker):
    """Do the same; the first worker that comes here is killed with all that it holds."""
    if marker and block.first and not os.path.exists(marker):
        with open(marker, "w", encoding="utf-8"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return F + v, float((F @ v).sum())


def slow(block, seconds):
    import time

    time.sleep(seconds)
    return 1


def received(dask_worker):
    """Return the bytes that a worker got from others, so far."""
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def failing(block):
    raise ArithmeticError(f"row {block.first}")


def first_rows(block):
    return block.first


def zeros(block):
    return np.zeros(3)


class KilledAt(WorkerPlugin):
    """A plugin of workers: one that has ended so many tasks of a fit is killed, once in all."""

    def __init__(self, task, marker):
        self.task, self.marker, self.name = task, str(marker), f"killed-at-{marker}"
        self.count = 0

    def setup(self, worker):
        self.count = 0

    def transition(self, key, start, finish, **kwargs):
        if finish != "memory" or start != "executing" or not str(key).startswith("mercer-"):
            return
        self.count += 1
        if self.count >= self.task and not os.path.exists(self.marker):
            with open(self.marker, "w", encoding="utf-8"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)


class ClosedAt(WorkerPlugin):
    """A plugin of workers in this process: those that have ended so many tasks go with their data.

    Parameters
    ----------
    task : int
        After how many tasks of a fit.
    most : int
        How many workers go.
    marker : path
        A folder where each of them leaves a file.
    """

    def __init__(self, task, most, marker):
        self.task, self.most, self.marker = task, most, str(marker)
        self.name = f"closed-at-{marker}"

    def setup(self, worker):
        self.worker, self.count = worker, 0

    def transition(self, key, start, finish, **kwargs):
        if finish != "memory" or start != "executing" or not str(key).startswith("mercer-"):
            return
        self.count += 1
        if self.count == self.task and len(os.listdir(self.marker)) < self.most:
            name = str(self.worker.name)
            with open(os.path.join(self.marker, name), "w", encoding="utf-8"):
                pass
            self.worker.loop.add_callback(self.worker.close, executor_wait=False, reason="a test")


def slowly(rows, seconds):
    slow(rows, seconds)
    return rows
