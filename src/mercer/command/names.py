"""Names of the files that a command writes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

_COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}


def stem_of(data: str) -> str:
    """Return what a file is called without its folder and endings; `model` for a pipe.

    Examples
    --------
    >>> stem_of("/data/people.csv.gz"), stem_of("-")
    ('people', 'model')
    """
    if data == "-":
        return "model"
    name = Path(data)
    if name.suffix.lower() in _COMPRESSED:
        name = name.with_suffix("")
    return name.stem or "model"


def refuse_overwriting(outputs: Iterable[str | os.PathLike[str] | None], *inputs: str) -> None:
    """Refuse to write a file that is read, twice the same file, or a folder."""
    seen: set[str] = set()
    for output in outputs:
        if output is None:
            continue
        place = os.path.realpath(output)
        if any(name != "-" and os.path.realpath(name) == place for name in inputs):
            raise click.UsageError(f"{os.fspath(output)!r} is read; write to another file")
        if place in seen:
            raise click.UsageError(f"{os.fspath(output)!r} would be written twice")
        if os.path.isdir(place):
            raise click.UsageError(f"{os.fspath(output)!r} is a folder; name a file in it")
        seen.add(place)
        folder = os.path.dirname(place)
        if not os.path.isdir(folder):
            raise click.UsageError(f"{os.fspath(output)!r}: there is no folder {folder!r}")


def size_of(path: str | os.PathLike[str]) -> str:
    """Return the size of a file in words.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes(1500)), file.flush()
    ...     size_of(file.name)
    '1.5 kB'
    """
    size = float(os.path.getsize(path))
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
