"""
Prices, walls and gaps
======================

A program with constraints has a dual: a price for each constraint. In the plane of constraint and
objective the dual looks for the line that supports the image of all points from below and meets the
axis highest. If the image is convex from below the line reaches the answer; if not, a gap is left
that no price closes.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.plots import ForcesDisplay, ImageSetDisplay, style
from mercer.theory import SmoothProgram, double_well_program, projection_program

valley = SmoothProgram(  # one valley, beyond the wall
    lambda x: (x[0] - 1) ** 2 + 0.2 * x[0] ** 4, [lambda x: x[0]], n=1, convex=True
)
with style():
    figure, axes = plt.subplots(1, 2, figsize=(11.5, 5.0))
    ImageSetDisplay.from_program(valley, bounds=(-1.2, 1.8), ax=axes[0])
    ImageSetDisplay.from_program(double_well_program(), bounds=(-1.5, 1.5), ax=axes[1])
plt.show()

# %%
# Prices are forces. A ball rolls down the slope until walls stop it. Where it rests, each wall that
# it touches pushes back, and the pushes are the multipliers: none for a wall that is not touched
# (complementary slackness). On the right the widest margin of a line through (1.5, 1) between three
# points: the walls that push are the support vectors.

points = np.array([[2.0, 2.0], [0.0, 0.0], [3.0, 0.5]])
signs = np.array([1.0, -1.0, 1.0])
# without an offset there are two variables, so that the program can be drawn
margin = projection_program([0.0, 0.0], -signs[:, None] * (points - [1.5, 1.0]), -np.ones(3))
corner = projection_program([2.0, 1.5], [[1, 0], [1, 1], [0, -1]], [1.0, 2.2, 0.5])
with style():
    figure, axes = plt.subplots(1, 2, figsize=(11.5, 5.6))
    ForcesDisplay.from_program(corner, bounds=(-1.0, 3.0), ax=axes[0])
    ForcesDisplay.from_program(margin, bounds=(-1.0, 2.5), ax=axes[1])
    axes[1].set(xlabel="w0", ylabel="w1")
plt.show()
