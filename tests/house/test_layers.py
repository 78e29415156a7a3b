"""Imports only go down: a room never imports from one above it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "mercer"

# top to bottom; rooms of one line are neighbours and may look at one another
LAYERS = [
    {"compat", "testing", "cli"},
    {"selection", "theory"},
    {"machines"},
    {"certificates"},
    {"solvers"},
    {"problems"},
    {"gram"},
    {"kernels"},
    {"backends"},
    {
        "expression",
        "points",
        "sparse_format",
        "array_types",
        "configuration",
        "resources",
        "threads",
        "deadline",
    },
]
HEIGHT = {room: -i for i, layer in enumerate(LAYERS) for room in layer}
NATIVE_ALLOWED = {"backends", "threads"}

FILES = sorted(SOURCE.rglob("*.py"))


def room_of(file: Path) -> str:
    first = file.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported(source: str, package: str = "mercer") -> Iterator[tuple[int, str]]:
    """Return (line, module) for every import of `package`, also inside functions and if-blocks."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == package:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute in this project"
            if node.module == package:  # from mercer import expression: each name may be a room
                yield from ((node.lineno, f"{package}.{alias.name}") for alias in node.names)
            elif node.module and node.module.split(".")[0] == package:
                yield node.lineno, node.module


def upward(file_room: str, source: str) -> list[str]:
    wrong = []
    for line, module in imported(source):
        room = module.split(".")[1] if "." in module else "__init__"
        if room == "_native":
            continue
        if room not in HEIGHT:
            wrong.append(f"line {line}: imports {module}, which is in no layer")
        elif HEIGHT[room] > HEIGHT[file_room]:
            wrong.append(f"line {line}: {file_room} imports {module}, which is above it")
    return wrong


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(SOURCE).as_posix())
def test_imports_go_down(file):
    room = room_of(file)
    if room == "__init__":
        return  # the front door shows every room
    assert room in HEIGHT, f"{room} has no place in the order of the layers"
    assert not upward(room, file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(SOURCE).as_posix())
def test_only_backends_touch_the_compiled_module(file):
    touching = [
        f"line {line}"
        for line, module in imported(file.read_text(encoding="utf-8"))
        if module.split(".")[1:2] == ["_native"]
    ]
    assert not touching or room_of(file) in NATIVE_ALLOWED


def test_every_room_is_in_the_order():
    rooms = {room_of(file) for file in FILES} - {"__init__"}
    assert rooms <= set(HEIGHT)


def test_the_test_sees_a_wrong_import():
    assert upward("gram", "from mercer.solvers import solve")
    assert upward("gram", "def f():\n    from mercer import solvers")
    assert upward("kernels", "import mercer.gram.dense")
    assert not upward("solvers", "from mercer.gram import Gram\nimport numpy")
