"""Run the Python on a page and show under each block what it prints and draws.

The blocks of a page run in order in one namespace, and a warning is an error, so a page whose code
no longer works does not build. Without Sphinx: `python docs/extensions/snippets.py PAGE ...` runs
pages and prints what they print; with `--write` before it, pages that carry their output themselves
(README.md) get it, and their pictures, anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mercer

FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
CARRIED = re.compile(
    r"\n\n```text\n(.*?)^```$(?:\n\n!\[[^\]]*\]\(([^)]+)\))?", re.MULTILINE | re.DOTALL
)
SLOW = "Mercer runs on its NumPy reference backend"  # said where there was no compiler
PICTURES = "snippets"  # a folder of docs/ that git ignores


class SnippetError(Exception):
    """A block of a page failed."""


def run_page(text: str, name: str) -> Iterator[tuple[str, list[Any]]]:
    """Run each block of a page in turn; yield what it prints and the figures it leaves open."""
    scope: dict[str, Any] = {"__name__": "page"}
    for block in FENCE.finditer(text):
        line = text[: block.start(1)].count("\n")
        code = "\n" * line + block[1]  # a traceback names the line of the page
        with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message=SLOW)
            try:
                exec(compile(code, name, "exec"), scope)  # our own page
            except Exception as error:
                raise SnippetError(f"{name}, block at line {line}: {error!r}") from error
        yield printed.getvalue().rstrip("\n"), _open_figures()


def shown_with_output(text: str, name: str, folder: Path, address: str) -> str:
    """Return the page with an output block, and a picture for each figure, after its blocks."""
    parts, end, count = [], 0, 0
    for block, (printed, figures) in zip(FENCE.finditer(text), run_page(text, name), strict=True):
        parts.append(text[end : block.end()])
        end = block.end()
        if printed:
            parts.append(f"\n\n```{{code-block}} none\n:class: output\n\n{printed}\n```\n")
        for figure in figures:
            count += 1
            picture = folder / f"{name.replace('/', '-')}-{count}.png"
            folder.mkdir(exist_ok=True)
            figure.savefig(picture, dpi=150)
            parts.append(f"\n\n![What the lines above draw]({address}/{picture.name})\n")
        _close(figures)
    return "".join([*parts, text[end:]])


def carried_output(text: str) -> list[str]:
    """Return the outputs that a page carries itself, each right behind its block."""
    found = (CARRIED.match(text, block.end()) for block in FENCE.finditer(text))
    return [output[1].rstrip("\n") if output else "" for output in found]


def write_output(page: Path) -> None:
    """Put into a page what its blocks print and draw now."""
    text = page.read_text(encoding="utf-8")
    parts, end = [], 0
    for block, (printed, figures) in zip(
        FENCE.finditer(text), run_page(text, page.name), strict=True
    ):
        carried = CARRIED.match(text, block.end())
        if carried is None:
            continue
        parts += [text[end : carried.start(1)], printed, "\n"]
        end = carried.end(1)
        if carried[2] and figures:
            figures[-1].savefig(page.parent / carried[2], dpi=130)
        _close(figures)
    page.write_text("".join([*parts, text[end:]]), encoding="utf-8")


def _open_figures() -> list[Any]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return [pyplot.figure(number) for number in pyplot.get_fignums()] if pyplot else []


def _close(figures: list[Any]) -> None:
    for figure in figures:
        sys.modules["matplotlib.pyplot"].close(figure)


@contextlib.contextmanager
def _in_empty_folder() -> Iterator[None]:
    """Let pages that write files write them where nobody looks."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def fingerprint(package: Any) -> str:
    """Return a hash of the sources of a package: outputs are stale once it changes."""
    found = hashlib.sha256()
    for path in sorted(Path(package.__file__).parent.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def _on_source_read(app: Any, docname: str, source: list[str]) -> None:
    from sphinx.util import logging  # noqa: PLC0415 - pages run without Sphinx as well

    page = Path(app.env.doc2path(docname))
    if page.suffix != ".md" or not FENCE.search(source[0]):
        return
    folder = Path(app.srcdir) / PICTURES
    try:
        with _in_empty_folder():
            source[0] = shown_with_output(source[0], docname, folder, f"/{PICTURES}")
    except SnippetError as error:  # a warning, which is an error under -W, so that all are told
        logging.getLogger(__name__).warning(str(error), location=docname, type="snippets")


def setup(app: Any) -> dict[str, Any]:
    """Run pages as Sphinx reads them, and all of them again when the library has changed."""
    app.add_config_value("library_fingerprint", fingerprint(mercer), "env")
    app.connect("source-read", _on_source_read)
    return {"parallel_read_safe": False}


def main(arguments: list[str]) -> None:
    """Run pages by themselves; print what their blocks print, or write it into them."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    for page in [Path(name).resolve() for name in arguments if name != "--write"]:
        print(f"== {page.name}")
        with _in_empty_folder():
            if "--write" in arguments:
                write_output(page)
                continue
            for printed, figures in run_page(page.read_text(encoding="utf-8"), page.name):
                print(printed or "(nothing printed)")
                _close(figures)


if __name__ == "__main__":
    main(sys.argv[1:])
