"""
Gaussian mixture by expectation maximisation
============================================

Expectation maximisation starts from three circles in the wrong places. Each pass asks which circle
every point probably came from, and then fits each Gaussian to its share. The likelihood never
falls. How many Gaussians there are is left to Bayes' information criterion.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from mercer import GaussianMixture
from mercer.machines.mixture.gaussian_em_steps import Full
from mercer.problems import GaussianMix, GaussianParts

rng = np.random.default_rng(3)
turns = [[[1.3, 0.2], [0.9, 0.4]], [[0.3, 0.0], [0.0, 1.1]], [[0.8, -0.5], [0.1, 0.5]]]
centres = [[-1.5, -0.8], [1.2, 1.6], [2.6, -1.6]]
X = np.vstack(
    [
        rng.standard_normal((150, 2)) @ np.transpose(t) + c
        for t, c in zip(turns, centres, strict=True)
    ]
)

# %%
# The machine does all this in one call. Here its problem is stepped through by hand: `look` takes
# the expectations, `next` the best Gaussians for them.

problem = GaussianMix(X, np.ones(len(X)), count=3, shape=Full(), floor=1e-6)
start = np.array([[-2.0, -3.0], [0.0, -3.0], [2.0, -3.0]])
parts = GaussianParts(np.full(3, 1 / 3), start, np.tile(0.5 * np.eye(2), (3, 1, 1)))
way, likelihoods = [parts], []
for _ in range(25):
    found = problem.e_step(parts)
    likelihoods.append(found.log_likelihood)
    parts = problem.m_step(parts, found.sums)
    way.append(parts)

chosen = GaussianMixture("bic", max_components=7).fit(X)
print(chosen.certificate_)
print("components chosen:", chosen.n_components_)

# %%
# Above: responsibilities as colours, Gaussians at two standard deviations. Below: what the plain
# steps gain beside the machine's own, which leap ahead; and the criterion for each number.

INK = "#333333"
COLOURS = np.array([[0, 114, 178], [213, 94, 0], [0, 158, 115]]) / 255


def draw(ax, parts, title):
    shares = problem.posterior(parts, X)[1]
    ax.scatter(*X.T, s=9, c=np.clip(shares @ COLOURS, 0, 1), alpha=0.8, lw=0)
    for mean, covariance, colour in zip(parts.means, parts.covariances, COLOURS, strict=True):
        values, vectors = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
        width, height = 4 * np.sqrt(values[::-1])
        ax.add_patch(Ellipse(mean, width, height, angle=angle, fc="none", ec=colour, lw=2))
        ax.plot(*mean, "o", color=colour, ms=6, mec="white")
    ax.set_title(title, loc="left", size=10)
    ax.set(xticks=[], yticks=[], xlim=(-5.8, 5.2), ylim=(-4.9, 4.9), aspect="equal")
    ax.spines[:].set_visible(False)


figure = plt.figure(figsize=(11.5, 6.6), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1, 0.95])
for ax, step in zip(above.subplots(1, 4), [0, 2, 6, 12], strict=True):
    draw(ax, way[step], "start" if step == 0 else f"after {step} steps")

ax, criterion = below.subplots(1, 2)
ax.plot(likelihoods, color=INK, label="plain steps, from the start above")
fast = GaussianMixture(3, n_init=1).fit(X)
ax.plot(
    fast.log_likelihoods_, "o-", ms=4, color="#0072B2", label="the machine: k-means++ and leaps"
)
ax.set(
    xlabel="passes over the rows",
    ylabel="log-likelihood",
    ylim=(likelihoods[1] - 20, likelihoods[-1] + 20),
)
ax.set_title("Likelihoods never fall", loc="left", size=10)
ax.legend(frameon=False, loc="lower right")

numbers = np.arange(1, len(chosen.criteria_) + 1)
criterion.plot(numbers, chosen.criteria_, "o-", color=INK)
best = chosen.n_components_
criterion.plot(best, chosen.criteria_[best - 1], "o", ms=13, mfc="none", mec="#D55E00", mew=2)
criterion.set(xlabel="components", ylabel="criterion (smaller is better)", xticks=numbers)
criterion.set_title(f"Bayes' information criterion chooses {best}", loc="left", size=10)
plt.show()
