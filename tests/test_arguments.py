"""Names of other libraries, and misspelt ones, are taken or answered with the name here."""

import pickle

import numpy as np
import pytest

import mercer
import mercer.gram
from mercer import kernels
from mercer.machines.base.machine import OTHER_NAMES
from mercer.machines.svm import problem as svm
from mercer.problems import Eigenproblem, PathSetting
from mercer.selection import MultipleKernel, Tuned

MACHINES = {
    name: kind
    for name, kind in {**vars(mercer), "Tuned": Tuned, "MultipleKernel": MultipleKernel}.items()
    if isinstance(kind, type) and hasattr(kind, "fit")
}

ASKED = [
    ("SVC", "gamma", 0.5, "Gaussian(gamma=0.5)"),
    ("SVC", "degree", 3, "Polynomial(degree=3"),
    ("SVC", "random_state", 0, "no seed is needed"),
    ("KernelRidge", "alpha", 2.0, "penalty=2.0"),
    ("LogisticRegression", "C", 10.0, "penalty = 1 / C"),
    ("GaussianMixture", "covariance_type", "tied", "'shared' (tied)"),
    ("SpectralClustering", "affinity", "rbf", "called kernel"),
    ("KMeans", "k", 3, "n_clusters=3"),
]


@pytest.mark.parametrize(("name", "parameter", "value", "said"), ASKED)
def test_other_libraries_names_are_answered(name, parameter, value, said):
    with pytest.raises(TypeError) as caught:
        MACHINES[name](**{parameter: value})
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{name}: there is no parameter {parameter!r}")


def test_a_search_answers_to_grid_searchs_names():
    with pytest.raises(TypeError, match="it is called grid"):
        Tuned(mercer.SVC(), param_grid={"C": [1.0]})


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_misspelt_names_get_a_suggestion(name):
    parameters = MACHINES[name]._get_param_names()
    if not parameters:
        return
    with pytest.raises(TypeError, match=f"did you mean {parameters[-1]!r}"):
        MACHINES[name](**{parameters[-1].upper() + "z": 1})


def test_hints_are_for_names_that_do_not_exist():
    for owner, hints in OTHER_NAMES.items():
        if owner in MACHINES:
            known = hints.keys() & set(MACHINES[owner]._get_param_names())
            assert not known, f"{owner} has these parameters: take them off OTHER_NAMES"


def test_hints_belong_to_machines_that_exist():
    bases = {base.__name__ for kind in MACHINES.values() for base in kind.__mro__}
    assert not OTHER_NAMES.keys() - bases, "no machine, nor base of one, has these names"


def test_long_values_are_not_quoted():
    with pytest.raises(TypeError) as caught:
        mercer.KernelRidge(alpha=list(range(100)))
    assert "..." in str(caught.value)
    assert len(str(caught.value)) < 200


def test_scales_in_other_units():
    X = np.random.default_rng(0).normal(size=(5, 3))
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(kernels.Gaussian(gamma=0.3)(X), np.exp(-0.3 * squared), rtol=1e-12)
    assert kernels.Gaussian(length_scale=2.0) == kernels.Gaussian(2.0)
    each = kernels.Gaussian(gamma=[0.5, 2.0, 0.125])
    assert each == kernels.Gaussian([1.0, 0.5, 2.0])
    apart = np.abs(X[:, None] - X).sum(axis=2)
    np.testing.assert_allclose(kernels.Laplacian(gamma=0.3)(X), np.exp(-0.3 * apart), rtol=1e-12)
    assert kernels.ChiSquared(gamma=4.0) == kernels.ChiSquared(0.25)
    assert kernels.Matern(2.5, length_scale=3.0) == kernels.Matern(2.5, 3.0)


@pytest.mark.parametrize("arguments", [{"scale": 1.0, "gamma": 1}, {"gamma": -1.0}, {"gamma": "x"}])
def test_scales_given_twice_or_not_positive_are_refused(arguments):
    with pytest.raises((TypeError, ValueError), match="gamma"):
        kernels.Gaussian(**arguments)


def test_kernels_answer_too():
    with pytest.raises(TypeError, match="offset=1"):
        kernels.Polynomial(coef0=1)
    with pytest.raises(TypeError, match="standard deviation"):
        kernels.Gaussian(sigma=1)
    with pytest.raises(ValueError, match="another way to write a new kernel"):
        kernels.Gaussian().with_params(gamma=1.0)
    assert pickle.loads(pickle.dumps(kernels.Gaussian(gamma=2.0))) == kernels.Gaussian(0.5)


OLD_ORDER = [
    (lambda: mercer.PCA(kernels.Gaussian(1.0), 2), r"PCA\(kernel=Gaussian\(scale=1.0\)\)"),
    (lambda: mercer.KernelRidge("gaussian"), r"first argument is penalty.*kernel='gaussian'"),
    (lambda: mercer.NearestNeighbors(kernels.Linear()), "first argument is n_neighbors"),
    (lambda: mercer.CCA(kernels.Linear(), kernels.Linear()), r"CCA\(kernel_x=Linear\(\)\)"),
    (lambda: mercer.KMeans("rbf"), "first argument is n_clusters"),
]


@pytest.mark.parametrize(("make", "said"), OLD_ORDER)
def test_kernels_in_the_first_place_are_told_where_to_go(make, said):
    with pytest.raises(TypeError, match=said):
        make()


def test_first_arguments_are_those_of_scikit_learn():
    assert mercer.PCA(2).n_components == 2
    assert mercer.NearestNeighbors(3).n_neighbors == 3
    assert mercer.KernelRidge(0.5).penalty == 0.5
    assert mercer.CCA(1).n_components == 1
    assert mercer.KMeans(3).n_clusters == 3
    assert mercer.SVC("linear").kernel == "linear"


def test_one_rule_for_seeds():
    defaults = {
        name: kind().get_params()["random_state"]
        for name, kind in MACHINES.items()
        if name not in ("Tuned", "MultipleKernel") and "random_state" in kind._get_param_names()
    }
    assert len(defaults) > 5
    assert set(defaults.values()) == {0}


def test_old_names_of_fields_warn_and_work():
    K, y = np.eye(3), np.array([1.0, -1.0, 1.0])
    gram = mercer.gram.PrecomputedGram(K)
    problem = svm.svr(gram, y, np.ones(3), 0.1)
    with pytest.warns(DeprecationWarning, match="BoxQP: kinks? is deprecated; its name is epsilon"):
        old = problem.kink
    np.testing.assert_array_equal(old, problem.epsilon)
    with pytest.warns(DeprecationWarning, match="PathSetting: kink is deprecated"):
        assert PathSetting(kink=2.0) == PathSetting(epsilon=2.0)
    with pytest.warns(DeprecationWarning, match="its name is n_pairs"):
        assert Eigenproblem(gram, count=2).wanted == 2
