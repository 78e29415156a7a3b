"""
Probabilistic principal components with missing entries
=======================================================

A plane plus noise is a model of the rows, so it says what a missing entry should be: expectation
maximisation fits it to what is there, and fills in the conditional mean of what is not. The
likelihood never falls on the way.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mercer import ProbabilisticPCA

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
rng = np.random.default_rng(0)


def holes(share):
    """Return the rows with a share of the entries missing at random."""
    return np.where(rng.random(X.shape) < share, np.nan, X)


gaps = holes(0.3)
full = ProbabilisticPCA(2).fit(X)
model = ProbabilisticPCA(2, method="em").fit(gaps)
print(model.certificate_)

# %%
# Left: posterior means of the latent variables from whole rows. Middle: from rows with 30 % of the
# entries missing, a fit that never saw the others. Right: the likelihood on the way there.

INK, COLOURS = "#333333", ("#0072B2", "#D55E00", "#009E73")
figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
views = {"whole rows": full.transform(X), "30 % of the entries missing": model.transform(gaps)}
reference = views["whole rows"]
for ax, (title, latent) in zip(axes, views.items(), strict=False):
    signs = np.sign((latent * reference).sum(axis=0))  # for the eye: the same way up
    for group, colour in enumerate(COLOURS):
        ax.scatter(*(signs * latent)[wine.target == group].T, s=16, c=colour, label=f"kind {group}")
    ax.set_title(title, loc="left")
    ax.set(xlabel="first latent variable", xlim=(-2.6, 2.6), ylim=(-2.8, 2.8))
axes[0].set_ylabel("second latent variable")
axes[0].legend(frameon=True, framealpha=0.9, edgecolor="none")
trace = model.log_likelihoods_
axes[2].plot(np.arange(1, len(trace)), trace[-1] - trace[:-1], c=INK)
axes[2].set(xscale="log", yscale="log", xlabel="step", ylabel="below the last value")
axes[2].set_title("log-likelihood", loc="left")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# How well are missing entries filled in? Columns have variance one, so the mean of the column has
# an error of about one.

shares = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
errors = {q: [] for q in (1, 2, 4)}
for share in shares:
    draws = [holes(share) for _ in range(4)]
    for q, found in errors.items():
        squared = []
        for rows in draws:
            filled = ProbabilisticPCA(q, method="em", tol=1e-4).fit(rows).impute(rows)
            squared.append(np.square(filled - X)[np.isnan(rows)].mean())
        found.append(np.mean(squared))

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
for (q, found), colour in zip(errors.items(), COLOURS, strict=True):
    ax.plot(100 * shares, found, "o-", c=colour, label=f"{q} latent variable" + "s" * (q > 1))
ax.axhline(1.0, c=INK, lw=1, ls="--")
ax.text(5, 1.0, "mean of the column", va="bottom", size=9)
ax.set(xlabel="% of entries missing", ylabel="mean squared error", ylim=(0, 1.15))
ax.set_title("Filling in 13 measurements of 178 wines", loc="left")
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
