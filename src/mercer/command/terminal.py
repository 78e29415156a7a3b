"""Text for a terminal, and standard streams."""

from __future__ import annotations

import contextlib
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import IO, BinaryIO

# --- text ----------------------------------------------------------------------------------------
#
# Text for a terminal: control characters shown as escapes, aligned columns, near names.

# what may move the cursor, change colours, or turn the direction of what follows
_CONTROL = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_LONGEST = 60  # characters of a cell


def printable(text: str) -> str:
    r"""Return text with control characters written as escapes: a name must not drive a terminal.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(
        c if unicodedata.category(c) not in _CONTROL else c.encode("unicode_escape").decode()
        for c in text
    )


def cell(text: str, width: int = _LONGEST) -> str:
    """Return a printable text of bounded length."""
    text = printable(text)
    return text if len(text) <= width else text[: width - 3] + "..."


def aligned(rows: Iterable[Sequence[str]], head: Sequence[str] = (), *, right: str = "") -> str:
    """Write rows below one another in columns; columns whose place has `r` stand to the right.

    Examples
    --------
    >>> print(aligned([("a", "1"), ("bcd", "20")], ("name", "rows"), right="lr"))
    name  rows
    a        1
    bcd     20
    """
    whole = [*([head] if head else []), *rows]
    if not whole:
        return ""
    lines = [[*map(cell, row[:-1]), printable(row[-1])] for row in whole]  # the last has room
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    sides = [">" if right[j : j + 1] == "r" else "<" for j in range(len(widths))]
    return "\n".join(
        "  ".join(f"{entry:{s}{w}}" for entry, s, w in zip(line, sides, widths, strict=True))
        .rstrip()
        for line in lines
    )  # fmt: skip


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return what may be meant by an unknown name, as the end of a sentence.

    Examples
    --------
    >>> did_you_mean("incme", ["age", "income"])
    "did you mean 'income'?"
    >>> did_you_mean("x", ["age", "income"])
    'there are age, income'
    """
    names = [str(one) for one in known]
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    shown = ", ".join(cell(one, 30) for one in names[:12])
    return f"there are {shown}{', ...' if len(names) > 12 else ''}"


# --- streams -------------------------------------------------------------------------------------
#
# Standard input, output and error: closed ones, and closed pipes, do no harm.


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
