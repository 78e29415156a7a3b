"""Run scikit-learn's own test files, from the installed scikit-learn, on Mercer's classes.

A test file of this folder executes one of scikit-learn's while the classes are swapped by
`mercer.compat.sklearn.patch` (`swapped_tests.executed`); they stay swapped while its tests run.

`CANNOT_PASS` of such a file names the tests that cannot pass, each with the reason. They run all
the same: one that passes fails the run (xfail is strict), and so does a name that is not a test, so
the list can only get shorter. `NOT_SWAPPED`, if a file has it, matches tests of other classes of
scikit-learn, and those are left out.
"""

import re

import numpy as np
import pytest

from mercer.compat.sklearn import patch, unpatch


def pytest_configure(config):
    for mark in ("thread_unsafe", "no_check_spmatrix"):
        config.addinivalue_line("markers", f"{mark}: scikit-learn's own mark")


def pytest_collection_modifyitems(config, items):
    others = [item for item in items if is_of_other_classes(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]
    for item in items:
        if item.path.parent.name != "swapped" or not hasattr(item, "originalname"):
            continue
        # those that matter are asked for by the tests themselves
        item.add_marker(pytest.mark.filterwarnings("ignore"))
        listed = item.module.CANNOT_PASS
        reason = listed.get(item.name, listed.get(item.originalname))
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def is_of_other_classes(item):
    pattern = getattr(getattr(item, "module", None), "NOT_SWAPPED", None)
    return pattern is not None and re.search(pattern, item.name) is not None


@pytest.fixture(autouse=True, scope="module")
def swapped_classes():
    patch(verbose=False)
    yield
    unpatch()


@pytest.fixture
def global_random_seed():
    return 42  # what scikit-learn takes by default


@pytest.fixture
def global_dtype():
    return np.float64
