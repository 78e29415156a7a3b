"""Tours of classifiers without a margin: means, neighbors, the perceptron, Fisher, Bayes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.kernels import parse
from mercer.machines.perceptron.perceptron import Perceptron
from mercer.studio.tours.tour import NOTHING, Frame, Tour, changed, preset, rows_in, step, told

_MISTAKES = 12  # frames of mistakes, at most
_PASSES = 4


def nearest_mean() -> Iterator[Frame]:
    """Compare with means, then with means in feature space."""
    scene = changed(preset("lines"), machine="NearestMean", kernel="linear")
    yield from told(scene, [
        ("Two means", "Each class is represented by the mean of its points. A new point is "
         "assigned to the nearest mean, so the boundary is the line half way between them.", {}),
        ("The covariance is ignored", "These classes overlap. The boundary is still half way "
         "between the means, for any shape of the clouds.",
         {"points": preset("overlap")["points"]}),
        ("Equal means", "A ring around a disc: both means lie in the middle, and the "
         "line between them is an accident.", {"points": preset("rings")["points"]}),
        ("The same rule in feature space", "With the Gaussian kernel each mean is a mean "
         "of functions. The rule has not changed, the space has: inner products are all it needs.",
         {"points": preset("rings")["points"], "kernel": "gaussian(0.5)"}),
    ])  # fmt: skip


def neighbours() -> Iterator[Frame]:
    """Let one, five, and many neighbors vote."""
    scene = changed(preset("moons", 80, 0.3), machine="NearestNeighbors", kernel="linear")
    yield from told(scene, [
        ("One neighbour", "Each place belongs to the point that is nearest. No point is ever wrong "
         "about itself, and every outlier has its own island.",
         {"parameters": {"n_neighbors": 1}}),
        ("Five vote", "Islands of single points are outvoted: bias grows a little, variance falls "
         "a lot.", {"parameters": {"n_neighbors": 5}}),
        ("Half of them vote", "With very many votes the boundary misses the shape of the moons. "
         "Cross-validation finds a value between: look at the curve under the slider.",
         {"parameters": {"n_neighbors": 40}}),
    ])  # fmt: skip


def perceptron() -> Iterator[Frame]:
    """Show each mistake of a perceptron."""
    scene = changed(preset("lines", 60, 0.25, seed=5), machine="Perceptron", kernel="linear")
    yield from _mistakes(scene, "linear")
    yield Frame(
        "It ends, if the classes are apart",
        "Novikoff: the number of mistakes is at most (R / margin)^2, where R is the largest norm "
        "of a point. The certificate states the largest margin that the mistakes allow.",
        scene,
    )


def kernel_perceptron() -> Iterator[Frame]:
    """Show the mistakes of a perceptron in feature space."""
    scene = changed(preset("rings", 40, 0.1), machine="Perceptron", kernel="polynomial(2)")
    yield from _mistakes(scene, "polynomial(2)")
    yield Frame(
        "A list of mistakes",
        "The function is a sum over the mistakes, f(x) = sum_i y_i k(x_i, x): the perceptron never "
        "computes the features; it needs kernel values at its mistakes only.",
        scene,
    )


def _mistakes(scene: dict[str, object], kernel: str) -> Iterator[Frame]:
    """Return a frame for each of the first mistakes."""
    rows = rows_in(scene)
    assert rows.y is not None
    machine = Perceptron(parse(kernel))
    classes, shown = np.unique(rows.y), 0
    yield Frame("Nothing is known yet", "The function is zero. Points come one after the other; "
                "only mistakes change anything.", scene, NOTHING)  # fmt: skip
    for turn in range(_PASSES):
        wrong = 0
        for k in range(len(rows.X)):
            before = machine.mistakes_ if k or turn else 0
            machine.partial_fit(rows.X[k : k + 1], rows.y[k : k + 1], classes=classes)
            if machine.mistakes_ == before:
                continue
            wrong += 1
            shown += 1
            if shown <= _MISTAKES:
                yield Frame(
                    f"Mistake {machine.mistakes_}, pass {turn + 1}",
                    f"Point {k + 1} is on the wrong side, or on the boundary. It is added to the "
                    "weights with its label as sign, and moves the boundary.",
                    scene, _under_way(scene, machine), (k,),
                )  # fmt: skip
        if not wrong:
            yield Frame(
                "A pass without a mistake", "All points are right: nothing will ever change again.",
                scene, _under_way(scene, machine),
            )  # fmt: skip
            return


def _under_way(scene: dict[str, object], machine: Perceptron) -> dict[str, object]:
    """Return the response for a step; nothing is certified before the end."""
    return {**step(scene, machine), "status": None, "certificate": None, "bounds": []}


def fisher() -> Iterator[Frame]:
    """Look along the direction of means, then along Fisher's."""
    cigars = _cigars()
    scene = changed(preset("lines"), points=cigars, machine="NearestMean", kernel="linear")
    yield from told(scene, [
        ("Two cigars", "The means differ to the right, but both clouds are long in a slant. The "
         "nearest mean looks along the line between the means, and gets many wrong.", {}),
        ("Fisher's direction", "The direction w with the largest ratio of the spread between the "
         "means to the spread within the classes: w = S_W^-1 (m_1 - m_2).",
         {"machine": "FisherDiscriminant", "kernel": "linear"}),
        ("In feature space", "The same ratio for functions in place of directions, with a penalty: "
         "without one some function makes every class a single value.",
         {"points": preset("moons")["points"], "machine": "FisherDiscriminant",
          "kernel": "gaussian(0.5)", "parameters": {"penalty": 1e-2}}),
    ])  # fmt: skip


def bayes() -> Iterator[Frame]:
    """Take a Gaussian for each class, and ask for the likelier one."""
    scene = changed(preset("lines"), points=_cigars(wide=True), machine="GaussianClassifier")
    scene.pop("kernel", None)
    yield from told(scene, [
        ("A Gaussian for each class", "Mean and covariance of each class are estimated; a new "
         "point goes to the class under which it is likelier, priors included.", {}),
        ("Equal covariances", "If the classes share one covariance, the quadratic terms cancel, "
         "and the boundary is linear: Fisher's discriminant.", {"parameters": {"shared": True}}),
        ("Naive Bayes", "Assumes independent columns within a class, so the axes of the ellipses "
         "are parallel to the coordinates. It needs few points.", {"machine": "NaiveBayes"}),
    ])  # fmt: skip


def logistic() -> Iterator[Frame]:
    """Show log odds, and the effect of regularization."""
    scene = changed(preset("overlap", 80), machine="LogisticRegression", kernel="linear")
    yield from told(scene, [
        ("Log odds are linear", "The probability of the second class is 1 / (1 + exp(-f(x))), and "
         "f is linear. Lines of equal probability are parallel.", {}),
        ("Strong regularization", "With a large penalty f stays small: all probabilities are near "
         "one half, so the prediction is uncertain.",
         {"parameters": {"penalty": 100.0}}),
        ("Almost no regularization", "With a tiny penalty, and with classes that a function can "
         "separate, f grows without end: every probability becomes zero or one.",
         {"points": preset("lines")["points"], "parameters": {"penalty": 1e-6}}),
        ("With a kernel", "Nonlinear log odds. The penalty keeps them from following single "
         "points.",
         {"points": preset("moons", 80, 0.3)["points"], "kernel": "gaussian(0.5)",
          "parameters": {"penalty": 0.05}}),
    ])  # fmt: skip


def _cigars(wide: bool = False) -> list[list[float]]:
    """Draw two long clouds side by side."""
    rng = np.random.default_rng(3)
    label = np.arange(80) % 2
    spread = rng.normal(size=(80, 2)) * [0.55, 0.09]
    places = spread @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    if wide:
        places[label == 1] = rng.normal(size=(40, 2)) * [0.15, 0.4]
    places = places + np.where(label[:, None] == 0, [-0.25, 0.0], [0.35, 0.0])
    found: list[list[float]] = np.round(np.column_stack([places, label]), 4).tolist()
    return found


TOURS = (
    Tour("nearest-mean", "Nearest mean", "separation", "The boundary half way between two means, "
         "then the same in feature space.", "Smola & Vishwanathan 1.3.3", nearest_mean),
    Tour("neighbours", "Nearest neighbours", "separation", "Votes of one, five, forty points.",
         "Welling 5", neighbours),
    Tour("perceptron", "The perceptron, step by step", "separation", "Each mistake moves the "
         "boundary.", "Smola & Vishwanathan 1.3.4", perceptron),
    Tour("kernel-perceptron", "The kernel perceptron", "separation", "The same steps, remembered "
         "as a sum over mistakes.", "Smola & Vishwanathan, algorithm 1.4", kernel_perceptron),
    Tour("fisher", "Fisher's discriminant", "separation", "Means apart, classes narrow.",
         "Welling 13, Shashua 5", fisher),
    Tour("bayes", "Bayes' rule", "separation", "A Gaussian for each class; when boundaries are "
         "linear.", "Shashua 1", bayes),
    Tour("logistic", "Logistic regression", "separation", "Probabilities, and the effect of a "
         "penalty.", "Welling 7.2", logistic),
)  # fmt: skip
