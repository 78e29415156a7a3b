"""Triton kernels compiled for a card that is not there: what they take of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def told_by(script, folder):
    """Run a script that compiles, and return the lines it prints.

    It is given a file for the kernel and the program that reads its resources. Triton's interpreter
    is off in its process.
    """
    triton = pytest.importorskip("triton")
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        pytest.skip("this Triton brings no cuobjdump")
    command = [sys.executable, "-W", "ignore", "-c", script, str(folder / "kernel"), str(tool)]
    plain = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def resources(line):
    """Return bytes of shared memory, and what `cuobjdump` says by name, of a printed line."""
    shared, *usage = line.split()
    return int(shared), dict(part.split(":") for part in usage if ":" in part)
