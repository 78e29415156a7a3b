"""
Gaussian classes: linear and quadratic discriminants
====================================================

A class is a Gaussian. How much freedom its covariance has decides what the border can be: one
covariance for all classes gives straight lines (those of linear discriminant analysis), one for
each gives conic sections.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import GaussianClassifier

rng = np.random.default_rng(1)
shapes = [([0, 0], [[1.0, 0.8], [0.8, 1.0]]), ([2.6, -0.6], [[0.3, -0.2], [-0.2, 0.9]])]
shapes.append(([0.2, 3.4], [[1.6, 0.0], [0.0, 0.12]]))
X = np.vstack([rng.multivariate_normal(mean, cov, 120) for mean, cov in shapes])
y = np.repeat(["a", "b", "c"], 120)

# %%
# Shades are the posterior probability of the class that is predicted, lines its border, and the
# ellipses hold 86 % of each Gaussian (two standard deviations).

COLOURS = np.array([[0, 114, 178], [213, 94, 0], [0, 158, 115]]) / 255
gx, gy = np.meshgrid(np.linspace(-3.5, 5.5, 260), np.linspace(-3.5, 5.5, 260))
grid = np.column_stack([gx.ravel(), gy.ravel()])
angle = np.linspace(0, 2 * np.pi, 100)
circle = 2 * np.column_stack([np.cos(angle), np.sin(angle)])

figure, axes = plt.subplots(2, 3, figsize=(12, 8), layout="constrained", sharex=True, sharey=True)
for row, shared in zip(axes, (True, False), strict=True):
    for ax, form in zip(row, ("spherical", "diagonal", "full"), strict=True):
        machine = GaussianClassifier(form, shared=shared).fit(X, y)
        posterior = machine.predict_proba(grid)
        picture = 1 - (1 - posterior @ COLOURS) * 0.45
        ax.imshow(picture.reshape(*gx.shape, 3), origin="lower", extent=(-3.5, 5.5, -3.5, 5.5))
        ax.contour(
            gx,
            gy,
            posterior.argmax(axis=1).reshape(gx.shape),
            [0.5, 1.5],
            colors="#333333",
            linewidths=1,
        )
        for c, label in enumerate(machine.classes_):
            ax.scatter(*X[y == label].T, s=6, color=COLOURS[c])
            held = machine.covariance_ if shared else machine.covariance_[c]
            held = held if held.ndim == 2 else np.diag(np.broadcast_to(held, 2))
            ellipse = machine.means_[c] + circle @ np.linalg.cholesky(held).T
            ax.plot(*ellipse.T, color=COLOURS[c], linewidth=1.5)
        kind = "one for all" if shared else "one for each"
        errors = 100 * (1 - machine.score(X, y))
        ax.set_title(f"{form}, {kind}: {errors:.1f} % errors", loc="left", size=10)
        ax.set(xticks=[], yticks=[], xlim=(-3.5, 5.5), ylim=(-3.5, 5.5))
plt.show()
