"""Labels or a quantity: one rule, which `fit`, `choose` and `check` share."""

import numpy as np
import pytest

from mercer.data import Table, check
from mercer.data.column import are_labels
from mercer.fitting.target import read_target

LETTERS = np.repeat(np.arange(1, 27), 4)
CASES = [
    (np.array(["a", "b"]), True),
    (np.array([True, False]), True),
    (np.array([0, 1, 1, 2]), True),
    (np.array([3.0, 80.0, 1000.0]), True),
    (LETTERS, True),
    (LETTERS - 1.0, True),
    (LETTERS[:-2], False),  # the last class has two rows
    (LETTERS + 4, False),
    (np.repeat(2 * np.arange(20), 4), False),
    (np.repeat(np.arange(40), 4), False),
    (np.arange(100), False),
    (np.array([0.5, 1.5, 2.0]), False),
    (np.array([0.0, 1.0, np.inf]), False),
    (np.array(["2020-01-01"], dtype="M8[D]"), False),
    (np.zeros((4, 2)), False),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_rule(case):
    y, labels = CASES[case]
    assert are_labels(y) is labels


@pytest.mark.parametrize("y", [LETTERS, LETTERS + 4, np.repeat(np.arange(6), 20)])
def test_fit_and_check_agree(y):
    table = Table.of({"x": np.sqrt(np.arange(len(y))), "y": y, "z": y % 7 + 0.25})
    labels = are_labels(y)
    assert (read_target(table, "y", None).task == "classification") is labels
    small = any(one.code == "small_class" for one in check(table, "y"))
    assert small is (labels and len(set(y)) == 26)
