"""Tours of learning itself: rectangles, overfitting, few labels."""

from __future__ import annotations

from collections.abc import Iterator

from mercer.studio.tours.tour import Frame, Tour, changed, preset, told


def rectangles() -> Iterator[Frame]:
    """Learn a rectangle from more and more points."""
    scene = preset("inside", 20, seed=1)
    yield from told(scene, [
        ("Twenty points", "The true class is a rectangle that the learner does not see. The "
         "smallest rectangle around its points lies inside it: all errors are in the strips "
         "between the two.", {}),
        ("Fifty points", "With more points the strips become thin.",
         {"points": preset("inside", 50, seed=1)["points"]}),
        ("Five hundred", "With 4 / epsilon ln(4 / delta) points all strips together weigh at most "
         "epsilon, but with probability delta: learnable, whatever the distribution is.",
         {"points": preset("inside", 500, seed=1)["points"]}),
    ])  # fmt: skip


def overfitting() -> Iterator[Frame]:
    """Show a scale too small, too large, and right."""
    scene = changed(preset("moons", 80, 0.35), parameters={"C": 100.0})
    yield from told(scene, [
        ("Overfitting", "Scale 0.05, C = 100: every point is classified correctly, but each forms "
         "an island. To see the held-out error, open the curve under the slider.",
         {"kernel": "gaussian(0.05)"}),
        ("Too stiff", "Scale 5: nearly a line. Wrong here, and wrong on new points.",
         {"kernel": "gaussian(5)"}),
        ("In between", "Scale 0.5 and C = 1: some points are wrong, and new ones will mostly be "
         "right. Tune draws the whole map.", {"kernel": "gaussian(0.5)", "parameters": {"C": 1.0}}),
    ])  # fmt: skip


def few_labels() -> Iterator[Frame]:
    """Let points without a label help."""
    scene = preset("partly", 120, 0.1)
    yield from told(scene, [
        ("Ten labels", "Points without a color have no label. An estimator that ignores them uses "
         "ten points.",
         {"machine": "SVC", "kernel": "gaussian(0.5)", "parameters": {"C": 10.0}}),
        ("Labels propagate", "Each point is connected to its nearest neighbors and takes the mean "
         "of their labels: a harmonic function on the graph.", {}),
        ("A margin on the graph", "The Laplacian SVM has a margin at the labeled points, and "
         "penalizes changes along the graph.",
         {"machine": "LaplacianSVC", "kernel": "gaussian(0.5)", "parameters": {"C": 10.0}}),
    ])  # fmt: skip


TOURS = (
    Tour("rectangles", "Learning a rectangle", "learning", "How many points are enough?",
         "Shashua 7", rectangles),
    Tour("overfitting", "Too much, too little", "learning", "Compare training and held-out error.",
         "Welling 3, 4", overfitting),
    Tour("few-labels", "Few labels", "learning", "Learn from unlabeled points.", "Welling 4",
         few_labels),
)  # fmt: skip
