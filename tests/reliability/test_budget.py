"""The memory budget is kept: peaks of every machine, measured in processes of their own.

What is measured and how is in `benchmarks/arithmetic/budgets.py`, which has the full-size table.
A budget of 10 MB is far below K of 2000 rows: 32 MB in float64, 16 MB in float32. Beside it a fit
may hold what `allowance` says.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.gram import Need, make_gram
from mercer.gram.base import written_out
from mercer.gram.policy import box_bytes, largest_set
from mercer.kernels import Gaussian
from mercer.resources import rows_at_once, square_side

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.arithmetic.budgets import MB, Peak, allowance, cases

ROOT = Path(__file__).resolve().parents[2]
# Linux counts the pages of a process per CPU and adds them up in batches of max(32, 2 CPUs) pages,
# so a reading may be off by one batch for each CPU; a growth is the difference of two readings.
_CPUS = os.cpu_count() or 1
COUNTED_LATE = 2 * max(32, 2 * _CPUS) * _CPUS * 4096  # bytes
ROWS, BUDGET = 2000, 10 * MB
# the same storage as a form that is measured, but minutes of products
SLOW = {
    ("SpectralClustering", "doubly stochastic"),
    ("PCA", "preimages"),
    ("tune", "SVC"),
    ("tune", "SVR"),
    ("tune", "SVR, nu"),
    ("tune", "SVR, squared tube"),
    ("tune", "KernelRidge"),
    ("KernelRidge", "conjugate gradient"),
    ("LogisticRegression", "newton"),
    ("SVC", "C = 100"),
}
NAMES = [(machine, form) for machine, form, _ in cases() if (machine, form) not in SLOW]

_MEASURE = """
import json, sys
from dataclasses import asdict
from benchmarks.arithmetic.budgets import measure
wanted = {tuple(one) for one in json.loads(sys.argv[3])}
found = measure(int(sys.argv[1]), int(sys.argv[2]), lambda *name: name in wanted)
print(json.dumps([asdict(one) for one in found]))
"""

linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc"
)


def peaks_of(names: list[tuple[str, str]], rows: int, budget: int) -> dict[tuple[str, str], Peak]:
    """Measure in a fresh process: pages that other tests left behind would be used again."""
    arguments = [str(rows), str(budget), json.dumps(names)]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [Peak(**one) for one in json.loads(done.stdout.splitlines()[-1])]
    return {(one.machine, one.form): one for one in found}


@pytest.fixture(scope="module")
def peaks():
    return peaks_of(NAMES, ROWS, BUDGET)


@pytest.mark.sampled(12)
@linux
@pytest.mark.parametrize("name", NAMES, ids=" ".join)
def test_every_machine_keeps_the_budget(peaks, name):
    peak = peaks[name]
    refused = peak.ending.startswith("MemoryBudgetError")
    assert refused or "Error" not in peak.ending, peak.ending
    assert peak.fit >= -COUNTED_LATE, peak.ending
    assert peak.most <= BUDGET + allowance(ROWS) + COUNTED_LATE, peak


@pytest.mark.slow
@linux
def test_a_stored_matrix_keeps_the_budget_too():
    """Budgets just above what is estimated for stored matrices: the estimate is the peak."""
    names = [
        ("SVC", "squared slack"),
        ("SVR", "squared tube, no width"),
        ("SVR", "nu"),
        ("LogisticRegression", ""),
        ("FisherDiscriminant", ""),
        ("KernelRidge", "cholesky"),
    ]
    rows, budget = 2000, 80 * MB
    for peak in peaks_of(names, rows, budget).values():
        assert "solved" in peak.ending, peak
        assert peak.most <= budget + allowance(rows) + COUNTED_LATE, peak


@linux
def test_the_measure_sees_what_is_taken():
    """A budget that allows more lets more be taken: the test above measures something."""
    names = [("SVC", "squared slack"), ("NearestMean", "")]
    few, many = (peaks_of(names, 2000, budget * MB) for budget in (10, 1000))
    for name in names:
        assert many[name].fit > few[name].fit + 5 * MB


def test_a_refusal_states_estimate_budget_and_alternatives():
    X = np.random.default_rng(0).standard_normal((3000, 3))
    for machine, y in (
        (mercer.KernelRidge("loo", kernel=Gaussian(1.0), approximation=None), X[:, 0]),
        (mercer.FisherDiscriminant(Gaussian(1.0), approximation=None), X[:, 0] > 0),
        (mercer.PCA(kernel=Gaussian(1.0), approximation=None), None),
    ):
        with mercer.config(memory="20 MB"), pytest.raises(mercer.MemoryBudgetError) as refusal:
            machine.fit(X, y)
        for words in ("MB, but the memory budget is 20 MB", "Alternatives:", "config(memory="):
            assert words in str(refusal.value)


def test_answers_do_not_depend_on_the_budget():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3))
    t = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(1500)
    machine = mercer.SVR(Gaussian(1.0), tube="l2", tol=1e-4)
    free = machine.fit(X, t).predict(X)
    for budget in ("1 MB", "3 MB"):
        with mercer.config(memory=budget):
            machine.fit(X, t)
        assert machine.solution_.solver == "WorkingSets"
        assert machine.certificate_.ok
        np.testing.assert_allclose(machine.predict(X), free, atol=2e-3)


def test_a_fit_under_a_budget_can_be_stopped():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2500, 3))
    asked = []

    def stop(progress):
        asked.append(progress)
        return len(asked) > 3

    machine = mercer.SVR(Gaussian(1.0), tube="l2", epsilon=0.0, callback=stop)
    with mercer.config(memory="2 MB"), pytest.warns(Warning, match="asked to stop"):
        machine.fit(X, X[:, 0])
    assert machine.solution_.status.name == "STOPPED"


def test_blocks_and_sets_follow_the_budget():
    assert rows_at_once(10, 500) == 500
    with mercer.config(memory="1 MB"):
        assert 1 <= rows_at_once(10_000, 500) < rows_at_once(1000, 500) < 500
        assert rows_at_once(10**9, 500) == 1
        side = square_side(8.0, 0.5)
        assert 8 * side**2 <= 500_000 < 8 * (side + 1) ** 2
        small = largest_set(np.float32)
    with mercer.config(memory="100 MB"):
        assert largest_set(np.float32) > 9 * small


def test_the_estimate_of_a_box_counts_variables():
    """The nu form of regression has two variables for a row: what a descent copies is larger."""
    assert box_bytes(100, 200, np.float32) > 2 * box_bytes(100, 100, np.float32)
    X = np.random.default_rng(0).standard_normal((1500, 3))
    with mercer.config(memory="30 MB"):
        one = make_gram(Gaussian(1.0), X, Need.BOX, dtype=np.float32)
        two = make_gram(Gaussian(1.0), X, Need.BOX, dtype=np.float32, copies=2)
    assert (type(one).__name__, type(two).__name__) == ("DenseGram", "LazyGram")


def test_idle_pages_follow_the_budget():
    native = pytest.importorskip("mercer._native")
    X = np.random.default_rng(0).standard_normal((2000, 3))
    make_gram(Gaussian(1.0), X, Need.PRODUCTS)
    with mercer.config(memory="50 MB"):
        make_gram(Gaussian(1.0), X, Need.PRODUCTS)
        assert native.idle_memory() <= 50 * MB // 32
    make_gram(Gaussian(1.0), X, Need.PRODUCTS)
    make_gram(Gaussian(1.0), X[:10], Need.PRODUCTS)
    assert native.idle_memory() > 30 * MB  # without a budget pages are kept again
    native.release_memory()


def test_a_matrix_is_written_out_in_blocks():
    X = np.random.default_rng(0).standard_normal((700, 3))
    gram = make_gram(Gaussian(1.0), X, Need.PRODUCTS)
    with mercer.config(memory="1 MB"):
        np.testing.assert_array_equal(written_out(gram), gram.dense())
