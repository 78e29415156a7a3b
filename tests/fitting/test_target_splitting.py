"""Splits: seeded, in their shares, the same for any order of rows and columns."""

import numpy as np
import pytest
from helpers.mixed_tables import labelled, measured

from mercer.data import Table
from mercer.fitting import split
from mercer.fitting.target import row_keys


def test_every_row_is_on_one_side_with_classes_in_their_shares():
    table = Table.of(labelled())
    parts = split(table, "sick", task="classification", test=0.25)
    rows = np.concatenate([parts.train_rows, parts.held_out_rows])
    assert sorted(rows.tolist()) == list(range(len(table)))
    share = np.mean(table["sick"] == "yes")
    assert np.mean(parts.held_out_target == "yes") == pytest.approx(share, abs=0.02)
    assert len(parts.held_out) == pytest.approx(60, abs=2)
    assert "sick" not in parts.train.columns
    assert parts.train_target.tolist() == table["sick"][parts.train_rows].tolist()


def test_another_seed_is_another_split():
    table = Table.of(measured())
    one, two, same = (
        split(table, "cost", task="regression", random_state=seed) for seed in (0, 1, 0)
    )
    assert one.held_out_rows.tolist() == same.held_out_rows.tolist()
    assert set(one.held_out_rows.tolist()) != set(two.held_out_rows.tolist())


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_orders_of_rows_and_columns_do_not_matter(task):
    table = Table.of(labelled() if task == "classification" else measured())
    target = table.columns[-1]
    turn = np.random.default_rng(5).permutation(len(table))
    turned = table.rows(turn)[table.columns[::-1]]
    one = split(table, target, task=task)
    other = split(turned, target, task=task)
    assert one.held_out_rows.tolist() == turn[other.held_out_rows].tolist()
    assert one.train_rows.tolist() == turn[other.train_rows].tolist()


def test_equal_rows_stay_together():
    columns = {"a": np.repeat(np.arange(30.0), 4), "b": ["x", "y"] * 60}
    table = Table.of(columns).with_column("y", np.repeat(["u", "v"], 60))
    parts = split(table, "y", task="classification", test=0.3)
    sides = [set(row_keys(part).tolist()) for part in (parts.train, parts.held_out)]
    assert not sides[0] & sides[1]
    assert len(parts.held_out) > 20


def test_keys_tell_entries_and_columns_apart():
    table = Table.of({"a": [1.0, 2.0, 1.0, np.nan], "b": [2.0, 1.0, 2.0, 1.0]})
    keys = row_keys(table)
    assert keys[0] == keys[2]
    assert len(set(keys.tolist())) == 3
    assert row_keys(table[["b", "a"]]).tolist() == keys.tolist()


def test_small_classes_stay_with_those_learnt_from():
    table = Table.of({"x": np.arange(23.0), "y": ["a"] * 10 + ["b"] * 10 + ["c"] * 3})
    parts = split(table, "y", task="classification", test=0.5)
    assert (parts.train_target == "c").sum() >= 2
