"""kill -9 while a model is written: the earlier file is whole, or the new one is, never half."""

import subprocess
import sys

import pytest

# One process imports everything; each case is a fork of it that runs the command and is killed: at
# an event of the interpreter (a file opened, renamed, ...) or after a part of the usual time.
PROGRAM = """
import io, os, signal, sys, time
from pathlib import Path
import numpy as np
import mercer
from mercer.command.application import application
from mercer.command.work import run

X = np.random.default_rng(0).normal(size=(300, 40))
lines = [",".join(f"c{j}" for j in range(40)), *(",".join(map(repr, row)) for row in X.tolist())]
Path("rows.csv").write_text("\\n".join(lines))
Path("few.csv").write_text("\\n".join(lines[:100]))
path = Path("m.mercer")

def work(data):
    line = ["project", data, "--kernel", "gaussian(9)", "--model", "m.mercer", "-q"]
    return run(application, line)

def killed(when, seconds):
    path.write_bytes(old)
    child = os.fork()
    if child == 0:
        events = 0
        def hook(event, args):
            nonlocal events
            if event in ("open", "os.rename", "os.remove", "os.chmod", "fcntl.flock", "os.listdir"):
                if event != "open" or ".mercer" in str(args[0]) or str(args[0]) == ".":
                    events += 1
                    if events == when:
                        os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        os._exit(work("rows.csv"))
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    found = path.read_bytes()
    rows = len(mercer.load(path).coordinates)  # whole, whichever it is
    assert rows == (99 if found == old else 300), rows
    return os.WIFSIGNALED(status), found == old

assert work("few.csv") == 0
old = path.read_bytes()
begun = time.perf_counter()
assert work("rows.csv") == 0
usual = time.perf_counter() - begun
seen = []
for when in range(1, 40):
    dead, before = killed(when, None)
    if not dead:
        break
    seen.append(before)
assert when > 2 and not before, "the run ends by itself when there are no more events"
assert seen == sorted(seen, reverse=True), "the earlier file, and from some event on the new one"
timed = [killed(None, usual * share)[1] for share in np.linspace(0.3, 1.3, 7)]
print(seen, timed, sorted(p.name for p in Path().iterdir()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_a_model_is_never_half_written(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "True, False] [" in done.stdout  # killed before the new name, and after it
    left = {path.suffix for path in tmp_path.iterdir()}
    assert left <= {".csv", ".mercer", ".tmp"}
