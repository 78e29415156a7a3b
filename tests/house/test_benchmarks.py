"""The benchmark harness itself: turns, judgements, ratios. No timing is tested."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.arithmetic import gram
from benchmarks.harness import Case, Row, as_table, machine, run
from benchmarks.regression import ridge


def test_contestants_take_turns_and_are_judged():
    order = []
    case = Case(
        "counting",
        lambda: order.append("ours") or 1,
        {"rival": lambda: order.append("rival") or 2},
        lambda answer: f"answer {answer}",
        {"rival": 3.0},
        repeats=3,
        rival_repeats=2,
    )
    (row,) = run(case)
    assert order == ["ours", "rival", "ours", "rival", "ours"]
    assert (row.ours_judged, row.rival_judged, row.goal) == ("answer 1", "answer 2", 3.0)


def test_a_table_row_says_how_many_times_faster():
    table = as_table([Row("work", "rival", 0.5, 2.0, 3.0, "ok", "ok")])
    assert "| work | rival | **4.0** | 3 | 0.500 | 2.000 | ok | ok |" in table
    assert "threads" in machine()


def test_the_rivals_compute_the_same():
    X = gram.data(300, 7)
    K = gram.LibraryGram(X, 0.1)()
    kernel = gram.Gaussian(np.sqrt(5.0))
    np.testing.assert_allclose(K, kernel(X), atol=1e-5)
    assert gram.error_of(X, kernel, 50)(K).startswith("error")
    X, y = ridge.data(60)
    theirs = ridge.TheirRidge(kernel="rbf", gamma=0.125, alpha=0.1).fit(X, y).dual_coef_
    assert float(ridge.judge(X, y, 0.1)(theirs).split()[1]) < 1e-10


def test_parts_that_did_not_run_keep_their_sections(tmp_path, monkeypatch):
    from benchmarks import run as book

    monkeypatch.setattr(book, "PAGE", tmp_path / "benchmarks.md")
    parts = {"a": ("First", lambda: "old", ""), "b": ("Second", lambda: "text", "note")}
    monkeypatch.setattr(book, "PARTS", parts)
    book.main([])
    parts["a"] = ("First", lambda: "new", "")
    book.main(["a"])
    page = (tmp_path / "benchmarks.md").read_text()
    assert page.index("## First\n\nnew") < page.index("## Second\n\ntext\n\nnote")
    assert "old" not in page


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own account")
def test_a_lazy_product_stays_within_its_budget():
    from benchmarks.arithmetic import memory

    line = memory.cases(n=6000, budget="30 MB")
    number, unit = line.rstrip(".").split()[-2:]
    assert float(number) * {"bytes": 1, "kB": 1e3, "MB": 1e6}[unit] < 30e6
