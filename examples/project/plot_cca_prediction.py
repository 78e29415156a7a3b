"""
The other half of a digit, through canonical variates
=====================================================

The left half of a digit tells something of its right half, and the other way round. With all
pairs of variates the prediction is ordinary least squares; with few pairs it is a regression of low
rank, which keeps what both halves agree on. New digits show how many pairs carry over.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import CCA

images = load_digits().images / 16.0
left, right = images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)
train, new = np.arange(250), np.arange(1000, 1500)  # few rows: least squares has much to lose
counts = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24]


def error(found, true):
    return np.sqrt(np.mean((found - true) ** 2))


fits = {k: CCA(k, penalty=0.003).fit(left[train], right[train]) for k in counts}
errors = np.array(
    [
        (
            error(fit.predict(left[new]), right[new]),
            error(fit.predict_x(right[new]), left[new]),
            error(fit.predict(left[new], through="variates"), right[new]),
        )
        for fit in fits.values()
    ]
)
design = np.column_stack([left[train], np.ones(len(train))])
slopes = np.linalg.lstsq(design, right[train], rcond=None)[0]
plain = error(np.column_stack([left[new], np.ones(len(new))]) @ slopes, right[new])
best = counts[int(errors[:, 0].argmin())]
print(f"best with {best} pairs: error {errors[:, 0].min():.3f}; least squares {plain:.3f}")
print(fits[best].certificate_)

# %%
# Eight new digits, and their halves as the other half predicts them.

figure, axes = plt.subplots(
    3, 9, figsize=(12.5, 4.2), layout="constrained", width_ratios=[1] * 8 + [5]
)
chosen = new[:8]
given_left = np.dstack(
    [images[chosen][:, :, :4], fits[best].predict(left[chosen]).reshape(-1, 8, 4)]
)
given_right = np.dstack(
    [fits[best].predict_x(right[chosen]).reshape(-1, 8, 4), images[chosen][:, :, 4:]]
)
rows = {"true": images[chosen], "from the left": given_left, "from the right": given_right}
for row, (name, pictures) in zip(axes, rows.items(), strict=True):
    for ax, picture in zip(row, pictures, strict=False):
        ax.imshow(picture, cmap="Greys", vmin=0, vmax=1)
        ax.axvline(3.5, color="#D55E00", linewidth=0.8)
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)
for ax in axes[:, 8]:
    ax.remove()
curve = figure.add_subplot(axes[0, 0].get_gridspec()[:, 8])
for column, (name, colour) in enumerate(
    {"right from left": "#0072B2", "left from right": "#009E73", "by way of v": "#CC79A7"}.items()
):
    curve.plot(counts, errors[:, column], ".-", color=colour, label=name)
curve.axhline(plain, color="#999999", linestyle="--", label="right, least squares")
curve.set(xlabel="pairs of variates", ylabel="error on new rows", title="How many pairs")
curve.legend(frameon=False)
plt.show()
