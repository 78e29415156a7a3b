"""For all tests and examples in docstrings."""

import sys
from collections import Counter
from importlib.util import find_spec

import pytest

# modules that are torch's own say so when they are imported: `make test-torch` has it
WITH_TORCH = [
    "src/mercer/backends/torch/*.py",
    "src/mercer/rows/staging.py",
    "tests/helpers/cuda_*.py",
]
collect_ignore_glob = [] if find_spec("torch") else WITH_TORCH


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Call all but each n-th case of a test marked `sampled(n)` slow."""
    seen = Counter()
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None:
            test = item.nodeid.split("[")[0]
            if seen[test] % marker.args[0]:
                item.add_marker("slow")
            seen[test] += 1


@pytest.fixture(autouse=True)
def close_figures():
    """Close what a test or example drew: from the 21st open figure on pyplot warns."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
