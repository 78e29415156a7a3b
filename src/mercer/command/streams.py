"""Standard input, output and error: closed ones, and closed pipes, do no harm."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO, BinaryIO


def repair_streams() -> None:
    """Put the null device where a standard stream is closed.

    Otherwise the next file to be opened gets its number, and a stray line of a library goes into
    the model.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def standard_output() -> BinaryIO | None:
    """Return standard output for bytes, or None where the shell closed it (`>&-`)."""
    if sys.stdout is None:
        return None
    sys.stdout.flush()
    return sys.stdout.buffer


def standard_input() -> BinaryIO:
    """Return standard input for bytes; a closed one is refused."""
    if sys.stdin is None:
        raise OSError("standard input is closed; name a file instead of -")
    return sys.stdin.buffer


def forget_broken_pipe() -> None:
    """Let go of a standard output whose reader went away, so that nothing fails at exit."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            _drop(stream)


def _drop(stream: IO[str]) -> None:
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
