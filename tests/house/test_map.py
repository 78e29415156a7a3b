"""The map of the house in the design document is what imports and a trace say."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def house_map():
    spec = importlib.util.spec_from_file_location("house_map", ROOT / "docs" / "house_map.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(house_map):
    pytest.importorskip("mercer._native")  # the way that is drawn is that of the compiled backend
    page = house_map.PAGE.read_text(encoding="utf-8")
    assert house_map.replaced(page) == page, "run: make map"


def test_the_tree_is_up_to_date(house_map):
    page = house_map.PAGE.read_text(encoding="utf-8")
    assert house_map.tree() in page, "run: make map"


def test_the_tree_begins_the_page(house_map):
    start = house_map.PAGE.read_text(encoding="utf-8").split(house_map.TREE_FIRST)[0]
    assert start.strip() == "# Design"


def test_every_room_has_a_purpose(house_map):
    rooms = {folder.name for folder in house_map.SOURCE.iterdir() if folder.is_dir()}
    nameless = rooms - {"__pycache__"} - set(house_map.PURPOSE) - house_map.DOORS
    assert not nameless, "say what they are for in PURPOSE of docs/house_map.py"
