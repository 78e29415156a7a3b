"""Catalog of the studio: estimators, kernels, parameters, and tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mercer import machines
from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.studio import drawing as curves
from mercer.studio import drawing as layers
from mercer.studio import drawing as margin_layers
from mercer.studio import drawing as surfaces
from mercer.studio import reasons as shares
from mercer.studio import reasons as sums
from mercer.studio.drawing import CurveOf, LayerOf, SceneRows, SurfaceOf
from mercer.studio.frames import number
from mercer.studio.limits import RefusalError
from mercer.studio.reasons import ReasonOf

# --- entry ---------------------------------------------------------------------------------------
#
# An estimator of the studio: its tasks, its controls and how it is drawn.

FINEST = 400  # points a side of the finest grid

Fit = Callable[[Any, SceneRows], Any]


def with_targets(machine: Any, rows: SceneRows) -> Any:
    """Fit to rows and labels."""
    return machine.fit(rows.X, rows.y)


def without_targets(machine: Any, rows: SceneRows) -> Any:
    """Fit to rows alone."""
    return machine.fit(rows.X)


def with_indicators(machine: Any, rows: SceneRows) -> Any:
    """Fit to rows and a second view of them: which class each belongs to."""
    labels: Array = rows.y if rows.y is not None else np.zeros(len(rows.X))
    return machine.fit(rows.X, (labels[:, None] == np.unique(labels)).astype(float))


@dataclass(frozen=True)
class Entry:
    """An estimator that the studio offers.

    Attributes
    ----------
    name : str
        Of the class in `mercer`.
    title, words : str
        For people.
    tasks : tuple of str
        Tasks it supports.
    surface : callable
        Draws the plane.
    layers : tuple of callables
        Draw the elements on top of the surface.
    curve : callable or None
        Draws a regression function along one axis.
    parameters : tuple of Parameter
        The controls.
    kernel : str or None
        The initial kernel; None for estimators without a kernel.
    kernel_name : str
        The parameter that the kernel is passed by.
    fit : callable
        How it is fitted.
    tune : tuple of str
        The two parameters of its grid; empty if the estimator has no score.
    reason : callable or None
        Decomposes the prediction for one row; None if this is not possible.
    proves : bool
        Whether its gap can be followed while it falls.
    partly : bool
        Whether it learns from points without a label, too.
    fixed : tuple of pairs
        Names and values of parameters that have no control.
    finest : int
        Points per side of the finest surface; fewer if predictions are expensive.
    """

    name: str
    title: str
    words: str
    tasks: tuple[str, ...]
    surface: SurfaceOf
    layers: tuple[LayerOf, ...]
    parameters: tuple[PageParameter, ...] = ()
    curve: CurveOf | None = None
    kernel: str | None = None
    kernel_name: str = "kernel"
    fit: Fit = with_targets
    tune: tuple[str, ...] = ()
    reason: ReasonOf | None = None
    proves: bool = False
    partly: bool = False
    fixed: tuple[tuple[str, Any], ...] = ()
    finest: int = FINEST

    @property
    def kind(self) -> type:
        """The class."""
        found: type = getattr(machines, self.name)
        return found

    def parameter(self, name: str) -> PageParameter | None:
        """Return a parameter by its name, or None."""
        return next((one for one in self.parameters if one.name == name), None)

    def described(self) -> dict[str, Any]:
        """Return the description sent to the page."""
        names = [getattr(one, "func", one).__name__ for one in (self.surface, *self.layers)]
        return {
            "name": self.name,
            "title": self.title,
            "words": self.words,
            "tasks": self.tasks,
            "kernel": self.kernel is not None,
            "default_kernel": self.kernel,
            "parameters": [one.described() for one in self.parameters],
            "layers": names,
            "why": self.reason is not None,
            "prove": self.proves,
            "tune": self.tune,
            "partly_labelled": self.partly,
        }


classifier = partial(Entry, tasks=("classes",))


# --- parameters ----------------------------------------------------------------------------------
#
# Parameters that a page can set: what kind of control they need, and how a value is read.


@dataclass(frozen=True)
class PageParameter(ABC):
    """A parameter of an estimator."""

    name: str
    default: Any
    words: str
    kind: ClassVar[str]

    @abstractmethod
    def read(self, value: Any) -> Any:
        """Return the value for the estimator; raise if its type is wrong."""

    def described(self) -> dict[str, Any]:
        """Return the description of the control for the page."""
        return {"kind": self.kind, **asdict(self)}

    def _refuse(self, value: Any, must: str) -> RefusalError:
        said = f"{self.name}={str(value)[:40]} must be {must}"
        return RefusalError(said, parameter=self.name)


@dataclass(frozen=True)
class Number(PageParameter):
    """A slider; `infinite` gives it a last notch, `curve` a curve of scores under it."""

    low: float = 0.0
    high: float = 1.0
    scale: str = "linear"
    infinite: bool = False
    curve: bool = False
    kind: ClassVar[str] = "number"

    def read(self, value: Any) -> Any:
        """Return a float.

        Examples
        --------
        >>> Number("C", 1.0, "price of slack", 1e-3, 1e4, "log").read("inf")
        inf
        """
        found = number(value)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._refuse(value, "a number")
        return float(found)


@dataclass(frozen=True)
class Integer(PageParameter):
    """A slider of integers."""

    low: int = 1
    high: int = 10
    scale: str = "linear"
    curve: bool = False
    kind: ClassVar[str] = "integer"

    def read(self, value: Any) -> Any:
        """Return an int.

        Examples
        --------
        >>> Integer("n_clusters", 3, "how many", 1, 12).read(4.0)
        4
        """
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise self._refuse(value, "an integer")
        return int(value)


@dataclass(frozen=True)
class WordChoice(PageParameter):
    """One of several words."""

    choices: tuple[str, ...] = ()
    kind: ClassVar[str] = "choice"

    def read(self, value: Any) -> Any:
        """Return the word.

        Examples
        --------
        >>> WordChoice("slack", "l1", "how slack is priced", ("l1", "l2")).read("l2")
        'l2'
        """
        if value not in self.choices:
            raise self._refuse(value, f"one of {', '.join(self.choices)}")
        return value


@dataclass(frozen=True)
class Switch(PageParameter):
    """On or off."""

    kind: ClassVar[str] = "switch"

    def read(self, value: Any) -> Any:
        """Return True or False.

        Examples
        --------
        >>> Switch("bias", True, "whether there is a constant").read(False)
        False
        """
        if not isinstance(value, bool):
            raise self._refuse(value, "true or false")
        return value


# --- kernels -------------------------------------------------------------------------------------
#
# Kernels that a page offers as blocks; any text that the parser reads will do.

LOWEST, HIGHEST = 1e-3, 1e3  # of the sliders of positive numbers
_DEGREES = (1, 10)
# every number of a kernel that has a slider: its lowest and highest value, and the slider's scale
RANGES: dict[str, tuple[float, float, str]] = {
    "scale": (LOWEST, HIGHEST, "log"),
    "alpha": (0.05, 50.0, "log"),
    "nu": (0.5, 4.5, "linear"),
    "degree": (*_DEGREES, "linear"),
    "exponent": (*_DEGREES, "linear"),
    "offset": (0.0, 10.0, "linear"),
    "slope": (0.01, 10.0, "log"),
    "factor": (LOWEST, HIGHEST, "log"),
    "value": (LOWEST, HIGHEST, "log"),
}


@dataclass(frozen=True)
class Offer:
    """A kernel of the palette."""

    name: str
    text: str
    words: str


OFFERS = (
    Offer("linear", "linear", "<x, z>: lines"),
    Offer("polynomial", "polynomial(3)", "(<x, z> + 1)^3: curves of degree 3"),
    Offer("gaussian", "gaussian(0.5)", "exp(-|x - z|^2 / (2 scale^2)): any smooth boundary"),
    Offer(
        "laplacian", "laplacian(0.5)", "exp(-(|x1 - z1| + |x2 - z2|) / scale): angular boundaries"
    ),
    Offer("matern", "matern(1.5, 0.5)", "rougher than the Gaussian; 1.5 sets the smoothness"),
    Offer("rationalquadratic", "rational_quadratic(1, 0.5)", "Gaussians of all widths at once"),
    Offer("cosine", "cosine", "the cosine of the angle between x and z"),
    Offer("allsubsets", "all_subsets", "products of all subsets of columns"),
    Offer("anova", "anova(2)", "products of two columns"),
    Offer("constant", "constant(1)", "1 everywhere: lets the function have an offset"),
    Offer("sigmoid", "sigmoid(1, 0)", "tanh(<x, z>): not positive semidefinite, as one sees"),
)
OPERATORS = (
    ("+", "sum: features of both, side by side"),
    ("*", "product: all products of features"),
    ("2 *", "weight"),
    ("** 2", "power"),
    ("[0]", "on some columns alone"),
    ("normalized(...)", "every point at length one"),
    ("exp(...)", "exponential: all powers at once"),
)


def numbers_of(kernel: Kernel, prefix: str = "kernel") -> list[dict[str, Any]]:
    """Return the numbers in a kernel that can be set, by their parameter names.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> [one["name"] for one in numbers_of(Gaussian(2.0) + 0.5 * Linear())]
    ['kernel__k1__scale', 'kernel__k2__factor']
    """
    found = []
    for name, value in kernel.get_params().items():
        last = name.rpartition("__")[2]
        if last not in RANGES or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if last == "factor" and value == 1.0:
            continue  # a product without a number in front
        low, high, scale = RANGES[last]
        whole = isinstance(value, int)
        found.append(
            {"name": f"{prefix}__{name}", "value": value, "low": min(low, value),
             "high": max(high, value), "scale": scale, "kind": "integer" if whole else "number"}
        )  # fmt: skip
    return found


def tree_of(kernel: Kernel) -> dict[str, Any]:
    """Return how a kernel is made, as blocks within blocks."""
    inner, own = [], {}
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        if isinstance(value, Kernel):
            inner.append(value)
        elif isinstance(value, tuple) and value and all(isinstance(one, Kernel) for one in value):
            inner += value
        else:
            own[field.name] = value if isinstance(value, int | float | str) else str(value)
    parts = [tree_of(one) for one in inner]
    return {"name": type(kernel).__name__.lower(), "parameters": own, "parts": parts}


# --- classifiers ---------------------------------------------------------------------------------
#
# Classifiers.

GAUSSIAN = "gaussian(0.5)"  # of a width that suits the square that points are painted in
COST = Number(
    "C", 1.0, "cost of a unit of slack; at infinity no slack is allowed", 1e-3, 1e4, "log",
    infinite=True, curve=True,
)  # fmt: skip
_NEIGHBOURS = Integer("neighbors", 7, "neighbors of a point in the graph", 1, 30)

CLASSIFIERS = (
    classifier(
        "SVC", "Support vector machine", "The widest margin; slack costs C.",
        surface=surfaces.margin,
        layers=(margin_layers.support, layers.predicted_labels),
        parameters=(
            COST,
            WordChoice("slack", "l1", "loss: linear or squared slack", choices=("l1",
            "l2")),
            WordChoice("multiclass", "ovo", "pairs of classes, or each against the rest",
                   choices=("ovo", "ovr")),
        ),
        kernel=GAUSSIAN, tune=("C", "kernel__scale"), reason=sums.kernel_sum, proves=True,
    ),
    classifier(
        "NearestMean", "Nearest mean", "The class whose mean is nearest, in feature space.",
        surface=surfaces.decision, layers=(layers.class_means, layers.predicted_labels),
        kernel="linear",
    ),
    classifier(
        "Perceptron", "Perceptron", "Updates the weights at each mistake.",
        surface=surfaces.decision, layers=(layers.predicted_labels,),
        parameters=(
            Integer("max_epochs", 100, "passes over the points at most", 1, 1000, "log"),
            WordChoice("answer", "last", "which of the functions on the way decides",
                   choices=("last", "averaged", "voted")),
            Switch("shuffle", True, "whether each pass has another order"),
        ),
        kernel="linear",
    ),
    classifier(
        "FisherDiscriminant", "Fisher discriminant",
        "Means far apart, classes narrow: the direction of the largest ratio.",
        surface=surfaces.decision,
        layers=(layers.discriminant_direction, layers.predicted_labels, layers.scores),
        parameters=(
            Number("penalty", 1e-4, "keeps directions of little spread out", 1e-8, 10.0, "log",
                   curve=True),
        ),
        kernel="linear", tune=("penalty", "kernel__scale"),
    ),
    classifier(
        "LogisticRegression", "Logistic regression", "Log odds that are linear in feature space.",
        surface=surfaces.probability, layers=(layers.predicted_labels,),
        parameters=(
            Number("penalty", 0.1, "regularization strength", 1e-6, 1e3, "log", curve=True),
        ),
        kernel="linear", tune=("penalty", "kernel__scale"), reason=sums.kernel_sum,
    ),
    classifier(
        "GaussianProcessClassifier", "Gaussian process classifier",
        "A function drawn at random, seen through a logistic.",
        surface=surfaces.probability, layers=(layers.predicted_labels,),
        parameters=(Switch("optimize", False, "whether the kernel is fitted by likelihood"),),
        kernel=GAUSSIAN, reason=sums.latent_sum, finest=60,
    ),
    classifier(
        "NearestNeighbors", "Nearest neighbours", "The nearest points vote.",
        surface=surfaces.probability, layers=(layers.predicted_labels,),
        parameters=(
            Integer("n_neighbors", 5, "points that vote", 1, 50, curve=True),
            WordChoice("votes", "plain", "equal votes, or more weight for nearer points",
                   choices=("plain", "similarity")),
        ),
        kernel="linear", reason=shares.neighbours, finest=150,
    ),
    classifier(
        "GaussianClassifier", "Gaussian classes", "Bayes' rule with a Gaussian for each class.",
        surface=surfaces.decision, layers=(layers.class_ellipses, layers.predicted_labels),
        parameters=(
            WordChoice("covariance", "full", "which shapes the Gaussians may have",
                   choices=("full", "diagonal", "spherical")),
            Switch("shared", False, "one covariance for all classes: linear boundaries"),
        ),
        reason=shares.class_probabilities,
    ),
    classifier(
        "NaiveBayes", "Naive Bayes", "Bayes' rule, columns independent within a class.",
        surface=surfaces.decision, layers=(layers.predicted_labels,),
        reason=shares.columns,
        fixed=(("kinds", "gaussian"),),  # a plane goes between the two values of a column, too
    ),
    classifier(
        "AxisAlignedRectangle", "Rectangle", "The smallest rectangle around one class.",
        surface=surfaces.label, layers=(layers.rectangle, layers.predicted_labels),
    ),
    classifier(
        "CCA", "Canonical correlation with the classes",
        "The direction that is most correlated with the labels.",
        surface=surfaces.component, layers=(layers.canonical_direction, layers.scores),
        parameters=(
            Integer("n_components", 1, "directions", 1, 2),
            Number("penalty", 0.01, "keeps correlations honest", 1e-6, 1.0, "log"),
        ),
        kernel="linear", kernel_name="kernel_x", fit=with_indicators,
    ),
    classifier(
        "LabelPropagation", "Label propagation",
        "Labels propagate along the neighbor graph to unlabeled points.",
        surface=surfaces.probability, layers=(layers.predicted_labels,),
        parameters=(_NEIGHBOURS,), kernel=GAUSSIAN, partly=True, finest=100,
        reason=shares.class_probabilities,
    ),
    classifier(
        "LabelSpreading", "Label spreading", "Labels flow along the graph, and fade.",
        surface=surfaces.probability, layers=(layers.predicted_labels,),
        parameters=(
            Number("alpha", 0.9, "how far labels flow", 0.01, 0.99), _NEIGHBOURS,
        ),
        kernel=GAUSSIAN, partly=True, finest=100, reason=shares.class_probabilities,
    ),
    classifier(
        "LaplacianSVC", "Laplacian support vector machine",
        "A margin, and a function that changes little along the graph.",
        surface=surfaces.margin, layers=(layers.predicted_labels,),
        parameters=(
            COST,
            Number("intrinsic_penalty", 1.0, "penalty on change along the graph", 1e-4, 1e3, "log"),
            _NEIGHBOURS,
        ),
        kernel=GAUSSIAN, partly=True, finest=40,
    ),
)  # fmt: skip


# --- regressors ----------------------------------------------------------------------------------
#
# Regressors: along one axis, or on the plane.

regressor = partial(Entry, tasks=("regression", "targets"), surface=surfaces.value)

REGRESSORS = (
    regressor(
        "SVR", "Support vector regression", "A tube in which errors cost nothing.",
        layers=(margin_layers.support, layers.predicted_values), curve=curves.tube,
        parameters=(
            COST,
            Number("epsilon", 0.1, "half the width of the tube", 1e-3, 1.0, "log", curve=True),
            WordChoice("tube", "l1", "loss: linear or squared errors",
                   choices=("l1", "l2")),
        ),
        kernel=GAUSSIAN, tune=("C", "kernel__scale"), reason=sums.kernel_sum, proves=True,
    ),
    regressor(
        "KernelRidge", "Ridge regression", "Least squares with regularization.",
        layers=(layers.predicted_values,), curve=curves.plain_curve,
        parameters=(
            Number("penalty", 0.1, "regularization strength", 1e-8, 1e3, "log", curve=True),
            Switch("bias", True, "fit an intercept, which is not regularized"),
        ),
        kernel=GAUSSIAN, tune=("penalty", "kernel__scale"), reason=sums.kernel_sum,
    ),
    regressor(
        "GaussianProcess", "Gaussian process", "All functions at once, weighed by the points.",
        layers=(layers.predicted_values,), curve=curves.process,
        parameters=(
            Number("noise", 0.1, "variance of the noise", 1e-6, 10.0, "log", curve=True),
            Switch("optimize", False, "whether kernel and noise are fitted by likelihood"),
        ),
        kernel=GAUSSIAN, tune=("noise", "kernel__scale"), reason=sums.kernel_sum,
    ),
)  # fmt: skip


# --- unlabeled ----------------------------------------------------------------------------------
#
# Unsupervised estimators: clusters, novelty, densities, components.

unlabelled = partial(Entry, tasks=("unlabelled",), fit=without_targets)

UNLABELLED = (
    unlabelled(
        "KMeans", "K-means", "Each point to the nearest mean, each mean amid its points.",
        surface=surfaces.cluster, layers=(layers.clusters, layers.centres),
        parameters=(
            Integer("n_clusters", 3, "clusters", 1, 12),
            Switch("refine", True, "whether single points are moved in the end"),
            Switch("balanced", False, "whether clusters are of equal size"),
        ),
        kernel="linear", reason=shares.distances,
    ),
    unlabelled(
        "SpectralClustering", "Spectral clustering", "Cuts the weakest connections of the graph.",
        surface=surfaces.cluster, layers=(layers.clusters,),
        parameters=(
            Integer("n_clusters", 2, "clusters", 1, 12),
            WordChoice("normalization", "normalized", "which cut is relaxed",
                   choices=("normalized", "ratio", "doubly_stochastic", "plain")),
        ),
        kernel="gaussian(0.15)",
    ),
    unlabelled(
        "GaussianMixture", "Mixture of Gaussians", "Each point drawn from one of several.",
        surface=surfaces.density, layers=(layers.likeliest, layers.mixture_ellipses),
        parameters=(
            Integer("n_components", 3, "Gaussians", 1, 10),
            WordChoice("covariance", "full", "which shapes they may have",
                   choices=("full", "diagonal", "spherical")),
        ),
        reason=shares.responsibilities,
    ),
    unlabelled(
        "OneClassSVM", "One-class support vector machine",
        "A boundary around all but a fraction nu of the points.",
        surface=surfaces.novelty, layers=(margin_layers.border, layers.inside),
        parameters=(
            Number("nu", 0.1, "largest fraction of points outside", 0.005, 0.95, "linear",
                   curve=True),
        ),
        kernel=GAUSSIAN, reason=sums.kernel_sum, proves=True,
    ),
    unlabelled(
        "EnclosingBall", "Enclosing ball", "The smallest ball around the points, in feature space.",
        surface=surfaces.novelty, layers=(margin_layers.border, layers.inside),
        parameters=(Number("nu", 0.1, "largest fraction of points outside", 0.0, 0.95),),
        kernel=GAUSSIAN, reason=sums.ball_sum, proves=True,
    ),
    unlabelled(
        "PCA", "Principal components", "The directions of the largest spread, in feature space.",
        surface=surfaces.component, layers=(layers.principal_directions, layers.scores),
        parameters=(
            Integer("n_components", 2, "components", 1, 6),
            Switch("center", True, "subtract the mean first"),
        ),
        kernel="linear",
    ),
    unlabelled(
        "ProbabilisticPCA", "Probabilistic PCA", "A Gaussian with few directions and noise.",
        surface=surfaces.density, layers=(layers.model_ellipse,),
        parameters=(Integer("n_components", 1, "directions", 1, 2),),
    ),
    unlabelled(
        "ICA", "Independent components", "Directions along which the points look least Gaussian.",
        surface=surfaces.component, layers=(layers.independent_directions, layers.scores),
        parameters=(
            WordChoice("contrast", "logcosh", "how far from Gaussian is measured",
                   choices=("logcosh", "cube")),
        ),
    ),
)  # fmt: skip


# --- table ---------------------------------------------------------------------------------------
#
# All estimators and tasks of the studio.

TASKS = {
    "classes": "points of several classes",
    "regression": "a number y at each x: a curve",
    "targets": "a number at points of the plane",
    "unlabelled": "points alone: clusters, novelty, density, components",
}

MACHINES: dict[str, Entry] = {
    entry.name: entry for entry in (*CLASSIFIERS, *REGRESSORS, *UNLABELLED)
}


def entry_of(name: object, task: str) -> Entry:
    """Return an estimator of the studio by name; by default the first of the task.

    Examples
    --------
    >>> entry_of("SVC", "classes").title
    'Support vector machine'
    """
    if name is None:
        return next(entry for entry in MACHINES.values() if task in entry.tasks)
    entry = MACHINES.get(name) if isinstance(name, str) else None
    if entry is None:
        raise RefusalError(f"the studio has no estimator {str(name)[:40]!r}", parameter="machine")
    if task not in entry.tasks:
        raise RefusalError(
            f"{name} is not for {TASKS[task]}; take one of "
            + ", ".join(one.name for one in MACHINES.values() if task in one.tasks),
            parameter="machine",
        )
    return entry
