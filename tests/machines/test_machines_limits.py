"""Options are honoured in the unit of the solver that runs: max_iter bounds it, tol stops it."""

import inspect
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import machines
from mercer.compat import sklearn as compat
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.machines import SVC, SVR, EnclosingBall, OneClassSVM
from mercer.machines.svm import subset_descent
from mercer.machines.svm.primal.crossover import DualDescent
from mercer.solvers import InteriorPoint, Status, WorkingSets

rng = np.random.default_rng(0)
X = np.abs(rng.standard_normal((80, 4)))
LABELS = np.where(X[:, 0] + 0.5 * rng.standard_normal(80) > 0.7, "a", "b")
MANY = np.arange(80) % 7
TARGETS = X[:, 0] ** 2 + 0.1 * rng.standard_normal(80)
COUNTS = rng.integers(0, 4, (80, 4))


def fitted(machine, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.fit(*data)


def keeps(machine, *data, parts=1):
    """Fit with max_iter=1 and check that it says so; `parts` problems have a step each."""
    solution = fitted(machine.set_params(max_iter=1), *data).solution_
    assert solution.iterations <= parts, solution
    assert solution.status is Status.ITERATION_LIMIT or solution.status.ok, solution
    if solution.status.ok and hasattr(machine, "certificate_"):
        assert machine.certificate_.ok
    return solution


MARGINS = [
    SVC(),
    SVC(Linear()),
    SVC(Linear(), C=np.inf),
    SVC(Polynomial(2), slack="l2"),
    SVC(Polynomial(2), C=1e9),
    SVC(nu=0.3),
    SVC(Linear(), nu=0.3),
    SVC(criterion="gap"),
    SVC(Linear(), criterion="gap"),
]


@pytest.mark.parametrize("machine", MARGINS, ids=repr)
def test_one_step_of_a_classifier(machine):
    keeps(machine, X, LABELS)
    keeps(machine.set_params(nu=machine.nu and 0.2), X, MANY, parts=21)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(2)], ids=repr)
@pytest.mark.parametrize("options", [{}, {"tube": "l2"}, {"nu": 0.4}, {"C": 1e9}], ids=repr)
def test_one_step_of_a_regression(kernel, options):
    keeps(SVR(kernel, **options), X, TARGETS)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(2)], ids=repr)
@pytest.mark.parametrize("kind", [OneClassSVM, EnclosingBall])
def test_one_step_of_novelty(kind, kernel):
    keeps(kind(kernel, nu=0.2), X)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2)], ids=repr)
def test_steps_of_the_interior_point_method(kernel):
    rows = rng.standard_normal((3000, 5))
    labels = rows[:, 0] + rng.standard_normal(3000) > 0
    free = SVC(kernel).fit(rows, labels).solution_
    assert free.solver == InteriorPoint.__name__
    for limit in (1, 3):
        found = fitted(SVC(kernel, max_iter=limit), rows, labels).solution_
        assert found.iterations == limit
        assert found.status is Status.ITERATION_LIMIT
    enough = SVC(kernel, max_iter=free.iterations + 1).fit(rows, labels).solution_
    assert enough.status.ok
    assert enough.iterations == free.iterations


def test_passes_of_the_dual_descent():
    rows = sparse.random(3000, 2500, 0.01, random_state=0, format="csr")
    labels = np.arange(3000) % 2
    with mercer.config(memory="40 MB"):
        free = SVC(Linear()).fit(rows, labels).solution_
        found = fitted(SVC(Linear(), max_iter=1), rows, labels).solution_
    assert free.solver == found.solver == DualDescent.__name__
    assert free.status.ok
    assert (found.iterations, found.status) == (1, Status.ITERATION_LIMIT)


def test_pair_steps_in_working_sets():
    rows = rng.standard_normal((3000, 5))
    labels = rows[:, 0] * rows[:, 1] > 0
    with mercer.config(memory="20 MB"):
        found = fitted(SVC(Gaussian(1.0), max_iter=5), rows, labels).solution_
    assert found.solver == WorkingSets.__name__
    assert (found.iterations, found.status) == (5, Status.ITERATION_LIMIT)


def test_a_limit_is_one_for_each_problem():
    few = fitted(SVC(Gaussian(1.0), max_iter=10), X, MANY).solution_
    assert few.iterations <= 10 * 21
    assert few.status is Status.ITERATION_LIMIT


OTHERS = {
    "Autoencoder": None,  # these train with torch: tests/with_torch
    "VariationalAutoencoder": None,
    "BernoulliMixture": (COUNTS > 1,),
    "MultinomialMixture": (COUNTS + 1,),
    "GaussianMixture": (X,),
    "GaussianProcess": None,
    "MultiTaskGaussianProcess": None,
    "GaussianProcessClassifier": None,
    "ICA": (X,),
    "KMeans": (X,),
    "LaplacianSVC": None,  # an SVC inside, which is
    "MaximumEntropy": None,
    "ProbabilisticPCA": (X,),
    "ProjectionPursuit": (X,),
}


def with_limit(room, names):
    kinds = {name: getattr(room, name) for name in names}
    return sorted(
        name
        for name, kind in kinds.items()
        if inspect.isclass(kind)
        and hasattr(kind, "fit")
        and "max_iter" in inspect.signature(kind).parameters
    )


def test_every_machine_with_a_limit_is_tested_here():
    margins = {"SVC", "SVR", "OneClassSVM", "EnclosingBall"}
    assert set(with_limit(machines, machines.__all__)) <= margins | set(OTHERS)


@pytest.mark.parametrize("name", [name for name, data in OTHERS.items() if data])
def test_one_step_of_other_machines(name):
    kind = getattr(machines, name)
    options = {
        key: value
        for key, value in {"n_init": 1, "random_state": 0}.items()
        if key in inspect.signature(kind).parameters
    }
    first = {"KMeans": 3, "ProjectionPursuit": 1}.get(name, 2)
    keeps(
        kind(first, **options) if name != "KMeans" else kind(n_clusters=3, **options), *OTHERS[name]
    )


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_one_step_of_the_drop_in_machines(name, kernel):
    kind = getattr(compat, name)
    machine = kind(kernel=kernel, **({"nu": 0.3} if name == "NuSVC" else {}))
    keeps(machine, X, *([] if name == "OneClassSVM" else [TARGETS if "SVR" in name else LABELS]))


@pytest.mark.parametrize("machine", [SVR(Gaussian(4.0), np.inf, 0.0), SVR(C=1e6, nu=0.9)])
def test_sets_too_small_for_the_free_variables_end_and_say_so(machine, monkeypatch):
    # pair steps alone are bounded by 10^7, a few in each set: that took minutes
    monkeypatch.setattr(subset_descent, "_LEAST_SETS", 100)
    monkeypatch.setattr(subset_descent, "_SETS_PER_ROW", 2)
    with mercer.config(memory="40 kB"):
        solution = fitted(machine, X, TARGETS).solution_
        asked = fitted(machine.set_params(max_iter=8000), X, TARGETS).solution_
    assert solution.solver == "WorkingSets"
    assert solution.status is Status.ITERATION_LIMIT, solution
    assert len(solution.trace) <= 2 * 80 + 10
    assert "mercer.config(memory=...)" in solution.detail
    assert asked.iterations == 8000  # steps that are asked for are made, in however many sets
