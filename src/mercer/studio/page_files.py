"""The files of the page, read once: what is asked for later is looked up, never opened."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"


def page_files() -> dict[str, tuple[bytes, str]]:
    """Return contents and types of all files of the page, by their names below it.

    Examples
    --------
    >>> all("/.." not in name for name in page_files())
    True
    """
    return dict(_below(files("mercer.studio") / "page", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, tuple[bytes, str]]]:
    found = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _below(one, f"{prefix}{one.name}/")
        elif (kind := _TYPES.get(one.name.rpartition(".")[2])) is not None:
            found.append((prefix + one.name, (one.read_bytes(), kind)))
    return found
