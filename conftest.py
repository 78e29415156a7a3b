"""For all tests and examples in docstrings."""

import sys

import pytest


@pytest.fixture(autouse=True)
def close_figures():
    """Close what a test or example drew: from the 21st open figure on pyplot warns."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
