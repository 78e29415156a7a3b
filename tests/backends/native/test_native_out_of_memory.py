"""Every request for memory of the compiled core may fail: that is a MemoryError, never the end.

A small library is preloaded that lets the k-th request fail, for all k that a call gets to: once,
or from then on for as long as the call lasts. All calls are made in one process, which names each
before it is made.
"""

import ctypes
import faulthandler
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mercer._native")

from helpers.native_calls import CALLS, Call, box, gram, pairs

from mercer import _native

HERE = Path(__file__).parent
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
SECONDS = 60  # that a call may take: threads that wait for one that failed would wait for ever
EVERY = 7  # of the requests of a large call one in so many fails: most of them are alike

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler"),
    pytest.mark.skipif(sys.platform != "linux", reason="preloads by LD_PRELOAD"),
    pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="has its own malloc"),
]


# --- calls that take memory in other places --------------------------------------------------

ROWS = 900  # several tiles, memory from the arena, matrices of what still moves


def _large_pairs(verb, *arguments):
    return Call(getattr(pairs(np.float32, rows=ROWS), verb), dict(enumerate(arguments)))


def _large_box(rows):
    K = np.zeros((rows, rows), dtype=np.float32)
    K[...] = gram(ROWS, np.float32)[:1, :1]
    K[:ROWS, :ROWS] = gram(ROWS, np.float32)
    arguments = {
        "K": K,
        "boxes": [box(rows)],
        "tol": 1e-4,
        "max_iter": 20000,
        "poll": None,
        "threads": 2,
    }
    return Call(_native.box_qps, arguments)


V = np.ones((ROWS, 2))
LARGE = {
    "large range": lambda: _large_pairs("range", 0, ROWS, [], 2),
    "large symmetric": lambda: _large_pairs(
        "symmetric", np.empty((ROWS, ROWS), dtype=np.float32), 0, ROWS, [], 2
    ),
    "large multiply": lambda: _large_pairs("multiply", V, 0, ROWS, [], 2),
    "large multiply_symmetric": lambda: _large_pairs("multiply_symmetric", V, 2),
    "large box_qps": lambda: _large_box(ROWS),
}


# --- the process that makes them -------------------------------------------------------------


def fail_in_turn(memory, name, make, every, ever):
    """Let each request of a call fail; count the calls. Without memory the answer is no other."""
    request = calls = 0
    while True:
        call = make()
        print(f"{name}, request {request}{' and all later' if ever else ''}", flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        memory.fail_request(request, ever)
        try:
            call()
        except MemoryError:
            pass
        finally:
            asked = memory.stop_failing()
            faulthandler.cancel_dump_traceback_later()
        calls += 1
        if asked <= request:
            return calls
        request += every


def make_calls(library):
    memory = ctypes.CDLL(library)
    memory.stop_failing.restype = ctypes.c_long
    calls = 0
    for ever in (0, 1):
        for name, make in CALLS.items():
            calls += fail_in_turn(memory, name, make, 1, ever)
        for name, make in LARGE.items():
            calls += fail_in_turn(memory, name, make, EVERY, ever)
    print("DONE", calls, flush=True)


def test_a_failed_request_is_a_memory_error(tmp_path):
    library = tmp_path / "failing_memory.so"
    source = HERE.parents[1] / "helpers" / "failing_memory.cpp"
    build = [COMPILER, "-O1", "-std=c++20", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run([*build, "-ldl"], check=True)
    path = os.pathsep.join([str(HERE), str(HERE.parents[1]), *filter(None, sys.path)])
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            f"import test_native_out_of_memory as t; t.make_calls({str(library)!r})",
        ],
        env={
            **os.environ,
            "PYTHONPATH": path,
            "LD_PRELOAD": str(library),
            "PYTHONFAULTHANDLER": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    last = lines[-1] if lines else "nothing was called"
    assert last.startswith("DONE"), f"the core did not survive {last}\n{done.stderr[-3000:]}"
    assert int(last.split()[1]) > 1000, last
