"""Tours of the margin: hard, soft, in feature space, its dual, several classes, novelty."""

from __future__ import annotations

from collections.abc import Iterator

from mercer.kernels import parse
from mercer.machines.svm.svc import SVC
from mercer.studio.tours.tour import (
    Frame,
    Tour,
    changed,
    preset,
    quietly_fitted,
    rows_in,
    step,
    told,
)

_STEPS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)


def hard_margin() -> Iterator[Frame]:
    """Show the widest margin, and that there may be none."""
    scene = changed(preset("lines", 40, 0.08), parameters={"C": "inf"})
    stray = [*scene["points"], [0.65, 0.5, 0]]
    yield from told(scene, [
        ("Many lines will do", "The classes are apart, and many lines tell them apart. The "
         "perceptron ends at any of them.", {"machine": "Perceptron"}),
        ("The widest margin", "With C = infinity no slack is allowed: of all lines the one with "
         "the widest empty band. It rests on a few points alone, the support vectors; all others "
         "could move, or vanish, and nothing would change.", {}),
        ("One stray point", "The classes are no longer linearly separable. The fit reports this "
         "with the status INFEASIBLE, and the certificate does not apply. Use a finite C.",
         {"points": stray}),
        ("A finite cost", "At C = 10 the stray point has positive slack, and the margin is wide "
         "again.",
         {"points": stray, "parameters": {"C": 10.0}}),
    ])  # fmt: skip


def soft_margin() -> Iterator[Frame]:
    """Change what slack costs."""
    scene = changed(preset("overlap", 80), kernel="linear")
    yield from told(scene, [
        ("Slack is expensive", "C = 1000: the margin is narrow, and a few points in the overlap "
         "determine the decision boundary.", {"parameters": {"C": 1000.0}}),
        ("Slack at C = 1", "The margin is wider and contains more points. The boundary depends on "
         "more of them, so it moves less if one point moves.", {"parameters": {"C": 1.0}}),
        ("Slack is cheap", "C = 0.01: nearly all points are inside the margin, and the classifier "
         "is close to the nearest mean.", {"parameters": {"C": 0.01}}),
        ("Squared slack", "Slack can be paid for by its square. Then no multiplier has an upper "
         "bound, and large slacks cost more.", {"parameters": {"C": 1.0, "slack": "l2"}}),
    ])  # fmt: skip


def kernels() -> Iterator[Frame]:
    """Change the kernel, and its scale."""
    scene = changed(preset("rings", 80), parameters={"C": 10.0})
    yield from told(scene, [
        ("No line will do", "A ring around a disc. With the linear kernel nothing helps.",
         {"kernel": "linear"}),
        ("Squares as features", "(<x, z> + 1)^2 is the inner product of x1^2, x2^2, x1 x2, x1, x2 "
         "and 1. A plane up there is a conic down here.", {"kernel": "polynomial(2)"}),
        ("Any smooth boundary", "The Gaussian kernel has infinitely many features. Its scale is "
         "the distance over which points influence each other.", {"kernel": "gaussian(0.5)"}),
        ("Too narrow", "At scale 0.05 every point is like itself alone: nearly all are support "
         "vectors, and between them nothing is known.", {"kernel": "gaussian(0.05)"}),
        ("Made of others", "Sums, products and powers of kernels are kernels. Here a line and "
         "bumps together.", {"kernel": "gaussian(0.5) + 0.5 * linear"}),
    ])  # fmt: skip


def duality() -> Iterator[Frame]:
    """Break the fit off after more and more steps; show primal, dual, and the gap."""
    scene = changed(preset("moons", 60, 0.3), kernel="gaussian(0.5)", parameters={"C": 10.0})
    rows = rows_in(scene)
    yield Frame(
        "Two problems, one value",
        "The primal problem trades a wide margin for little slack. The dual problem has a "
        "multiplier between 0 and C for each point. Every dual value is below every primal value, "
        "so the duality gap bounds the distance of a solution from the optimum.", scene,
    )  # fmt: skip
    for most in _STEPS:
        machine = quietly_fitted(SVC(parse("gaussian(0.5)"), C=10.0, max_iter=most), rows.X, rows.y)
        found = machine.certificate_.quantities
        yield Frame(
            f"After {machine.solution_.iterations} step{'s' * (machine.solution_.iterations > 1)}",
            f"Primal {found.primal:.4g}, dual {found.dual:.4g}: gap {found.gap:.3g}. The worst "
            f"pair of points violates the optimality conditions by {found.violation:.2g}.",
            scene, step(scene, machine),
        )  # fmt: skip
        if machine.solution_.status.ok:
            break
    yield Frame(
        "They meet",
        "Points beyond the margin have multiplier 0, points on the margin have one between 0 and "
        "C, points inside have C: complementary slackness. The certificate computes all values "
        "again from the points and the multipliers.", scene,
    )  # fmt: skip


def several_classes() -> Iterator[Frame]:
    """Tell four classes apart."""
    scene = preset("groups", 100)
    yield from told(scene, [
        ("Pairs", "One classifier for each pair of classes; they vote.", {"kernel": "linear"}),
        ("One versus rest", "One classifier for each class against all others; the largest value "
         "wins.", {"kernel": "linear", "parameters": {"multiclass": "ovr"}}),
        ("With a kernel", "The same votes with curved boundaries.", {"kernel": "gaussian(0.5)"}),
    ])  # fmt: skip


def novelty() -> Iterator[Frame]:
    """Draw a boundary around points without labels."""
    scene = changed(preset("clusters", 100), machine="OneClassSVM", kernel="gaussian(0.4)")
    yield from told(scene, [
        ("A boundary around most points", "At most a fraction nu of the points is outside. The "
         "boundary is as far from the origin of feature space as possible.",
         {"parameters": {"nu": 0.05}}),
        ("More outside", "With nu = 0.4 the boundary shrinks to the dense regions. Nu is also a "
         "lower bound on the fraction of support vectors.", {"parameters": {"nu": 0.4}}),
        ("The smallest ball", "The smallest ball around the points in feature space: for kernels "
         "with constant k(x, x) the boundary is the same.",
         {"machine": "EnclosingBall", "parameters": {"nu": 0.05}}),
        ("A true circle", "With the linear kernel the ball is a circle of the plane. It rests on "
         "two or three points.",
         {"machine": "EnclosingBall", "kernel": "linear", "parameters": {"nu": 0.0}}),
    ])  # fmt: skip


TOURS = (
    Tour("hard-margin", "The widest margin", "margin", "One line of many; and what happens when "
         "there is none.", "Welling 8, Shashua 4", hard_margin),
    Tour("soft-margin", "Slack and its cost", "margin", "The effect of C.", "Welling 8.1",
         soft_margin),
    Tour("kernels", "Kernels", "margin", "Lines in feature space are curves here.",
         "Welling B, Shashua 4", kernels),
    Tour("duality", "Duality, step by step", "margin", "Primal and dual approach one another.",
         "Welling A, Shashua, appendix", duality),
    Tour("several-classes", "Several classes", "margin", "Pairs, or each against the rest.",
         "Welling 8", several_classes),
    Tour("novelty", "Novelty", "margin", "A boundary around points without labels.",
         "lectures 11.3", novelty),
)  # fmt: skip
