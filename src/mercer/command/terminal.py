"""Format text for a terminal, and access standard streams."""

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
# Control characters as escapes, aligned columns, suggestions for misspelled names.

# categories that can move the cursor, change colors or reverse the text direction
_CONTROL = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_LONGEST = 60  # characters per cell


def printable(text: str) -> str:
    r"""Escape control characters, so that a name cannot control the terminal.

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
    """Return printable text of at most `width` characters."""
    text = printable(text)
    return text if len(text) <= width else text[: width - 3] + "..."


def aligned(rows: Iterable[Sequence[str]], head: Sequence[str] = (), *, right: str = "") -> str:
    """Align rows in columns. Columns with `r` in `right` are right-aligned.

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
    lines = [
        [*map(cell, row[:-1]), printable(row[-1])] for row in whole
    ]  # the last cell is not cut
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    sides = [">" if right[j : j + 1] == "r" else "<" for j in range(len(widths))]
    return "\n".join(
        "  ".join(f"{entry:{s}{w}}" for entry, s, w in zip(line, sides, widths, strict=True))
        .rstrip()
        for line in lines
    )  # fmt: skip


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest a known name for an unknown one.

    Examples
    --------
    >>> did_you_mean("incme", ["age", "income"])
    "did you mean 'income'?"
    >>> did_you_mean("x", ["age", "income"])
    'choose from age, income'
    """
    names = [str(one) for one in known]
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    shown = ", ".join(cell(one, 30) for one in names[:12])
    return f"choose from {shown}{', ...' if len(names) > 12 else ''}"


# --- streams -------------------------------------------------------------------------------------
#
# Closed streams and closed pipes do not cause errors.


def repair_streams() -> None:
    """Open the null device for each closed standard stream.

    Otherwise, the next file that is opened gets its descriptor, and output of a library could
    be written to the model file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor: this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def standard_output() -> BinaryIO | None:
    """Return binary standard output, or None if the shell closed it (`>&-`)."""
    if sys.stdout is None:
        return None
    sys.stdout.flush()
    return sys.stdout.buffer


def standard_input() -> BinaryIO:
    """Return binary standard input. Raise if it is closed."""
    if sys.stdin is None:
        raise OSError("standard input is closed; pass a file instead of -")
    return sys.stdin.buffer


def forget_broken_pipe() -> None:
    """Redirect streams with a closed pipe to the null device, so that exit succeeds."""
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
