"""Imports only go down: a room never imports from one above it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "mercer"

# top to bottom; rooms of one line are neighbours and may look at one another
LAYERS = [
    {"__main__", "command"},
    {"studio"},
    {"report", "serve"},
    {"files", "plots"},
    {"fitting"},
    {"compat", "testing"},
    {"reinforcement", "selection", "theory"},
    {"blocks", "certificates", "distributed", "problems", "streaming"},  # doors of what is below
    {"machines"},
    {"solvers"},
    {"approximation"},
    {"gram"},
    {"kernels"},
    {"backends"},
    {"data", "rows"},
    {"arguments", "array_types", "deadline", "expression", "html", "progress", "resources"},
]
HEIGHT = {room: -i for i, layer in enumerate(LAYERS) for room in layer}
# its __init__ is the door of all solvers, and imports each when it is asked for
DOORS = {"solvers/__init__.py"}
NATIVE_ALLOWED = {"backends", "resources"}

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
    if room == "__init__" or file.relative_to(SOURCE).as_posix() in DOORS:
        return  # doors show every room
    assert room in HEIGHT, f"{room} has no place in the order of the layers"
    assert not upward(room, file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(SOURCE).as_posix())
def test_only_backends_touch_the_compiled_module(file):
    touching = [
        f"line {line}"
        for line, module in imported(file.read_text(encoding="utf-8"))
        if module.split(".")[1:2] == ["_native"]
    ]
    assert not touching or room_of(file) in NATIVE_ALLOWED, (
        f"{touching}: call a verb of backends/contract.py instead"
    )


def test_every_room_is_in_the_order():
    rooms = {room_of(file) for file in FILES} - {"__init__"}
    assert rooms <= set(HEIGHT), "give each room its place in LAYERS, above"


def test_the_test_sees_a_wrong_import():
    assert upward("gram", "from mercer.solvers import solve")
    assert upward("gram", "def f():\n    from mercer import solvers")
    assert upward("kernels", "import mercer.gram.dense")
    assert not upward("solvers", "from mercer.gram import Gram\nimport numpy")


# --- one policy: how K is held is known to gram/, problems and solvers alone --------------------

STORAGE = {
    "CachedGram",
    "CenteredGram",
    "DenseGram",
    "FactoredGram",
    "GraphGram",
    "LazyGram",
    "WeightedSumGram",
    "SourceGram",
    "PartGram",
    "PrecomputedGram",
    "ScaledGram",
    "ShiftedGram",
    "StreamedGram",
    "SparseGram",
}
ASKING = {
    "compat",
    "selection",
}  # rooms that ask the Gram instead, as certificates and estimators do


def asks(file: Path) -> bool:
    """Return whether a file may not know how K is held."""
    if room_of(file) != "machines":
        return room_of(file) in ASKING
    text = file.read_text(encoding="utf-8")
    solves = re.search(r"^class \w+\(Solver\)", text, re.MULTILINE)
    return file.stem == "certificate" or bool(not solves and re.search(r"Machine\)|Machine,", text))


def storage_named(source: str) -> list[str]:
    """Return where code, not words, names a class that holds K."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = [node.id] if isinstance(node, ast.Name) else []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        found += [f"line {node.lineno}: {name}" for name in names if name in STORAGE]
    return found


@pytest.mark.parametrize(
    "file",
    [file for file in FILES if asks(file)],
    ids=lambda f: f.relative_to(SOURCE).as_posix(),
)
def test_machines_never_name_how_the_gram_is_held(file):
    named = storage_named(file.read_text(encoding="utf-8"))
    assert not named, "ask the Gram (source, factor, rank, csr, raw) in place of its class"


def test_all_storage_classes_are_known():
    held = set()
    for file in (SOURCE / "gram").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Gram"):
                held.add(node.name)
    assert held - {"Gram"} == STORAGE, (
        "list each class of src/mercer/gram that ends in Gram in STORAGE, above, and no other"
    )


# Selection groups, schedules, keeps journals and scores; numerics belong to solvers.
# no numerics: how many threads BLAS takes is a matter of scheduling
SCHEDULING = {"mercer.backends.lapack"}


def backends_of(source: str) -> list[str]:
    called = [module for _, module in imported(source) if module.split(".")[1:2] == ["backends"]]
    return [module for module in called if module not in SCHEDULING]


def test_selection_computes_nothing_itself():
    selection = SOURCE / "selection"
    calling = {
        file.relative_to(selection).as_posix()
        for file in selection.rglob("*.py")
        if backends_of(file.read_text(encoding="utf-8"))
    }
    assert not calling, "numerics of selection belong to problems and solvers"


def test_the_tests_see_storage_and_backends():
    assert storage_named("from mercer.gram import Gram, LazyGram")
    assert storage_named("import mercer.gram\nisinstance(K, mercer.gram.DenseGram)")
    assert not storage_named('"""A DenseGram, in words."""\nfrom mercer.gram import Gram')
    assert backends_of("from mercer.backends import choose_backend")
    assert not backends_of("from mercer.backends.lapack import one_blas_thread")


# A file named as a function of its package is hidden by it, or hides it, by the order of imports.
HIDDEN = {
    "compat/sklearn/patch",
    "data/check",
    "files/verify",
    "fitting/fit",
    "report/svg/chart",
    "selection/bias_variance",
    "selection/description_length",
}


def test_no_file_is_named_as_a_function_of_its_package():
    found = set()
    for door in SOURCE.glob("*/**/__init__.py"):
        public = re.findall(r'^    "(\w+)",', door.read_text("utf-8"), re.MULTILINE)
        found |= {
            file.relative_to(SOURCE).with_suffix("").as_posix()
            for file in door.parent.glob("*.py")
            if file.stem in public
        }
    assert found <= HIDDEN, f"rename: {sorted(found - HIDDEN)}"
