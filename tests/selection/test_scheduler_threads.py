"""Ctrl-C in a search, wherever it comes: no thread is left waiting, nothing is held."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import mercer
from mercer.selection import scheduler
from mercer.selection.sharing.base import Group, Judged

SOURCE = str(Path(mercer.__file__).parents[1])


class Quick(Group):
    held = 0

    def __init__(self, position):
        self.points, self.units, self.size = (position,), ((0,), (1,)), 1.0

    def prepare(self):
        Quick.held += 1

    def judge(self, unit, stop):
        return {(self.points[0], unit): Judged({"score": 1.0})}

    def release(self):
        Quick.held -= 1


def work():
    return scheduler.ScheduledWork(
        [Quick(0), Quick(1)],
        done=lambda group, unit: False,
        keep=lambda finished: None,
        stopping=lambda: False,
        instead=lambda *_: [],
    )


def judges():
    return [thread for thread in threading.enumerate() if thread.name.startswith("mercer-judge")]


def wait_for_judges():
    """Wait for threads that are on their way out; those that would stay, stay for ever."""
    for thread in judges():
        thread.join(timeout=60)
    return judges()


def interrupted_at(line):
    """Run a search in which Ctrl-C comes at the n-th line of the scheduler; tell if it came."""
    seen = 0

    def local(frame, event, arg):
        nonlocal seen
        if event == "line":
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return local

    def trace(frame, event, arg):
        return local if frame.f_code.co_filename == scheduler.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with mercer.config(threads=2):
            scheduler.run(work())
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_ctrl_c_at_every_line_leaves_no_thread():
    line = 1
    while interrupted_at(line):
        assert not wait_for_judges(), f"threads wait after Ctrl-C at line {line}"
        Quick.held = 0
        line += 1
    assert line > 50  # all of the start, the work and the end were met
    assert not wait_for_judges()


SIGNALS = """
import signal, threading, time
import numpy as np
from mercer import SVC
from mercer.kernels import Gaussian
from mercer.selection import tune
signal.signal(signal.SIGALRM, signal.default_int_handler)
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = X[:, 0] > 0
# all modules are there before signals come: Python ends with the signal's number if one was met in
# the text of a class that was being made (exec), even where it was caught
tune(SVC(Gaussian(1.0)), X, y, grid={"C": [1.0, 10.0, 100.0]}, cv=3)
heard = 0
for delay in rng.uniform(0.0, 0.02, 60):
    try:
        signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-4))
        tune(SVC(Gaussian(1.0)), X, y, grid={"C": [1.0, 10.0, 100.0]}, cv=3)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        heard += 1
time.sleep(0.2)  # one that a signal met while it was started may be on its way
for thread in threading.enumerate():
    # (Python lists one for ever that a signal kept from being started: there is no such thread)
    if thread is not threading.main_thread() and thread.ident is not None:
        thread.join(timeout=30)
print(heard, sum(thread.is_alive() for thread in threading.enumerate()))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX does")
def test_many_signals_at_the_start_leave_no_thread():
    done = subprocess.run(
        [sys.executable, "-c", SIGNALS],
        env={**os.environ, "PYTHONPATH": SOURCE, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    heard, threads = map(int, done.stdout.split())
    assert heard >= 1
    assert threads == 1
