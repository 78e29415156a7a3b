"""
Two coins, three tosses each
============================

One of two coins is drawn and tossed three times; nobody noted which coin it was. Three numbers say
everything: the share of the first coin and both chances of heads. Expectation maximisation finds
them from the triplets, and the closed form of this small problem agrees.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import BernoulliMixture
from mercer.problems import TableParts, TiedBernoulliMix

share, p, q = 0.3, 0.9, 0.2
rng = np.random.default_rng(0)
first = rng.uniform(size=2000) < share
tosses = (rng.uniform(size=(2000, 3)) < np.where(first, p, q)[:, None]).astype(float)
coins = BernoulliMixture(2, smoothing=0.0, tied=True, tol=1e-12, max_iter=5000).fit(tosses)
order = np.argsort(-coins.coins_)
found = coins.weights_[order[0]], *coins.coins_[order]
print("share, p, q:", np.round(found, 4), " true:", (share, p, q))
print(coins.certificate_)

# %%
# The closed form: with h heads, the means of h / 3, of h (h - 1) / 6 and of h (h - 1)(h - 2) / 6
# are sums of first, second and third powers of p and q, so p and q are the roots of a quadratic.

h = tosses.sum(axis=1)
m1, m2, m3 = (np.mean(m) for m in (h / 3, h * (h - 1) / 6, h * (h - 1) * (h - 2) / 6))
total, product = np.linalg.solve([[m1, -1], [m2, -m1]], [m2, m3])
low, high = np.sort(np.roots([1, -total, product]))
print("closed form:", np.round([(m1 - low) / (high - low), high, low], 4))

# %%
# The likelihood over p and q, each with its best share, and plain steps from several starts.

counts = np.bincount(h.astype(int), minlength=4)
axis = np.linspace(0.01, 0.99, 50)
shares = np.linspace(0.0, 1.0, 51)[:, None, None, None]
heads = np.arange(4)
one = axis[:, None] ** heads * (1 - axis[:, None]) ** (3 - heads)
mixed = shares * one[None, :, None] + (1 - shares) * one[None, None, :]
surface = (np.log(mixed) @ counts).max(axis=0) / len(h)

problem = TiedBernoulliMix(tosses, np.ones(len(h)), 2)
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
levels = surface.max() - np.array([0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001])
left.contour(axis, axis, surface.T, levels=np.sort(levels), cmap="Greys_r", linewidths=0.8)
for start, colour in (((0.6, 0.5), "#0072B2"), ((0.95, 0.7), "#D55E00"), ((0.1, 0.6), "#009E73")):
    parts = TableParts(np.full(2, 0.5), np.repeat(np.array(start)[:, None], 3, axis=1))
    way, likelihood = [start], []
    for _ in range(61):
        step = problem.e_step(parts)
        likelihood.append(step.log_likelihood / len(h))
        parts = problem.m_step(parts, step.sums)
        way.append(tuple(parts.table[:, 0]))
    left.plot(*np.array(way).T, ".-", color=colour, markersize=4, linewidth=1)
    right.plot(
        surface.max() - np.array(likelihood) + 1e-6, color=colour, label=f"from p, q = {start}"
    )
left.plot([p, q], [q, p], "k*", markersize=11, label="true coins")
left.set(xlabel="p", ylabel="q", title="Likelihood, and the way of the steps")
left.legend(frameon=False, loc="upper right")
right.set(xlim=(0, 25), yscale="log", xlabel="step", ylabel="log-likelihood per row, below the end")
right.set_title("It never falls")
right.legend(frameon=False)
plt.show()
