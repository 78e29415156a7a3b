"""Wrong calls of the compiled core are refused or answered: none crashes, hangs or reads astray.

Every argument of every function is spoilt in turn. The calls run in a process of their own, which
names each before it is made: the last name is the culprit's. `make sanitize` runs the same calls
with sanitizers, which see reads astray that happen to end well.
"""

import faulthandler
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mercer._native")

from helpers.native_calls import CALLS, ROWS, Call, pairs

from mercer import _native

SECONDS = 60  # that a call may take, on a busy machine and with sanitizers; right ones take 1e-3
REFUSALS = (TypeError, ValueError, IndexError, MemoryError, OverflowError, RuntimeError)
# rows of F that no index names may be there
WITH_INDEX = ("linear_times", "linear_pull", "linear_gram", "linear_descent", "partition_dense")
# shapes that mean something other than a mistake: every length is right there
ANY_LENGTH = {
    ("band_inverse_diagonals", "shifts"),
    ("gather", "index"),
    ("linear_times", "index"),
    *((verb, "F") for verb in WITH_INDEX),
    ("perceptron_dense", "order"),
    ("perceptron_sparse", "order"),
    ("partition", "starts"),
    ("partition_dense", "starts"),
    ("partition_sparse", "starts"),
    ("set_program", "coefficients"),
    ("symmetric_product", "v"),
    ("multiply", "v"),
    ("multiply_symmetric", "v"),
}


# --- how a value is spoilt -------------------------------------------------------------------


def spoilt_array(a):
    """Yield (what was done, whether it must be refused, the array)."""
    yield "shorter", True, a[:-1].copy()
    yield "longer", True, np.concatenate([a, a[:1]])
    yield "empty", False, a[:0].copy()
    yield "scalar", True, np.asarray(a.flat[0])
    yield "deeper", True, a[None].copy()
    yield "strided", False, np.repeat(a, 2, axis=-1)[..., ::2]
    yield "backwards", False, a[::-1]
    yield "text", True, a.astype(str)
    yield "objects", False, a.astype(object)
    for kind in (np.int8, np.int32, np.int64, np.uint64, np.float32, np.float64, complex, bool):
        if a.dtype != kind:
            yield f"as {np.dtype(kind).name}", False, a.astype(kind)
    if a.ndim == 2:
        yield "narrower", False, a[:, :-1].copy()
        yield "no columns", False, a[:, :0].copy()
        yield "in Fortran's order", False, np.asfortranarray(a)
    worst = (np.nan, np.inf, -np.inf, 1e300, -1.0) if a.dtype.kind == "f" else edges(a.dtype)
    for value in worst:
        with np.errstate(over="ignore"):
            yield f"all {value}", False, np.full_like(a, value)
        for at in (0, -1):
            one = a.copy()
            with np.errstate(over="ignore"):
                one.flat[at] = value
            yield f"{value} at {at}", False, one


def edges(dtype):
    if dtype.kind == "b":
        return (False,)
    info = np.iinfo(dtype)
    return (info.min, -1, 10**6 if info.max > 10**6 else info.max, info.max)


def spoilt_sequence(values):
    kind = type(values)
    yield "shorter", False, kind(values[:-1])
    yield "longer", False, kind([*values, *values[:1]])
    yield "empty", False, kind(())
    for i, value in enumerate(values):
        for what, _, other in spoilt(value):
            yield f"[{i}] {what}", False, kind([*values[:i], other, *values[i + 1 :]])


def spoilt_number(value):
    if isinstance(value, bool):
        others = (not value,)
    elif isinstance(value, int):
        others = (-(2**63), -(2**31), -1, 0, 1, 10**6, 2**31 - 1, 2**40, 2**63 - 1, 2**64, 1.5)
    else:
        others = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300)
    for other in others:
        if other != value:
            yield f"{other}", False, other


def given_for_none():
    yield "a number", False, 3
    yield "an array", False, np.ones(3)
    yield "a function", False, lambda *_: True
    yield "a function without an answer", False, lambda *_: None
    yield "a function that fails", False, lambda *_: 1 / 0


def spoilt(value):
    """Yield (what was done, whether it must be refused, the value) for one argument."""
    for other in (None, "text", object(), [None], (1, 2)):
        if not (other is None and not isinstance(value, int | float)):
            yield f"{other}"[:12], not isinstance(value, bool), other
    if isinstance(value, np.ndarray):
        yield from spoilt_array(value)
    elif isinstance(value, list | tuple):
        yield "None", False, None
        yield from spoilt_sequence(value)
    elif isinstance(value, int | float):
        yield from spoilt_number(value)
    elif value is None:
        yield from given_for_none()
    else:  # a kernel's pairs
        yield "unbound", True, type(value)(ROWS, ROWS)
        yield "small", True, pairs(rows=5)


def takes_much(argument, value):
    """Whether the call is right and asks for gigabytes: a refusal is the system's business."""
    numbers = {"rows", "columns", "features", "width", "bytes", "count"}
    large = isinstance(value, int) and value in (2**31 - 1, 2**40)
    return argument in numbers and large


def wrong_calls(name):
    """Yield (what was spoilt, whether it must be refused, the call)."""
    for argument in CALLS[name]().arguments:
        verb = name.split(" ")[0].split(".")[-1]
        any_length = {"shorter", "longer", "(1, 2)"} if (verb, argument) in ANY_LENGTH else set()
        for what, refused, other in spoilt(CALLS[name]().arguments[argument]):
            if takes_much(argument, other):
                continue
            call = CALLS[name]()  # afresh: functions write to their arguments
            yield (
                f"{argument}: {what}",
                refused and what not in any_length,
                Call(call.function, {**call.arguments, argument: other}),
            )


# --- the process that makes them -------------------------------------------------------------


def make_calls(names):
    """Make all wrong calls; say what comes next before each, and what was not refused."""
    with np.errstate(all="ignore"):
        for name in names:
            for what, refused, call in wrong_calls(name):
                print(f"{name}({what})", flush=True)
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                try:
                    call()
                except REFUSALS:
                    continue
                except ZeroDivisionError:  # of the poll that fails
                    continue
                finally:
                    faulthandler.cancel_dump_traceback_later()
                if refused:
                    print(f"ACCEPTED {name}({what})", flush=True)
    print("DONE", flush=True)


def run(names):
    here = Path(__file__).parent
    code = f"import test_native_wrong_calls as t; t.make_calls({names!r})"
    path = os.pathsep.join([str(here), str(here.parents[1]), *filter(None, sys.path)])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_wrong_calls_are_refused_or_answered():
    done = run(list(CALLS))
    lines = done.stdout.splitlines()
    last = lines[-1] if lines else "nothing was called"
    assert last == "DONE", f"the core did not survive {last}\n{done.stderr[-3000:]}"
    accepted = [line for line in lines if line.startswith("ACCEPTED")]
    assert not accepted, "\n".join(accepted)


def test_every_function_has_a_call():
    called = {name.split(" ")[0] for name in CALLS}
    public = {name for name in dir(_native) if not name.startswith("_")}
    for kind in ("PairsFloat", "PairsDouble"):
        members = {m for m in dir(getattr(_native, kind)) if not m.startswith("_")}
        public |= {f"{kind}.{m}" for m in members - {"byte_leaves", "instruction_set"}}
    assert public == called
