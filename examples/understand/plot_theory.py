"""
Bounds on the error, and errors
===============================

The tightest box around positive points is the first learner of the theory of learning. Its errors
are simulated here, beside what is promised whatever the distribution: by the theorem about boxes,
and by the VC dimension, which is four for boxes of the plane.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.theory import (
    HalfSpaces,
    Intervals,
    Rectangles,
    double_sampling_error,
    growth,
    rectangle_sample_size,
    sauer,
)

rng = np.random.default_rng(0)
sizes = np.unique(np.logspace(1.3, 4, 13).astype(int))


def errors_of_boxes(m, draws=400):
    """Fit boxes to m uniform points, the target being [0.2, 0.8]^2, and give their errors."""
    X = rng.uniform(size=(draws, m, 2))
    inside = np.all((X > 0.2) & (X < 0.8), axis=2)[..., None]
    low, high = np.where(inside, X, 1.0).min(axis=1), np.where(inside, X, 0.0).max(axis=1)
    return 0.36 - np.prod(np.maximum(high - low, 0.0), axis=1)


simulated = np.array([np.quantile(errors_of_boxes(m), [0.5, 0.95]) for m in sizes])
promised = np.logspace(-3, -0.01, 200)
needed = [rectangle_sample_size(error, delta=0.05).value for error in promised]
by_dimension = [double_sampling_error(vc=4, n=m, delta=0.05).value for m in sizes]

# %%
# On the left the errors, on the right why learning is possible at all: once there are more points
# than the VC dimension, the labellings that a class can produce are few among all.

INK, BLUE, ORANGE, GREEN = "#333333", "#0072B2", "#D55E00", "#009E73"
figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained")
left.fill_between(sizes, simulated[:, 0], simulated[:, 1], color=BLUE, alpha=0.25, lw=0)
left.plot(sizes, simulated[:, 1], color=BLUE, label="19 of 20 boxes are below (simulated)")
left.plot(needed, promised, color=ORANGE, label="promised for boxes")
left.plot(sizes, by_dimension, color=GREEN, label="promised for VC dimension 4")
left.set(xscale="log", yscale="log", xlim=(20, 1e4), ylim=(1e-4, 1.2))
left.set(xlabel="examples", ylabel="error", title="The tightest box: errors and promises")
left.legend(frameon=False)

points = np.arange(1, 9)
for (name, family, vc), colour in zip(
    [("intervals", Intervals(), 2), ("half-planes", HalfSpaces(2), 3), ("boxes", Rectangles(2), 4)],
    [BLUE, GREEN, ORANGE],
    strict=True,
):
    found = [growth(family, int(m), trials=4) for m in points]
    right.plot(points, found, "o", color=colour, label=f"{name}: VC dimension {vc}")
    right.plot(points, [sauer(vc, int(m)) for m in points], color=colour, alpha=0.6)
right.plot(points, 2.0**points, "--", color=INK, label="all labellings")
right.set(yscale="log", xlabel="points", ylabel="labellings")
right.set_title("Labellings found (dots) and Sauer's bound (lines)")
right.legend(frameon=False)
plt.show()
