"""
Kernel principal components: taking noise off digits
====================================================

Noisy pictures are projected on principal components and brought back. Linear PCA brings back a
point of a plane through all digits; kernel PCA a pre-image: the picture whose image in feature
space comes nearest to the projection, found by fixed-point iteration from a training picture.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import PCA
from mercer.kernels import Gaussian

data = load_digits()
pictures, label = data.data / 16.0, data.target
rng = np.random.default_rng(0)
train, clean = pictures[:1300], pictures[1300:]
noisy = clean + 0.3 * rng.standard_normal(clean.shape)

linear = PCA(n_components=16).fit(train)
kernel = PCA(kernel=Gaussian(2.0), n_components=100).fit(train)
restored = {
    "noisy": noisy,
    "linear PCA, 16": linear.inverse_transform(linear.transform(noisy)),
    "Gaussian PCA, 100": kernel.inverse_transform(kernel.transform(noisy)),
}
error = {name: np.square(found - clean).mean() for name, found in restored.items()}
for name, value in error.items():
    print(f"{name:<18} mean squared error {value:.4f}")

# %%
# One picture of each digit. Linear PCA keeps what noise lies along its components; the kernel's
# pictures are averages of training pictures that are near, and have clean backgrounds.

chosen = [int(np.flatnonzero(label[1300:] == digit)[1]) for digit in range(10)]
figure, axes = plt.subplots(4, 10, figsize=(10, 4.6), layout="constrained")
shown = {"clean": clean, **restored}
for row, (name, found) in zip(axes, shown.items(), strict=True):
    for ax, i in zip(row, chosen, strict=True):
        ax.imshow(found[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("#cccccc")
    note = f"{name}\nerror {error[name]:.3f}" if name in error else name
    row[0].set_ylabel(note, rotation=0, ha="right", va="center", size=10)
plt.show()

# %%
# How many components? Few lose the shape; with many, linear PCA brings the noise back. The kernel
# has room for hundreds, and its pre-images stay near pictures that were seen.

counts = np.array([1, 2, 4, 8, 16, 32, 64])
by_linear, by_kernel = [], []
for k in counts:
    for machine, errors in (
        (PCA(n_components=int(k)), by_linear),
        (PCA(kernel=Gaussian(2.0), n_components=4 * int(k)), by_kernel),
    ):
        machine.fit(train[:700])
        back = machine.inverse_transform(machine.transform(noisy[:150]))
        errors.append(np.square(back - clean[:150]).mean())

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.plot(counts, by_linear, "o-", c=BLUE, label="linear")
ax.plot(4 * counts, by_kernel, "s-", c=ORANGE, label="Gaussian, scale 2, fixed-point pre-images")
ax.axhline(error["noisy"], c=INK, lw=1, ls="--")
ax.text(1, error["noisy"], "noisy pictures", va="bottom", size=9)
ax.set(xscale="log", xlabel="components", ylabel="mean squared error", ylim=(0, None))
ax.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
ax.set_title("Error of 150 restored pictures", loc="left")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
