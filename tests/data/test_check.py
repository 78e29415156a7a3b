"""Checks before a fit: each mistake is found, and a clean table has no warnings."""

import numpy as np
import pytest

from mercer.data import Finding, Findings, Table, check

RNG = np.random.default_rng(0)
N = 120
CLEAN = Table.of(
    {
        "x": RNG.normal(size=N),
        "town": RNG.choice(["Ulm", "Bern", "Riga"], N),
        "y": RNG.choice(["a", "b"], N),
    }
)


def codes(table, *, level=None, **arguments):
    return {one.code for one in check(table, **arguments) if level in (None, one.level)}


def test_a_clean_table():
    assert len(check(CLEAN, target="y")) == 0
    assert str(check(CLEAN)) == "No findings."
    assert codes(CLEAN.rows([]), target="y") == {"no_rows"}


@pytest.mark.parametrize(
    ("name", "values", "code", "level"),
    [
        ("c", np.full(N, 2.0), "constant", "warning"),
        ("c", [None] * N, "empty", "warning"),
        ("c", np.where(RNG.random(N) < 0.7, np.nan, RNG.normal(size=N)), "gaps", "warning"),
        ("c", np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)), "gaps", "note"),
        ("c", [f"k{k}" for k in range(N)], "identifier", "note"),
        ("user_id", RNG.permutation(N), "identifier", "note"),
        ("c", np.arange(N), "row_number", "warning"),
        ("c", np.where(np.arange(N) == 5, np.inf, RNG.normal(size=N)), "infinite", "error"),
        ("c", ["-" if k % 9 == 0 else str(k % 7) for k in range(N)], "numbers_as_words", "warning"),
        ("c", CLEAN["x"], "copied_column", "warning"),
    ],
)
def test_columns(name, values, code, level):
    assert code in codes(CLEAN.with_column(name, values), level=level, target="y")


def test_leaks():
    words = CLEAN.with_column("result", np.where(CLEAN["y"] == "a", "won", "lost"))
    numbers = CLEAN.with_column(
        "after", np.where(CLEAN["y"] == "a", 1.0, 2.0) + 0.1 * RNG.random(N)
    )
    for table, name in ((words, "result"), (numbers, "after")):
        leaks = [one for one in check(table, target="y") if one.code == "leak"]
        assert [one.columns for one in leaks] == [(name, "y")]
    amount = Table.of({"x": CLEAN["x"], "y": np.exp(CLEAN["x"]), "z": RNG.normal(size=N)})
    assert [one.columns for one in check(amount, target="y") if one.code == "leak"] == [("x", "y")]


def test_targets():
    few = np.where(np.arange(N) < 3, "rare", CLEAN["y"])
    assert "small_class" in codes(CLEAN.with_column("y", few), target="y", level="warning")
    once = np.where(np.arange(N) < 1, "rare", CLEAN["y"])
    assert "small_class" in codes(CLEAN.with_column("y", once), target="y", level="error")
    assert "one_class" in codes(CLEAN.with_column("y", ["a"] * N), target="y", level="error")
    gaps = [None if k < 4 else y for k, y in enumerate(CLEAN["y"])]
    assert "target_gaps" in codes(CLEAN.with_column("y", gaps), target="y")
    ids = [f"k{k}" for k in range(N)]
    assert "target_identifier" in codes(CLEAN.with_column("y", ids), target="y", level="error")
    rare = np.where(np.arange(N) % 30 == 0, "b", "a")
    assert "imbalance" in codes(CLEAN.with_column("y", rare), target="y")
    with pytest.raises(KeyError, match="no column 'z'"):
        check(CLEAN, target="z")


def test_rows_that_come_twice_or_contradict():
    twice = CLEAN.below(CLEAN.rows(slice(0, 5)))
    assert "copies" in codes(twice, level="warning") and "copies" in codes(twice, target="y")
    flipped = CLEAN.rows(slice(0, 5)).with_column(
        "y", ["b" if y == "a" else "a" for y in CLEAN["y"][:5]]
    )
    found = {one.code: one.message for one in check(CLEAN.below(flipped), target="y")}
    assert "5 rows contradict" in found["contradiction"] and "copies" not in found


def test_splits():
    train, test = CLEAN.rows(slice(0, 80)), CLEAN.rows(slice(80, None))
    assert len(check(train, target="y", test=test)) == 0
    both = {one.code: one for one in check(train, target="y", test=CLEAN.rows(slice(70, None)))}
    assert both["both_splits"].level == "error" and "10 of 50" in both["both_splits"].message
    assert "columns_differ" in codes(train, test=test.drop("town"), level="error")
    new = test.with_column("town", ["Oslo"] * len(test))
    assert codes(train, test=new) == {"new_levels"}


def test_findings_are_sorted_and_shown_as_text():
    found = Findings([Finding("note", "b", (), "B <b>."), Finding("error", "a", ("x",), "A.")])
    assert found.codes == ["a", "b"] and str(found) == "error: A.\nnote: B <b>."
    assert [one.code for one in found.errors] == ["a"] and "<b>" not in found._repr_html_()
    assert repr(found) == "<Findings: 1 errors, 0 warnings, 1 notes>" and found[0].columns == ("x",)
