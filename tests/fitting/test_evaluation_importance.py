"""What columns are worth: few rows for all of them, more rows for those that matter."""

import numpy as np

from mercer.fitting import evaluation
from mercer.fitting.evaluation import permutation_importance


class Wide:
    """A machine that looks at two of 60 columns, and says that it stores many rows."""

    n_samples_ = 20_000
    seen: list[int]

    def __init__(self):
        self.seen = []

    def predict(self, Z):
        self.seen.append(len(Z))
        return Z[:, 0] + 0.5 * Z[:, 1]


def score(truth, said):
    return -float(np.mean((truth - said) ** 2))


def test_columns_that_matter_are_measured_on_more_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 60))
    truth = rows[:, 0] + 0.5 * rows[:, 1] + 0.1 * rng.normal(size=3000)
    machine, blocks = Wide(), {f"c{j}": [j] for j in range(60)}
    found, note = permutation_importance(machine, rows, blocks, score, truth, 0)
    assert len(found) == 60 and [one.column for one in found[:2]] == ["c0", "c1"]
    assert all(one.drop == 0.0 for one in found[2:])
    few, many = min(machine.seen), max(machine.seen)
    assert few < many / 2 and f"on {few} rows; for the 20" in note and f"on {many} rows" in note
    # the variance of a difference of two independent entries: 2 and 0.5
    np.testing.assert_allclose([found[0].drop, found[1].drop], [2.0, 0.5], rtol=0.2)


def test_one_pass_where_all_rows_can_be_taken(monkeypatch):
    monkeypatch.setattr(evaluation, "_IMPORTANCE_WORK", 1e15)
    rows = np.random.default_rng(0).normal(size=(300, 30))
    machine, blocks = Wide(), {f"c{j}": [j] for j in range(30)}
    found, note = permutation_importance(machine, rows, blocks, score, rows[:, 0], 0)
    assert set(machine.seen) == {300} and note == "5 permutations of each column on 300 rows"
    assert len(found) == 30
