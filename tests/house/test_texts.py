"""The map of the texts: objects, parameters, tests and pages that it names exist."""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "texts.md"
TESTS = ROOT / "tests"
LINK = re.compile(r"\]\(([^)]+)\)")
CODE = re.compile(r"`([^`]+)`")


def rows() -> list[list[str]]:
    """Return the cells of each row of each table, without headings and rules."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    tables = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    cells = [[cell.strip() for cell in row] for row in tables]
    return [row for row in cells if row[0] not in {"place", "---"}]


ROWS = rows()


def resolve(name: str) -> Any:
    """Return what a dotted name below `mercer` stands for."""
    found: Any = importlib.import_module("mercer")
    for part in name.split("."):
        if not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_text_is_mapped():
    page = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", page, flags=re.MULTILINE) == [
        "Welling",
        "Smola and Vishwanathan",
        "Course lectures",
        "Shashua",
        "Classifier lecture",
    ]
    assert len(ROWS) >= 200
    assert all(len(row) == 5 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}"[:60])
def test_what_a_row_names_exists(row):
    place, _, objects, tests, shown = row
    assert CODE.findall(objects), f"{place}: no object"
    for text in CODE.findall(objects):
        called = ast.parse(text, mode="eval").body
        found = resolve(text.split("(")[0])
        if isinstance(called, ast.Call):
            names = inspect.signature(found).parameters
            assert {keyword.arg for keyword in called.keywords} <= set(names), text
    assert CODE.findall(tests), f"{place}: no test"
    for text in CODE.findall(tests):
        path, name = text.split("::")
        assert name in functions(path), f"{place}: {text} is gone"
    assert LINK.findall(shown), f"{place}: not shown"
    for link in LINK.findall(shown):
        source = (PAGE.parent / link).resolve()
        if "gallery" in source.parts:  # written when the pages are built, from examples/
            source = ROOT / "examples" / source.parent.name / f"{source.stem}.py"
        assert source.exists(), f"{place}: {link} is gone"


def test_every_test_of_the_texts_is_on_the_map():
    named = {text for row in ROWS for text in CODE.findall(row[3])}
    for file in (TESTS / "texts").glob("test_*.py"):
        written = {f"texts/{file.name}::{name}" for name in functions(f"texts/{file.name}")}
        tests = {text for text in written if text.split("::")[1].startswith("test_")}
        assert tests <= named, f"not on the map: {sorted(tests - named)}"
