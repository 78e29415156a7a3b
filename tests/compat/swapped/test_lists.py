"""The lists of what cannot pass name tests that there are, and say why."""

import importlib
from pathlib import Path

import pytest

FILES = sorted(f.stem for f in Path(__file__).parent.glob("test_*.py") if f.stem != "test_lists")
CANNOT_PASS = {}


@pytest.mark.parametrize("name", FILES)
def test_listed_tests_exist(name, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    module = importlib.import_module(name)
    for test, reason in module.CANNOT_PASS.items():
        assert callable(getattr(module, test.split("[")[0])), test
        assert reason
