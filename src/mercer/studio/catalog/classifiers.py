"""Machines that tell classes apart."""

from __future__ import annotations

from mercer.studio.catalog.entry import classifier, with_indicators
from mercer.studio.catalog.parameters import Choice, Integer, Number, Switch
from mercer.studio.drawing import layers, margin_layers, surfaces
from mercer.studio.reasons import shares, sums

GAUSSIAN = "gaussian(0.5)"  # of a width that suits the square that points are painted in
COST = Number(
    "C", 1.0, "what a unit of slack costs; at infinity no slack is allowed", 1e-3, 1e4, "log",
    infinite=True, curve=True,
)  # fmt: skip
_NEIGHBOURS = Integer("neighbors", 7, "neighbours of a point in the graph", 1, 30)

CLASSIFIERS = (
    classifier(
        "SVC", "Support vector machine", "The widest margin; slack costs C.",
        surface=surfaces.margin,
        layers=(margin_layers.support, layers.predicted_labels),
        parameters=(
            COST,
            Choice("slack", "l1", "slack is paid for as it is, or squared", choices=("l1", "l2")),
            Choice("multiclass", "ovo", "pairs of classes, or each against the rest",
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
        "Perceptron", "Perceptron", "Each mistake is added to what is remembered.",
        surface=surfaces.decision, layers=(layers.predicted_labels,),
        parameters=(
            Integer("max_epochs", 100, "passes over the points at most", 1, 1000, "log"),
            Choice("answer", "last", "which of the functions on the way decides",
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
            Number("penalty", 0.1, "price of a large function", 1e-6, 1e3, "log", curve=True),
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
            Choice("votes", "plain", "equal votes, or more weight for nearer points",
                   choices=("plain", "similarity")),
        ),
        kernel="linear", reason=shares.neighbours, finest=150,
    ),
    classifier(
        "GaussianClassifier", "Gaussian classes", "Bayes' rule with a Gaussian for each class.",
        surface=surfaces.decision, layers=(layers.class_ellipses, layers.predicted_labels),
        parameters=(
            Choice("covariance", "full", "which shapes the Gaussians may have",
                   choices=("full", "diagonal", "spherical")),
            Switch("shared", False, "one covariance for all classes: borders become lines"),
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
        "Labels flow along the graph of neighbours to points without one.",
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
            Number("intrinsic_penalty", 1.0, "price of change along the graph", 1e-4, 1e3, "log"),
            _NEIGHBOURS,
        ),
        kernel=GAUSSIAN, partly=True, finest=40,
    ),
)  # fmt: skip
