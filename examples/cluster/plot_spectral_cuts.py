"""
Spectral clustering: four normalisations
========================================

Two dense groups, a sparse ring around them, and two strays. What is cut depends on what balances
clusters. The ratio cut divides the weight that a cluster loses by its number of points, and so
cuts the ring, where weights are small; the normalised cut divides by the sum of degrees; the doubly
stochastic scaling gives every point the same degree first; and the plain relaxation is kernel
K-means without the constraint that membership be 0 or 1.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SpectralClustering
from mercer.kernels import Gaussian
from mercer.solvers import minimum_cut

rng = np.random.default_rng(4)
dense = [rng.normal(centre, 0.22, (150, 2)) for centre in ([-0.95, 0.0], [0.95, 0.0])]
angle = rng.uniform(0, 2 * np.pi, 240)
around = np.column_stack([np.cos(angle), 0.8 * np.sin(angle)]) * 3.1
around += 0.16 * rng.standard_normal((240, 2))
strays = np.array([[4.35, 0.3], [-4.3, -0.4]])
X = np.vstack([*dense, around, strays])

kernel = Gaussian(0.4)
names = {
    "plain": "plain relaxation",
    "ratio": "ratio cut",
    "normalized": "normalised cut",
    "doubly_stochastic": "doubly stochastic",
}
machines = {
    name: SpectralClustering(3, kernel, normalization=name, random_state=0).fit(X) for name in names
}
for name, machine in machines.items():
    values, sizes = machine.cut_values_, np.bincount(machine.labels_).tolist()
    print(
        f"{names[name]:<18} cut {values.cut:8.3f}  ratio {values.ratio:7.4f}  "
        f"normalised {values.normalized:.4f}  sizes {sizes}  {machine.certificate_.ok}"
    )

# %%
# Why balance at all: the exact minimum cut, by maximum flow, of the ring and the strays does not
# divide the ring but takes off a stray.

cheapest = minimum_cut(kernel(X[300:])).value
print(f"minimum cut: {np.bincount(cheapest.labels).tolist()} points, weight {cheapest.value:.1e}")

# %%
# The titles have the values of all three cuts. Each machine is good at its own.

COLOURS, MARKERS = np.array(["#0072B2", "#E69F00", "#009E73"]), ["o", "^", "s"]
figure, axes = plt.subplots(2, 2, figsize=(10.5, 7.6), layout="constrained")
for ax, (name, machine) in zip(axes.flat, machines.items(), strict=True):
    order = np.argsort(-np.bincount(machine.labels_, minlength=3), kind="stable")
    for colour, marker, cluster in zip(COLOURS, MARKERS, order, strict=True):
        ax.scatter(*X[machine.labels_ == cluster].T, s=13, c=colour, marker=marker)
    v = machine.cut_values_
    title = f"{names[name]}\ncut {v.cut:.2g}, ratio {v.ratio:.2g}, normalised {v.normalized:.2g}"
    ax.set_title(title, loc="left", size=10)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
plt.show()
