"""Clusters solved apart as a start: feasible, and the end is that of a stored matrix."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import mercer
from mercer import SVC
from mercer.certificates import certify
from mercer.gram import LazyGram, PartGram, PrecomputedGram, ShiftedGram, Source
from mercer.kernels import Constant, Gaussian, Linear, resolve
from mercer.machines.svm import problem as svm
from mercer.machines.svm import subset_descent
from mercer.problems import Many
from mercer.rows.points import row_count
from mercer.solvers import SMO, Gap, Status, WorkingSets, solve
from mercer.solvers.base import Watch

ROWS, GROUPS = 600, 6


def groups_of_rows(n=ROWS, seed=0):
    """Return rows about six far centres, which of them each is about, and a border in each."""
    rng = np.random.default_rng(seed)
    centres = 12.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]])
    group = rng.integers(0, GROUPS, n)
    about = rng.standard_normal((n, 2))
    signs = np.where(about[:, 0] * about[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return centres[group] + about, group, signs


X, GROUP, SIGNS = groups_of_rows()
KERNEL = Gaussian(3.0)


def source(rows=X, kernel=KERNEL, dtype=np.float64):
    return Source(kernel.expression(), rows, dtype, True)


def lazy(rows=X, kernel=KERNEL):
    return LazyGram(source(rows, kernel))


def objective(problem, b):
    smooth = 0.5 * b @ (problem.gram @ b) - problem.linear @ b
    return smooth + problem.epsilons @ np.abs(b)


@pytest.fixture
def starts(monkeypatch):
    """Make sizes so small that some hundred rows are many; return the starts from clusters."""
    seen = []
    monkeypatch.setattr(subset_descent, "_AT_ONCE", 200)
    for name, value in {"_LEAST_SAMPLED": 64, "_ENTRIES_PER_PART": 0.0}.items():
        monkeypatch.setattr(subset_descent, name, value)
    for name, value in {"SAMPLED": 8, "ONE_IN": 4}.items():
        monkeypatch.setattr(subset_descent, name, value)
    for name, value in {"_ROWS": 100, "_SEEN": 20}.items():
        monkeypatch.setattr(subset_descent, name, value)

    class Seen(subset_descent.SideBySide):
        def __init__(self, *given):
            super().__init__(*given)
            self.clusters = []
            seen.append(self)

        def apart(self, points):
            self.clusters.append(points)
            return super().apart(points)

    monkeypatch.setattr(subset_descent, "SideBySide", Seen)
    return seen


def without(monkeypatch):
    monkeypatch.setattr(subset_descent, "LEAST_USED", np.inf)


def found(start, part=0):
    return start.answers[part][0].b


# --- clusters ------------------------------------------------------------------------------------


def test_clusters_are_those_of_the_rows(monkeypatch):
    monkeypatch.setattr(subset_descent, "_ROWS", 100)
    pieces = subset_descent.clusters(source(), np.arange(ROWS), 400, Watch())
    labels = np.empty(ROWS, dtype=int)
    for number, piece in enumerate(pieces):
        assert (np.diff(piece) > 0).all()
        labels[piece] = number
    assert sorted(np.concatenate(pieces)) == list(range(ROWS))
    assert adjusted_rand_score(GROUP, labels) == 1.0


def test_points_that_no_programme_has_are_in_no_cluster(monkeypatch):
    monkeypatch.setattr(subset_descent, "_ROWS", 50)
    some = np.arange(1, ROWS, 2)
    pieces = subset_descent.clusters(source(), some, 300, Watch())
    assert sorted(np.concatenate(pieces)) == some.tolist()


def test_large_clusters_are_cut_in_fair_samples(monkeypatch):
    monkeypatch.setattr(subset_descent, "_ROWS", 100)
    monkeypatch.setattr(subset_descent, "_SEEN", 5)
    pieces = subset_descent.clusters(source(), np.arange(ROWS), 30, Watch())
    assert sorted(np.concatenate(pieces)) == list(range(ROWS))
    assert max(map(len, pieces)) <= 30
    spans = [np.ptp(piece) for piece in pieces]
    assert min(spans) > ROWS / 2  # of the whole range, not of its beginning


def test_rows_without_clusters_are_left_alone(monkeypatch):
    monkeypatch.setattr(subset_descent, "_ROWS", 100)
    rng = np.random.default_rng(0)
    scattered = rng.standard_normal((ROWS, 50))
    assert (
        subset_descent.clusters(source(scattered, Gaussian(5.0)), np.arange(ROWS), 400, Watch())
        is None
    )
    equal = np.ones((ROWS, 2))
    assert subset_descent.clusters(source(equal), np.arange(ROWS), 400, Watch()) is None
    assert subset_descent.clusters(source(), np.arange(150), 400, Watch()) is None  # one cluster


def test_the_share_between_clusters_is_that_of_variances(monkeypatch):
    seen = []
    share = subset_descent._share_between
    monkeypatch.setattr(subset_descent, "_ROWS", 100)
    monkeypatch.setattr(
        subset_descent, "_share_between", lambda *given: seen.append(share(*given)) or seen[-1]
    )
    subset_descent.clusters(source(kernel=Linear()), np.arange(ROWS), 400, Watch())
    kept = np.linspace(0, ROWS - 1, 40 * GROUPS).astype(int)
    rows, label = X[kept], GROUP[kept]
    within = sum(((rows[label == g] - rows[label == g].mean(0)) ** 2).sum() for g in range(GROUPS))
    assert seen[0] == pytest.approx(1 - within / ((rows - rows.mean(0)) ** 2).sum(), rel=1e-9)


def test_units_of_the_kernel_do_not_matter(starts):
    answers = []
    for factor in (1.0, 1024.0, 2.0**-10):  # powers of two: not a bit differs
        problem = svm.svc(lazy(kernel=Constant(factor) * KERNEL), SIGNS, np.full(ROWS, 8 / factor))
        answers.append(factor * solve(problem, WorkingSets(tol=1e-6)).value.coef)
    assert len(starts) == 3
    for start, factor in zip(starts, (1.0, 1024.0, 2.0**-10), strict=True):
        assert np.array_equal(factor * found(start), found(starts[0]))
    for answer in answers[1:]:
        assert np.array_equal(answer, answers[0])


# --- starts and ends -----------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_start_is_the_answer_to_each_cluster(starts, C):
    problem = svm.svc(lazy(), SIGNS, np.full(ROWS, C))
    solve(problem)
    b = found(starts[0])
    assert ((problem.lower <= b) & (b <= problem.upper)).all()
    assert abs(b.sum()) < 1e-9 * np.abs(b).sum()
    assert len(starts[0].clusters) >= GROUPS
    for rows in starts[0].clusters:
        assert abs(b[rows].sum()) < 1e-9 * np.abs(b).sum()
        alone = svm.svc(PrecomputedGram(KERNEL(X[rows])), SIGNS[rows], np.full(len(rows), C))
        best = objective(alone, solve(alone, SMO(tol=1e-8)).value.coef)
        assert best <= objective(alone, b[rows]) + 1e-9 * abs(best)
        assert objective(alone, b[rows]) <= 0.99 * best


def programmes(rows=X, kernel=KERNEL):
    """Return a programme of each kind, on a Gram that is not stored."""
    rng = np.random.default_rng(1)
    n = row_count(rows)
    weights = rng.integers(1, 4, n).astype(float)
    targets = SIGNS[:n] + 0.3 * rng.standard_normal(n)
    gram = lazy(rows, kernel)
    return {
        "svc": svm.svc(gram, SIGNS[:n], np.full(n, 10.0)),
        "weighted": svm.svc(gram, SIGNS[:n], 10.0 * weights),
        "squared slack": svm.svc_l2(gram, SIGNS[:n], np.full(n, 10.0)),
        "svr": svm.svr(gram, targets, np.full(n, 10.0), 0.1),
        "squared tube": svm.svr_l2(gram, targets, np.full(n, 10.0), 0.1),
    }


@pytest.mark.parametrize("kind", list(programmes()))
def test_the_end_is_that_of_a_stored_matrix_and_of_other_starts(starts, kind, monkeypatch):
    problem = programmes()[kind]
    solution = solve(problem, WorkingSets(tol=1e-8, criterion=Gap()))
    assert len(starts) == 1 and np.isfinite(found(starts[0])).all()
    judged = certify(problem, solution.value)
    assert solution.status is Status.SOLVED and judged.ok, judged
    without(monkeypatch)
    other = solve(problem, WorkingSets(tol=1e-8, criterion=Gap()))
    assert len(starts) == 1
    gram = PrecomputedGram(KERNEL(X))
    if problem.unwrapped.shift is not None:
        gram = ShiftedGram(gram, problem.unwrapped.shift)
    stored = solve(replace(problem, gram=gram), SMO(tol=1e-8, criterion=Gap()))
    best = objective(problem, stored.value.coef)
    for one in (solution, other):
        assert objective(problem, one.value.coef) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("kind", ["nu_svc", "one_class"])
def test_sums_that_are_not_zero_start_elsewhere(starts, kind):
    problem = {
        "nu_svc": lambda: svm.nu_svc(lazy(), SIGNS, np.ones(ROWS), 0.6),
        "one_class": lambda: svm.one_class(lazy(), np.ones(ROWS), 0.2),
    }[kind]()
    solution = solve(problem)
    assert not starts and certify(problem, solution.value).ok


def test_several_programmes_share_their_clusters(starts):
    gram, labels = lazy(), (GROUP + (SIGNS > 0)) % 3
    pairs = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        index = np.flatnonzero((labels == a) | (labels == b))
        signs = np.where(labels[index] == a, 1.0, -1.0)
        pairs.append(svm.svc(PartGram(gram, index), signs, np.full(len(index), 10.0)))
    family = Many(tuple(pairs))
    solution = solve(family)
    assert len(starts) == 1 and certify(family, solution.value).ok
    for k, problem in enumerate(pairs):
        b = found(starts[0], k)
        assert ((problem.lower <= b) & (b <= problem.upper)).all()
        assert abs(b.sum()) < 1e-9 * np.abs(b).sum()


def test_clusters_of_one_class_have_nothing_to_move(starts):
    signs = np.where(GROUP % 2, 1.0, -1.0)
    signs[GROUP == 0] = SIGNS[GROUP == 0]
    problem = svm.svc(lazy(), signs, np.full(ROWS, 10.0))
    solution = solve(problem)
    assert certify(problem, solution.value).ok
    b = found(starts[0])
    alone = [rows for rows in starts[0].clusters if len(np.unique(signs[rows])) == 1]
    assert alone and b.any()
    assert not any(b[rows].any() for rows in alone)


def test_repeated_rows_are_as_weights(starts):
    X, _, signs = groups_of_rows(300)
    twice = np.repeat(np.arange(300), 2)
    repeated = svm.svc(lazy(X[twice]), signs[twice], np.full(600, 10.0))
    weighted = svm.svc(lazy(X), signs, np.full(300, 20.0))
    ends = [solve(p, WorkingSets(tol=1e-9, criterion=Gap())).value for p in (repeated, weighted)]
    assert len(starts) == 2
    values = [objective(p, end.coef) for p, end in zip((repeated, weighted), ends, strict=True)]
    assert values[0] == pytest.approx(values[1], rel=1e-8)


@pytest.mark.parametrize("kind", ["sparse", "callable", "float32"])
def test_rows_and_kernels_of_all_kinds(starts, kind):
    rows, kernel = X, KERNEL
    if kind == "sparse":
        rows = sparse.csr_array(np.where(np.abs(X) < 1.0, 0.0, X))
    elif kind == "callable":
        kernel = resolve(lambda A, B: np.exp(-((A[:, None] - B) ** 2).sum(-1) / 18), X)
    dtype = np.float32 if kind == "float32" else np.float64
    problem = svm.svc(LazyGram(source(rows, kernel, dtype)), SIGNS, np.full(ROWS, 10.0))
    solution = solve(problem)
    assert len(starts) == 1
    assert solution.status is Status.SOLVED and certify(problem, solution.value).ok
    dense = rows.toarray() if kind == "sparse" else rows
    stored = svm.svc(PrecomputedGram(KERNEL(dense)), SIGNS, np.full(ROWS, 10.0))
    best = objective(stored, solve(stored, SMO(tol=1e-6)).value.coef)
    assert objective(stored, solution.value.coef) == pytest.approx(best, rel=1e-3)


def test_a_start_is_repeatable(starts):
    problem = svm.svc(lazy(), SIGNS, np.full(ROWS, 10.0))
    first, second = solve(problem), solve(problem)
    assert np.array_equal(found(starts[0]), found(starts[1]))
    assert np.array_equal(first.value.coef, second.value.coef)


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_callback_ends_it_between_clusters(starts, after):
    problem = svm.svc(lazy(), SIGNS, np.full(ROWS, 10.0))
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(starts) == 1 and len(seen) >= after

    with pytest.warns(ConvergenceWarning):
        solution = solve(problem, callback=stop)
    assert solution.status is Status.STOPPED
    assert [p.iteration for p in seen] == sorted(p.iteration for p in seen)
    assert certify(problem, solution.value).quantities.infeasibility < 1e-9
    assert solution.value.coef.any()  # the answer on a sample, at least


def test_steps_are_limited_in_clusters_too(starts):
    problem = svm.svc(lazy(), SIGNS, np.full(ROWS, 10.0))
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        solution = solve(problem, WorkingSets(tol=1e-9, max_iter=100))
    assert solution.iterations <= 100
    assert certify(problem, solution.value).quantities.infeasibility < 1e-9


def test_ctrl_c_in_a_cluster_leaves_the_machine_as_it_was(monkeypatch):
    X, _, signs = groups_of_rows(6000)
    monkeypatch.setattr(subset_descent, "_ROWS", 500)
    monkeypatch.setattr(subset_descent, "SAMPLED", 32)
    machine = SVC(KERNEL, C=10.0).fit(X[:50], signs[:50])
    before = machine.predict(X)

    def interrupted(self, points):
        raise KeyboardInterrupt

    monkeypatch.setattr(subset_descent.SideBySide, "apart", interrupted)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, signs)
    assert np.array_equal(machine.predict(X), before)


@pytest.mark.parametrize("memory", ["3 MB", "400 kB"])
def test_a_memory_budget_makes_clusters_smaller(starts, memory):
    problem = svm.svc(lazy(), SIGNS, np.full(ROWS, 10.0))
    with mercer.config(memory=memory):
        solution = solve(problem)
    assert solution.status is Status.SOLVED and certify(problem, solution.value).ok


def test_a_machine_starts_from_clusters(monkeypatch):
    X, _, signs = groups_of_rows(6000)
    noisy = np.where(np.random.default_rng(0).random(6000) < 0.3, -signs, signs)
    monkeypatch.setattr(subset_descent, "_ROWS", 500)
    monkeypatch.setattr(subset_descent, "SAMPLED", 32)
    seen = []
    groups = subset_descent.clusters
    monkeypatch.setattr(
        subset_descent, "clusters", lambda *given: seen.append(groups(*given)) or seen[-1]
    )
    machine = SVC(KERNEL, C=100.0).fit(X, noisy)
    assert seen and seen[0] is not None
    assert machine.solution_.status is Status.SOLVED and machine.certificate_.ok
    without(monkeypatch)
    other = SVC(KERNEL, C=100.0).fit(X, noisy)
    gap = np.abs(machine.decision_function(X) - other.decision_function(X)).max()
    assert gap < 0.05 and other.certificate_.ok
