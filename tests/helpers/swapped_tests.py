"""Test files of the installed scikit-learn, executed with Mercer's classes in place of its own."""

import importlib.util
from collections.abc import Collection
from pathlib import Path

import pytest

from mercer.compat.sklearn import patch, unpatch


def executed(name):
    """Return what the test file `name` of scikit-learn defines while classes are swapped."""
    file = Path(importlib.util.find_spec(name).origin)
    scope = {"__name__": name, "__package__": name.rpartition(".")[0], "__file__": str(file)}
    patch(verbose=False)
    try:
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), scope)
    finally:
        unpatch()
    tests = {key: value for key, value in scope.items() if not key.startswith("__")}
    for test in tests.values():
        _read_parameters(getattr(test, "pytestmark", []))
    return tests


def _read_parameters(marks):
    """Make lists of the iterators that scikit-learn hands to pytest, which no longer likes them."""
    for i, mark in enumerate(marks):
        if mark.name == "parametrize" and not isinstance(mark.args[1], Collection):
            names, values = mark.args
            marks[i] = pytest.mark.parametrize(names, list(values), **mark.kwargs).mark
