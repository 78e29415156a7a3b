"""The map of the house: the tree, rooms from the imports, and the way of one fit from a trace.

    python docs/house_map.py

writes `docs/images/rooms.svg` and the two parts of `docs/design.md` between markers: the tree, at
the start, and the rooms. A test fails when a part is not what the code says, so the map stays true.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "mercer"
PAGE = ROOT / "docs" / "design.md"
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
FIRST = "<!-- made by docs/house_map.py: do not edit -->"
LAST = "<!-- end of what docs/house_map.py makes -->"
TREE_FIRST = "<!-- the tree, made by docs/house_map.py: do not edit -->"
TREE_LAST = "<!-- end of the tree -->"

PURPOSE = {
    "command": "the command `mercer`",
    "report": "one HTML page about a fit",
    "studio": "a local page that shows machines at work",
    "serve": "answers over HTTP",
    "plots": "pictures, in scikit-learn's manner",
    "files": "models as files that run no code; LIBSVM's files, ONNX",
    "fitting": "from a table to a model: prepare, choose, tune, calibrate",
    "compat": "scikit-learn's names and signatures",
    "testing": "checks for kernels, Grams, solvers and backends of one's own",
    "selection": "which parameters, which kernel",
    "theory": "bounds, with their assumptions",
    "reinforcement": "action values from transitions, and two worlds",
    "machines": "families of methods: problem, solvers, certificate, estimators, blocks",
    "solvers": "what solvers of several families share; eigenpairs",
    "approximation": "features in place of a kernel: landmarks, frequencies, sketches",
    "gram": "how K is held, and when",
    "kernels": "what similarity is: expressions",
    "backends": "where arithmetic runs: NumPy, C++",
    "rows": "what X is: arrays, sparse, on a device, in blocks, on a cluster",
    "data": "tables: readers, kinds of columns, checks, preparation",
    "expression": "formulas over pairwise statistics, as data",
    "resources": "what a call may use: settings, memory, threads",
}


# doors of other rooms, without files of their own
DOORS = {"blocks", "certificates", "distributed", "problems", "streaming"}
# the door of solvers names all of them; tables ask what an array is
HANDED_OVER = {("solvers", "machines"), ("data", "rows")}


def sentence(file: Path) -> str:
    """Return the first sentence of the docstring of a file, on one line."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.?]) (?=[A-Z])", first)[0].removesuffix(".")


def tree() -> str:
    """Return folders and the files of the ground floor, each with the sentence of its docstring."""
    named = [(folder, folder / "__init__.py") for folder in SOURCE.rglob("*") if is_room(folder)]
    named += [(file, file) for file in SOURCE.glob("*.py") if not file.stem.startswith("__")]
    lines = ["mercer/"]
    for path, described in sorted(named):
        parts = path.relative_to(SOURCE).parts
        name = "  " * len(parts) + parts[-1] + ("/" if path.is_dir() else "")
        lines.append(f"{name:<24} {sentence(described)}")
    return "\n".join([TREE_FIRST, "", "```text", *lines, "```", "", TREE_LAST])


def is_room(folder: Path) -> bool:
    """Return whether a folder has files of its own, and is not only the door of other rooms."""
    is_door = folder.parent == SOURCE and folder.name in DOORS
    return (folder / "__init__.py").exists() and not is_door


def room_of(file: Path) -> str:
    """Return the room of a file: its first folder, or `expression`; "" for the ground floor."""
    first = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    return first if first in PURPOSE else ""


def imported_rooms(file: Path) -> set[str]:
    """Return the rooms that a file imports from."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mercer":
            parts = (node.module or "").split(".")
            names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
            found |= {name for name in names if name in PURPOSE}
    found -= {above for room, above in HANDED_OVER if room == room_of(file)}
    return found


def rooms() -> tuple[dict[str, tuple[int, int]], Counter[tuple[str, str]]]:
    """Return files and lines of each room, and how many files import from one room to another."""
    size: dict[str, tuple[int, int]] = {}
    edges: Counter[tuple[str, str]] = Counter()
    for file in sorted(SOURCE.rglob("*.py")):
        room = room_of(file)
        if not room:
            continue
        files, lines = size.get(room, (0, 0))
        size[room] = files + 1, lines + len(file.read_text(encoding="utf-8").splitlines())
        edges.update((room, other) for other in imported_rooms(file) if other != room)
    return size, edges


def heights(edges: Counter[tuple[str, str]]) -> dict[str, int]:
    """Return how many rooms deep each room stands on others."""
    below = {room: {b for a, b in edges if a == room} for room in PURPOSE}
    found: dict[str, int] = {}

    def height(room: str) -> int:
        if room not in found:
            found[room] = 1 + max((height(other) for other in below[room]), default=-1)
        return found[room]

    for room in PURPOSE:
        height(room)
    return found


def one_fit() -> None:
    """Fit kernel ridge regression: the straight way through the rooms."""
    from mercer import KernelRidge  # noqa: PLC0415  traced when called, not when this file is read
    from mercer.kernels import Gaussian  # noqa: PLC0415

    X = np.linspace(0.0, 1.0, 24)[:, None]
    KernelRidge(0.1, kernel=Gaussian(0.5)).fit(X, np.sin(6 * X[:, 0]))


def walk(run: Callable[[], None]) -> list[tuple[str, str]]:
    """Return the files that a call comes through, in the order of first visits, with functions."""
    seen: dict[str, dict[str, None]] = {}

    def note(frame: Any, event: str, _: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if event != "call" or not file.is_relative_to(SOURCE) or "<" in frame.f_code.co_name:
            return
        name = file.relative_to(SOURCE).as_posix()
        seen.setdefault(name, {})[frame.f_code.co_qualname] = None

    run()  # what is imported and set up only once is no part of the way
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return [(file, _short(names)) for file, names in seen.items()]


def _short(names: dict[str, None], most: int = 3) -> str:
    shown = [name for name in names if "<locals>" not in name and "__" not in name] or list(names)
    return ", ".join(f"`{name}`" for name in shown[:most]) + (", ..." if len(shown) > most else "")


def block() -> str:
    """Return the generated part of the page."""
    edges = rooms()[1]
    tall = heights(edges)
    lines = [FIRST, ""]
    lines += ["| room | what it is for | imports from |", "| --- | --- | --- |"]
    for room in sorted(PURPOSE, key=lambda name: (-tall[name], name)):
        below = sorted({b for a, b in edges if a == room}, key=lambda name: (-tall[name], name))
        lines.append(f"| `{room}` | {PURPOSE[room]} | {', '.join(below) or '-'} |")
    way = walk(one_fit)
    lines += [
        "",
        f"The way of `KernelRidge(0.1, kernel=Gaussian(0.5)).fit(X, y)`, {len(way)} files:",
        "",
    ]
    picture = "![One fit, file by file, and the rooms it comes through](images/rooms.svg)"
    lines += [picture, ""]
    lines += [f"1. `{file}`: {names}" for file, names in way]
    return "\n".join([*lines, "", LAST])


def replaced(page: str) -> str:
    """Return the page with its generated part made anew."""
    parts = ((TREE_FIRST, tree, TREE_LAST), (FIRST, block, LAST))
    for first, made, last in parts:
        before, rest = page.split(first, 1)
        page = before + made() + rest.split(last, 1)[1]
    return page


def draw() -> None:
    """Draw the way of one fit: a line for each file, a column for each room it comes through."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  not needed by the test

    tall = heights(rooms()[1])
    way = [SOURCE / file for file, _ in walk(one_fit)]
    way = [file for file in way if room_of(file)]
    visited = sorted({room_of(file) for file in way}, key=lambda name: (-tall[name], name))
    x = [visited.index(room_of(file)) for file in way]
    plt.rcParams["svg.hashsalt"] = "mercer"  # the same bytes from the same code
    figure, axes = plt.subplots(figsize=(7.5, 0.21 * len(way) + 0.8))
    for k, room in enumerate(visited):
        axes.axvspan(k - 0.5, k + 0.5, color="#eef3fa" if k % 2 else "#f7f9fc", lw=0)
        axes.text(k - 0.4, -1.2, room, rotation=35, fontsize=9.5, weight="bold")
    axes.step(x, range(len(way)), where="post", color="#b9c6d9", lw=1.1, zorder=1)
    axes.plot(x, range(len(way)), "o", color="#3b5b8c", ms=4.5, zorder=2)
    paper = {"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 0.6}
    for k, file in enumerate(way):
        axes.text(x[k] + 0.14, k, file.stem, va="center", fontsize=8.5, bbox=paper, zorder=3)
    axes.set(xlim=(-0.6, len(visited) + 0.6), ylim=(len(way), -1.0))
    axes.axis("off")
    figure.savefig(PICTURE, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw()
