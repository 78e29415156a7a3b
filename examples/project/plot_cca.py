"""
Canonical correlation of two views
==================================

The left and the right half of a handwritten digit are two views of the same thing: which digit it
is, how slanted, how bold. Canonical correlation finds functions of each half that agree, without
ever being told the digit. With a linear kernel those are weighted sums of pixels; with a Gaussian
kernel any smooth function of a half, and what both halves agree on is mostly the digit itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import CCA
from mercer.kernels import Gaussian
from mercer.plots import ProjectionDisplay, style

X, digit = load_digits(return_X_y=True)
images = X.reshape(-1, 8, 8) / 16.0
left, right = images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)
train, test = np.arange(len(X)) < 1000, np.arange(len(X)) >= 1000

machines = {
    "linear": CCA(n_components=8, penalty=0.001),
    "Gaussian": CCA(kernel_x=Gaussian(1.5), kernel_y=Gaussian(1.5), n_components=8, penalty=0.001),
}
held_out = {}
for name, machine in machines.items():
    machine.fit(left[train], right[train])
    held_out[name] = machine.correlations(left[test], right[test])
    print(f"{name:<9} first correlations on new rows {held_out[name][:3].round(3)}")
    print(machine.certificate_)

# %%
# New images by the first two variates of their *left* half, coloured by the digit that neither
# machine knew; and how well the variates of both halves correlate on rows that were not fitted.

with style():
    figure, axes = plt.subplots(1, 3, figsize=(14, 4.2))
    for ax, (name, machine) in zip(axes, machines.items(), strict=False):
        ax.set_title(f"left halves, {name} kernel")
        ProjectionDisplay.from_estimator(machine, left[test], digit[test], ax=ax)
    number = np.arange(1, 9)
    axes[2].bar(number - 0.2, held_out["linear"], 0.38, color="#999999", label="linear")
    axes[2].bar(number + 0.2, held_out["Gaussian"], 0.38, color="#0072B2", label="Gaussian")
    axes[2].set_title("correlation of both halves, new rows")
    axes[2].set(xlabel="component", ylabel="correlation", ylim=(0, 1), xticks=number)
    axes[2].legend()
plt.show()
