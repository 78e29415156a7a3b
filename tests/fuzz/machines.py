"""Every public machine: what it is fitted to, and values of its parameters, fair and foul."""

from dataclasses import dataclass, field

from fuzz.draw import Draw

SOLVER_LIMITS = {"max_iter": ["1", "10"], "time_limit": ["1e-9", "5.0"]}
MARGIN = {
    "tol": ["1e-3", "1e-6", "0.1", "1e-10"],
    "criterion": ["'gap'", "'violation'"],
    **SOLVER_LIMITS,
}
COSTS = ["1e-6", "0.1", "1.0", "100.0", "1e6", "1e12", "np.inf"]
PENALTIES = ["1e-12", "1e-6", "0.01", "1.0", "1e4", "1e12"]
SHARES = ["0.01", "0.1", "0.3", "0.5", "0.9", "1.0"]
MIXTURE = {
    "n_components": ["1", "2", "3", "5", "'bic'"],
    "n_init": ["1", "3"],
    "tol": ["1e-3", "1e-9"],
    "max_iter": ["1", "20"],
}
PRIORS = {"prior": ["'uniform'", "[0.3, 0.7]"]}
GRAPH = {"neighbors": ["None", "1", "3"], "weights": ["'kernel'"]}
LOSSES = {"loss": ["[[0, 1], [5, 0]]"]}
SKLEARN = {
    "kernel": ["'linear'", "'rbf'", "'poly'", "'sigmoid'"],
    "gamma": ["'auto'", "0.1", "10.0"],
    "coef0": ["1.0"],
    "degree": ["2"],
}
FOUL = [
    *("-1", "0", "np.nan", "np.inf", "'x'", "None", "[]", "1e300", "5e-324", "np.int8(2)", "True"),
    *("2**70", "1.5", "np.float32(0.5)", "np.array(2.0)", "{}", "-np.inf", "10**6", "1e-300"),
]


@dataclass(frozen=True)
class Machine:
    """How a machine is called.

    Attributes
    ----------
    target : str or None
        What stands beside X: "labels", "targets", "view", "moments" or nothing.
    parameters : dict
        Values to choose from, as text.
    kernels : tuple of str
        The parameters that are kernels.
    weighted : bool
        Whether `fit` takes sample weights.
    positive : bool
        Whether entries of X must not be negative.
    seeded : bool
        Whether it takes a random_state.
    inner : tuple of str
        For a machine around another one: what that is, as text.
    call : str
        How it is called, where that is not its name.
    """

    target: str | None
    parameters: dict = field(default_factory=dict)
    kernels: tuple = ("kernel",)
    weighted: bool = True
    positive: bool = False
    seeded: bool = False
    inner: tuple = ()
    call: str = ""


def _compat(target, parameters, weighted=False, seeded=False):
    return Machine(target, parameters, (), weighted, seeded=seeded)


def _learnt(target, methods, inner):
    """Describe a machine that learns its kernel."""
    parameters = {
        "method": methods,
        "normalize": ["False"],
        "tol": ["1e-2", "1e-8"],
        **SOLVER_LIMITS,
    }
    return Machine(target, parameters, ("kernels",), inner=inner, call="MultipleKernel")


MACHINES = {
    "SVC": Machine(
        "labels",
        {
            "C": COSTS,
            "slack": ["'l2'"],
            "nu": SHARES,
            "multiclass": ["'ovr'"],
            "class_weight": ["'balanced'"],
            "probability": ["True"],
            **MARGIN,
        },
    ),
    "SVR": Machine(
        "targets",
        {"C": COSTS, "epsilon": ["0.0", "0.01", "1.0"], "tube": ["'l2'"], "nu": SHARES, **MARGIN},
    ),
    "OneClassSVM": Machine(None, {"nu": SHARES, **MARGIN}),
    "EnclosingBall": Machine(None, {"nu": ["0.0", *SHARES], **MARGIN}),
    "KernelRidge": Machine(
        "targets", {"penalty": [*PENALTIES, "'loo'"], "bias": ["False"], "time_limit": ["1e-9"]}
    ),
    "GaussianProcess": Machine(
        "targets",
        {
            "noise": PENALTIES,
            "bias": ["True"],
            "optimize": ["['noise']"],
            "max_iter": ["20"],
            "time_limit": ["1e-9"],
        },
    ),
    "MultiTaskGaussianProcess": Machine(
        "targets", {"noise": PENALTIES, "optimize": ["['noise']"], "max_iter": ["20"]}
    ),
    "GaussianProcessClassifier": Machine("labels", {"max_iter": ["20"], "time_limit": ["1e-9"]}),
    "LogisticRegression": Machine(
        "labels",
        {
            "penalty": PENALTIES,
            "loss": ["'tanh'", "'squared'"],
            "bias": ["False"],
            "class_weight": ["'balanced'"],
            "time_limit": ["1e-9"],
        },
    ),
    "PCA": Machine(
        None,
        {
            "n_components": ["1", "2", "5", "0.9"],
            "whiten": ["True"],
            "center": ["False"],
            "tol": ["1e-9"],
        },
        seeded=True,
    ),
    "CCA": Machine(
        "view",
        {
            "n_components": ["1", "2"],
            "penalty": ["0.0", "1e-6", "0.01", "1.0", "'cv'"],
            "form": ["'norm'", "'lengths'"],
        },
        ("kernel_x",),
        seeded=True,
    ),
    "FisherDiscriminant": Machine(
        "labels",
        {
            "penalty": ["0.0", "1e-12", "1e-6", "1.0"],
            "penalty_on": ["'coefficients'"],
            "weighting": ["'classes'"],
            "rule": ["'mahalanobis'"],
        },
    ),
    "KMeans": Machine(
        None,
        {
            "n_clusters": ["1", "2", "3", "5"],
            "n_init": ["1", "10"],
            "refine": ["False"],
            "balanced": ["True"],
            "max_iter": ["1"],
        },
        seeded=True,
    ),
    "SpectralClustering": Machine(
        None,
        {
            "n_clusters": ["1", "2", "3", "'eigengap'"],
            "normalization": ["'ratio'", "'plain'", "'doubly_stochastic'"],
            "neighbors": ["1", "3"],
            "weights": ["'kernel'"],
            "self_loops": ["False"],
        },
        weighted=False,
        seeded=True,
    ),
    "GaussianMixture": Machine(
        None,
        {
            "covariance": ["'shared'", "'diagonal'", "'spherical'"],
            "floor": ["1e-12", "0.1"],
            **MIXTURE,
        },
        (),
        seeded=True,
    ),
    "BernoulliMixture": Machine(
        None, {"smoothing": ["0.0", "1.0"], "tied": ["True"], **MIXTURE}, (), seeded=True
    ),
    "MultinomialMixture": Machine(
        None,
        {**MIXTURE, "source": ["'documents'"], "smoothing": ["1e-3", "1.0"]},
        (),
        positive=True,
        seeded=True,
    ),
    "MDS": Machine(
        None, {"n_components": ["1", "3"], "metric": ["'cityblock'", "'chebyshev'"]}, ()
    ),
    "ProbabilisticPCA": Machine(
        None,
        {"n_components": ["1", "2"], "method": ["'em'"], "tol": ["1e-9"], "max_iter": ["1", "50"]},
        (),
        seeded=True,
    ),
    "LabelPropagation": Machine("labels", GRAPH, weighted=False),
    "LabelSpreading": Machine("labels", {"alpha": ["0.1", "0.99"], **GRAPH}, weighted=False),
    "HarmonicRegressor": Machine("targets", GRAPH, weighted=False),
    "LaplacianRidge": Machine(
        "targets", {"penalty": PENALTIES, "intrinsic_penalty": PENALTIES, **GRAPH}, weighted=False
    ),
    "LaplacianSVC": Machine(
        "labels", {"C": COSTS, "intrinsic_penalty": PENALTIES, **GRAPH}, weighted=False
    ),
    "ICA": Machine(
        None,
        {
            "n_components": ["1", "2"],
            "algorithm": ["'deflation'"],
            "contrast": ["'cube'", "'exp'"],
            "max_iter": ["1", "50"],
        },
        (),
        seeded=True,
    ),
    "ProjectionPursuit": Machine(
        None,
        {"n_components": ["1"], "contrast": ["'cube'", "'exp'"], "max_iter": ["1", "50"]},
        (),
        seeded=True,
    ),
    "NearestMean": Machine("labels"),
    "NearestNeighbors": Machine(
        "labels",
        {
            "n_neighbors": ["1", "2", "5", "'loo'"],
            "votes": ["'similarity'", "'signed'"],
            "by": ["'similarity'"],
        },
    ),
    "NaiveBayes": Machine(
        "labels",
        {"alpha": ["0.0", "1e-9", "'cv'"], "kinds": ["'gaussian'"], **LOSSES, **PRIORS},
        (),
    ),
    "GaussianClassifier": Machine(
        "labels",
        {
            "covariance": ["'diagonal'", "'spherical'"],
            "shared": ["True"],
            "floor": ["1e-3", "1e-15"],
            "unbiased": ["True"],
            **LOSSES,
            **PRIORS,
        },
        (),
    ),
    "BayesDecision": Machine(
        "labels", {"alpha": ["1.0"], "rule": ["'map'", "'ml'"], **LOSSES, **PRIORS}, ()
    ),
    "AxisAlignedRectangle": Machine("labels", {}, ()),
    "Perceptron": Machine(
        "labels",
        {
            "max_epochs": ["1", "10"],
            "shuffle": ["False"],
            "answer": ["'averaged'", "'voted'"],
            "budget": ["1", "5"],
            "removal": ["'smallest'", "'random'"],
            "bias": ["False"],
        },
        weighted=False,
        seeded=True,
    ),
    "LogShift": Machine(None, {"shift": ["0.0", "1.0"]}, (), positive=True),
    "Whiten": Machine(None, {"rotate_back": ["True"]}, ()),
    "MaximumEntropy": Machine(
        "moments", {"method": ["'scaling'"], "tol": ["1e-6"], **SOLVER_LIMITS}, (), weighted=False
    ),
    "compat.SVC": _compat("labels", {"C": COSTS, "tol": ["1e-6"], **SKLEARN}, weighted=True),
    "compat.SVR": _compat("targets", {"C": COSTS, "epsilon": ["0.0"], **SKLEARN}, weighted=True),
    "compat.NuSVC": _compat("labels", {"nu": SHARES, **SKLEARN}, weighted=True),
    "compat.NuSVR": _compat("targets", {"nu": SHARES, "C": COSTS, **SKLEARN}, weighted=True),
    "compat.OneClassSVM": _compat(None, {"nu": SHARES, **SKLEARN}, weighted=True),
    "compat.LinearSVC": _compat(
        "labels", {"C": COSTS, "loss": ["'hinge'"], "fit_intercept": ["False"]}, weighted=True
    ),
    "compat.LinearSVR": _compat("targets", {"C": COSTS, "epsilon": ["0.1"]}, weighted=True),
    "compat.KernelPCA": _compat(
        None,
        {
            "n_components": ["1", "2"],
            **SKLEARN,
            "fit_inverse_transform": ["True"],
            "eigen_solver": ["'arpack'", "'dense'", "'randomized'"],
            "remove_zero_eig": ["True"],
        },
    ),
    "compat.LinearDiscriminantAnalysis": _compat(
        "labels", {"solver": ["'eigen'", "'lsqr'"], "shrinkage": ["0.5"]}
    ),
    "compat.CCA": _compat("view", {"n_components": ["1"], "scale": ["False"]}),
    "compat.SpectralClustering": _compat(
        None, {"n_clusters": ["2", "3"], "affinity": ["'nearest_neighbors'"], "random_state": ["0"]}
    ),
    "compat.KernelRidge": _compat("targets", {"alpha": PENALTIES, **SKLEARN}, weighted=True),
    "compat.KMeans": _compat(
        None,
        {
            "n_clusters": ["2", "3", "5"],
            "init": ["'random'"],
            "n_init": ["1", "3"],
            "max_iter": ["1", "1000"],
            "tol": ["0.0", "1e-8"],
            "algorithm": ["'elkan'"],
        },
        weighted=True,
        seeded=True,
    ),
    "compat.LogisticRegression": _compat(
        "labels",
        {
            "C": COSTS,
            "tol": ["1e-8", "0.1"],
            "fit_intercept": ["False"],
            "class_weight": ["'balanced'"],
            # not "liblinear", which is scikit-learn's own and need not end
            "solver": ["'newton-cg'", "'newton-cholesky'", "'sag'", "'saga'"],
            "max_iter": ["1000"],
        },
        weighted=True,
        seeded=True,
    ),
    "compat.KNeighborsClassifier": _compat(
        "labels",
        {
            "n_neighbors": ["1", "2", "3"],
            "weights": ["'distance'"],
            # not "cosine": scikit-learn rounds otherwise where X is the very array of the fit
            "metric": ["'euclidean'", "'manhattan'"],
            "p": ["1", "3"],
            "algorithm": ["'brute'", "'kd_tree'"],
        },
    ),
    "compat.QuadraticDiscriminantAnalysis": _compat(
        "labels",
        {
            "solver": ["'eigen'"],
            "shrinkage": ["0.1", "'auto'"],
            "priors": ["[0.3, 0.7]"],
            "reg_param": ["0.1", "1.0"],
            "store_covariance": ["True"],
            "tol": ["1e-10"],
        },
    ),
    "MultipleKernel.labels": _learnt(
        "labels",
        ["'alignment'", "'margin'"],
        (
            *("mercer.SVC()", "mercer.SVC(C=100.0)", "mercer.SVC(C=1e6, slack='l2')"),
            *("mercer.SVC(nu=0.3)", "mercer.LogisticRegression()", "mercer.NearestMean()"),
        ),
    ),
    "MultipleKernel.targets": _learnt(
        "targets",
        ["'alignment'", "'ridge'"],
        (
            *("mercer.KernelRidge(0.01)", "mercer.KernelRidge(1.0, bias=False)", "mercer.SVR()"),
            *("mercer.KernelRidge(1e-6)", "mercer.KernelRidge('loo')"),
        ),
    ),
}
# what a choice of parameters looks like around a machine
TUNED = {
    "SVC": "{'C': [0.1, 10.0], 'tol': [1e-3]}",
    "SVR": "{'C': [0.1, 10.0], 'epsilon': [0.01, 0.1]}",
    "KernelRidge": "{'penalty': [1e-3, 1.0, 10.0]}",
    "LogisticRegression": "{'penalty': [1e-3, 1.0]}",
    "NearestNeighbors": "{'n_neighbors': [1, 3]}",
    "FisherDiscriminant": "{'penalty': [1e-3, 1.0]}",
}


APPROXIMATED = ("SVC", "SVR", "OneClassSVM", "KernelRidge", "GaussianProcess", "LogisticRegression",
                "GaussianProcessClassifier", "MultiTaskGaussianProcess",
                "PCA", "CCA", "FisherDiscriminant", "KMeans", "SpectralClustering", "NearestMean",
                "NearestNeighbors", "Perceptron")  # fmt: skip
APPROXIMATIONS = [
    *("'nystrom:1'", "'nystrom:3'", "'nystrom:10:uniform'", "'nystrom:5:leverage'", "'nystrom'"),
    *("'nystrom:5:kmeans++'", "'random_features:8'", "'random_features:20:quasi'", "'none'"),
]


def draw_approximation(seed, index, name):
    """Draw features in place of a kernel, by numbers of their own: other draws stay as they are."""
    draw = Draw(seed, index, 1)
    if name not in APPROXIMATED or not draw.chance(0.15):
        return {}
    return {"approximation": draw.one(APPROXIMATIONS)}


def draw_parameters(draw, machine):
    """Draw parameters as a dict of text; each is left alone more often than not."""
    names = [name for name in machine.parameters if draw.chance(0.3)]
    found = {name: draw.one(machine.parameters[name]) for name in names}
    if machine.inner:
        found["machine"] = draw.one(machine.inner)
    if machine.seeded:
        found["random_state"] = str(draw.integer(0, 9))
    return found
