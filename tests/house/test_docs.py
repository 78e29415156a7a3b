"""The documentation is complete: every public name is in it. Its code runs when it is built."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MODULES = [
    "mercer",
    "mercer.kernels",
    "mercer.gram",
    "mercer.problems",
    "mercer.solvers",
    "mercer.certificates",
    "mercer.backends",
    "mercer.blocks",
    "mercer.streaming",
    "mercer.data",
    "mercer.selection",
    "mercer.fitting",
    "mercer.testing",
    "mercer.theory",
    "mercer.reinforcement",
    "mercer.plots",
    "mercer.compat.sklearn",
    "mercer.files",
    "mercer.report",
]


def listed(page):
    """Return the qualified names in the autosummary tables of an API page."""
    names, module, inside = set(), "", False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split("::")[1].strip()
        if line.strip():
            inside = line.startswith(".. autosummary::") or (inside and line.startswith("   "))
        entry = line.strip()
        if inside and entry and not entry.startswith((":", "..")):
            names.add(f"{module}.{entry}")
    return names


NAMES = set().union(*(listed(page) for page in (DOCS / "api").glob("*.rst")))


def is_listed(module, name):
    # what the top re-exports may be described in its own room
    last = {entry.rsplit(".", 1)[1] for entry in NAMES}
    return f"{module}.{name}" in NAMES or (module == "mercer" and name in last)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module):
    public = importlib.import_module(module).__all__
    missing = [name for name in public if not is_listed(module, name)]
    page = f"docs/api/{module.split('.')[1] if '.' in module else module}.rst"
    assert not missing, f"add these to a table of {page}: {missing}"


@pytest.mark.parametrize("entry", sorted(NAMES))
def test_every_entry_of_the_reference_exists(entry):
    home, name = entry.rsplit(".", 1)
    assert name in importlib.import_module(home).__all__, (
        f"export {name} in {home}, or take it off docs/api"
    )


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(module):
    room = importlib.import_module(module)
    assert room.__doc__
    public = {name: getattr(room, name) for name in room.__all__}
    described = {n: x for n, x in public.items() if inspect.isclass(x) or inspect.isroutine(x)}
    silent = [name for name, x in described.items() if not (inspect.getdoc(x) or "").strip()]
    assert not silent, "these need a docstring: formula, parameters, an example that runs"


def test_pictures_and_pages_that_are_linked_exist():
    wrong = []
    for page in DOCS.rglob("*.md"):
        if "_build" in page.parts or "gallery" in page.relative_to(DOCS).parts:
            continue
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            made_by_the_build = "gallery/" in link
            if "://" in link or made_by_the_build:
                continue
            if not (page.parent / link).exists():
                wrong.append(f"{page.relative_to(DOCS)}: {link}")
    assert not wrong


def test_coverage_names_tests_that_exist():
    text = (DOCS / "coverage.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[^`]+)`", text))
    assert named
    missing = sorted(name for name in named if not (ROOT / name).is_file())
    assert not missing, "docs/coverage.md names tests that have moved or gone"
