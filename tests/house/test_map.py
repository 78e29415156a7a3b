"""The architecture page: its tree is up to date, and its two walks name the files of the fits."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer import SVC, KernelRidge
from mercer.approximation import Nystrom
from mercer.backends import choose_backend
from mercer.blocks import FileBlocks
from mercer.kernels import Gaussian

sys.path.insert(0, str(Path(__file__).parent))

from test_layers import LAYERS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "mercer"
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def house_map():
    spec = importlib.util.spec_from_file_location("house_map", ROOT / "docs" / "house_map.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tree_is_up_to_date(house_map):
    assert house_map.replaced(PAGE) == PAGE, "run: make map"


def test_every_folder_and_file_is_in_the_tree(house_map):
    names = {path.stem for path in SOURCE.iterdir() if path.suffix in {"", ".py"}}
    shown = set(house_map.PURPOSE) | house_map.PUBLIC | {"__init__", "__main__", "__pycache__"}
    assert names <= shown, "add them to PURPOSE in docs/house_map.py"
    assert house_map.PUBLIC | set(house_map.PURPOSE) <= names, "these are gone: docs/house_map.py"


def test_every_family_is_in_the_tree(house_map):
    families = {file.parent.name for file in SOURCE.glob("machines/*/__init__.py")}
    assert families == set(house_map.FAMILIES), "list them in FAMILIES of docs/house_map.py"


def test_imports_go_down_the_tree(house_map):
    depth = [
        next(k for k, layer in enumerate(LAYERS) if name in layer) for name in house_map.PURPOSE
    ]
    assert depth == sorted(depth), (
        "order PURPOSE in docs/house_map.py like LAYERS in test_layers.py"
    )


def test_the_page_is_short():
    assert len(PAGE.split()) <= 2500


compiled = pytest.mark.skipif(
    type(choose_backend()).__name__ != "Native",
    reason="the walks are those of the compiled backend",
)


def visited(run):
    """Return the files of the library that a call enters."""
    run()  # imports and one-time work
    names = set()
    sys.setprofile(lambda frame, event, _: names.add(frame.f_code.co_filename))
    try:
        run()
    finally:
        sys.setprofile(None)
    files = [Path(name) for name in names]
    return {f.relative_to(SOURCE).as_posix() for f in files if f.is_relative_to(SOURCE)}


def walk(heading):
    """Return the Python files that a section names."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {name for name in re.findall(r"`([\w/]+\.py)`", section) if (SOURCE / name).exists()}


@compiled
def test_a_fit_in_memory_enters_the_files_of_its_walk():
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = np.sign(X[:, 0] * X[:, 1])
    files = visited(lambda: SVC(kernel=Gaussian(1.0)).fit(X, y).certificate_)
    named = walk("Walk 1: `SVC` in memory")
    assert len(named) >= 15
    assert named <= files


@compiled
def test_a_fit_over_files_enters_the_files_of_its_walk(tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 3))
    table = np.column_stack([X, np.sin(X[:, 0])])
    for k in range(3):
        part = table[30 * k : 30 * k + 30]
        np.savetxt(tmp_path / f"{k}.csv", part, delimiter=",", header="a,b,c,y", comments="")
    paths = sorted(map(str, tmp_path.glob("*.csv")))

    def run():
        blocks = FileBlocks(paths, target="y")
        KernelRidge(0.1, kernel=Gaussian(1.0), approximation=Nystrom(20)).fit(blocks)

    named = walk("Walk 2: `KernelRidge` over files")
    assert len(named) >= 12
    assert named <= visited(run)
