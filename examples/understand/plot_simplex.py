"""
From counts to probabilities
============================

Which probabilities are nearest to counts? By relative entropy, the counts divided by their sum: the
same direction, and never outside of the simplex. By least squares the same amount is taken from
every count, and a small one may become negative.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.plots import style
from mercer.theory import least_squares_projection, relative_entropy_projection

# seen along (1, 1, 1): the plane of sum 1, the simplex in it a triangle of equal sides
ACROSS, UP = np.array([-1.0, 1.0, 0.0]) / np.sqrt(2), np.array([-1.0, -1.0, 2.0]) / np.sqrt(6)
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"


def seen(points):
    """Return coordinates in the plane."""
    return np.atleast_2d(points) @ np.column_stack([ACROSS, UP])


counts = np.array([2.0, 0.1, 0.3])
along = np.linspace(1.0, 1.0 / counts.sum(), 50)[:, None] * counts  # a scaling
plane = least_squares_projection(counts, nonnegative=False)
nearest = least_squares_projection(counts)
entropy = relative_entropy_projection(counts)

with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6))
    # two numbers: the simplex is a segment
    two = np.array([1.6, 0.25])
    left.plot([0, 1], [1, 0], color=GREY, lw=3, label="simplex")
    left.plot([1, 1.5], [0, -0.5], color=GREY, lw=1, ls=":", label="sum 1, not a probability")
    left.axhline(0, color=GREY, lw=0.8)
    left.axvline(0, color=GREY, lw=0.8)
    left.plot(*two, "s", color="#555555", ms=8, label="counts f")
    for found, colour, name in [
        (relative_entropy_projection(two), BLUE, "relative entropy: a scaling of f"),
        (least_squares_projection(two, nonnegative=False), ORANGE, "least squares: outside"),
        (least_squares_projection(two), GREEN, "least squares with p >= 0"),
    ]:
        left.plot([two[0], found[0]], [two[1], found[1]], color=colour, lw=1)
        left.plot(*found, "o", color=colour, ms=8, label=name)
    left.plot([0, two[0]], [0, two[1]], color=BLUE, lw=0.8, ls=":")
    left.set(aspect="equal", xlabel="first", ylabel="second", xlim=(-0.1, 1.8), ylim=(-0.5, 1.1))
    left.set_title("Two counts")
    left.legend(fontsize=8.5)
    corners = seen(np.vstack([np.eye(3), np.eye(3)[:1]]))
    right.fill(*corners.T, color=GREY, alpha=0.2)
    right.plot(*corners.T, color=GREY)
    for corner, name in zip(corners, ["first", "second", "third"], strict=False):
        right.annotate(name, corner, textcoords="offset points", xytext=(-2, -16))
    right.plot(*seen(along).T, color=BLUE, lw=1)
    right.plot(*seen(counts).T, "s", color="#555555", ms=14, mfc="none")
    for found, colour in [(entropy, BLUE), (plane, ORANGE), (nearest, GREEN)]:
        right.plot(*seen(found).T, "o", color=colour, ms=8)
    right.set(aspect="equal", xticks=[], yticks=[])
    right.spines[:].set_visible(False)
    right.margins(0.12)
    right.set_title("Three counts, seen along (1, 1, 1)")
plt.show()
