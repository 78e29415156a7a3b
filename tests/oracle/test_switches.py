"""One case below and one above every threshold between solvers and storage, which are lowered."""

import sys
from dataclasses import dataclass
from importlib import import_module

import pytest

from mercer.gram import policy
from mercer.solvers import dispatch
from oracle.draw import Draw
from oracle.estimators import findings

pytestmark = pytest.mark.numerics

FITS = 4  # of each estimator and side
BOXES = ("SVC", "SVR", "OneClassSVM", "EnclosingBall")
PAIRS = ("PCA", "SpectralClustering", "CCA", "Whiten", "MDS")


@dataclass(frozen=True)
class Switch:
    """A threshold: where it is, what it is lowered to, whom it sends elsewhere.

    Attributes
    ----------
    module, name : str
        The constant.
    lowered : number
        Its value in the test.
    estimators : tuple of str
        Whose fits depend on it.
    below, above : int
        Samples, or features where `features` says so, on either side.
    features : bool
        Whether features are counted.
    others : tuple of (str, str, number)
        Other constants that have to be lowered for it to matter.
    """

    module: str
    name: str
    lowered: float
    estimators: tuple
    below: int = 8
    above: int = 12
    features: bool = False
    others: tuple = ()

    def __str__(self):
        return f"{self.module.split('.')[-1]}.{self.name}"


POLICY, RIDGE = "mercer.gram.policy", "mercer.machines.ridge.choice"
GAUSSIAN = "mercer.machines.gaussian_process.certificate"
LATENT = "mercer.machines.decomposition.probabilistic_pca_em"
SUBSETS, ALGEBRA = "mercer.machines.svm.subset_descent", "mercer.solvers.linear_algebra"
SWITCHES = [
    Switch(POLICY, "FLOAT64_ROWS", 8, (*BOXES, *PAIRS, "KMeans")),
    Switch(POLICY, "LAPACK_ROWS", 8, (*PAIRS, "LabelPropagation", "HarmonicRegressor", "KMeans")),
    Switch(POLICY, "SQUARED", 2, (*BOXES, "KernelRidge", "PCA"), 2, 5, True),
    Switch(POLICY, "NARROW_ROWS", 8, BOXES),
    Switch(POLICY, "NARROW", 2, BOXES, 2, 5, True, ((POLICY, "NARROW_ROWS", 4),)),
    Switch(POLICY, "ROWS_PER_FEATURE", 0.5, (*BOXES, "KernelRidge"), 5, 20, True),
    Switch(POLICY, "STIFF", 1e-3, ("SVC", "SVR")),
    Switch(POLICY, "DECOMPOSED_ROWS", 8, ("SVC", "SVR"), others=((POLICY, "STIFF", 1e-3),)),
    Switch(POLICY, "STORED_UNSEEN", 8, BOXES),
    Switch(POLICY, "LARGEST_STORED", 8, BOXES, others=((POLICY, "STORED_UNSEEN", 8),)),
    Switch(SUBSETS, "DIRECT", 8, BOXES, others=((POLICY, "LARGEST_STORED", 4),)),
    Switch(RIDGE, "_SMALL_PATH", 8, ("KernelRidge",)),
    Switch(RIDGE, "_FEW_PENALTIES", 100, ("KernelRidge",), others=((RIDGE, "_SMALL_PATH", 4),)),
    Switch("mercer.solvers.eigen.certificate", "_WHOLE", 8, PAIRS),
    Switch("mercer.solvers.eigen.dense", "_SUBSET", 8, PAIRS),
    Switch(GAUSSIAN, "_ROWS", 8, ("GaussianProcess", "GaussianProcessClassifier")),
    Switch("mercer.machines.multitask.certificate", "_PLACES", 8, ("MultiTaskGaussianProcess",)),
    Switch(LATENT, "_SMALL", 8, ("ProbabilisticPCA",)),
    Switch("mercer.machines.neighbors.nearest_neighbors", "_CHECKED", 8, ("NearestNeighbors",)),
    Switch(ALGEBRA, "WIDEST", 2, ("KernelRidge", "LogisticRegression"), 2, 5, True),
    Switch("mercer.gram.definite", "_WHOLE", 8, ("SVC", "KernelRidge", "CCA")),
    Switch("mercer.machines.perceptron.streams", "_ROWS", 8, ("Perceptron",)),
    Switch("mercer.machines.clustering.seeding", "_ROWS", 4, ("KMeans",)),
]


def lower(monkeypatch, module, name, value):
    """Set a constant wherever it was imported to."""
    own = getattr(import_module(module), name)  # fails if there is no such constant
    for other in [each for key, each in sys.modules.items() if key.startswith("mercer.")]:
        shared = module == POLICY and vars(other).get(name) is own
        if other is sys.modules[module] or shared:
            monkeypatch.setattr(other, name, value)


@pytest.mark.parametrize("side", ["below", "above"])
@pytest.mark.parametrize("switch", SWITCHES, ids=str)
def test_no_certificate_is_false_on_either_side(switch, side, monkeypatch):
    for module, name, value in ((switch.module, switch.name, switch.lowered), *switch.others):
        lower(monkeypatch, module, name, value)
    size = getattr(switch, side)
    sizes = {"columns": (size,)} if switch.features else {"sizes": (size,)}
    found = [
        findings(name, Draw(seed, **sizes)) for name in switch.estimators for seed in range(FITS)
    ]
    messages = [message for each in found if each for message in each]
    assert not messages, "\n".join(messages)


def test_policy_has_no_threshold_that_is_not_listed():
    listed = {switch.name for switch in SWITCHES if switch.module == POLICY}
    others = {name for name in vars(policy) if name.isupper()} - listed - OTHERS
    assert not others
    assert dispatch.choose


OTHERS = {
    *("MILD", "PART_OF_ROWS"),  # pairs of classes: tests/machines/svm/test_svm_switches.py
    *(
        "SHARED_FLOAT64_ROWS",
        "FLOAT64_COPY",
        "SHARED_NARROW_ROWS",
        "SHARED_ROWS_PER_FEATURE",
    ),  # tune
    *("FLOAT32_RANGE", "FLOAT32_TOL_COMPONENTS", "FLOAT32_TOL_CUTS", "FLOAT32_SHARE"),  # precision
    *("FLOAT32_SCATTER", "NONZERO_COST", "WRITTEN_OUT", "PROVEN_ROWS", "LARGEST_UNASKED"),
    *("FREE_ROWS", "DESCENT_COPIES", "PANEL_COLUMNS", "WORKING_SET_SHARE"),  # memory
}
