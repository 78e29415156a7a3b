"""
Fisher discriminant: penalties on the function and on its coefficients
======================================================================

A direction of feature space is a sum of kernels, one for each row. The penalty may be on the length
of the direction, or on the coefficients of the sum. Both shrink the border towards smoothness, the
second by the squares of the eigenvalues of the kernel matrix: directions of little variance go
first.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import FisherDiscriminant
from mercer.kernels import Gaussian

X, y = make_moons(120, noise=0.3, random_state=0)
new, labels = make_moons(600, noise=0.3, random_state=1)
penalties = np.logspace(-9, 1, 21)
FORMS = {"function": "#0072B2", "coefficients": "#D55E00"}

right = {
    form: [
        FisherDiscriminant(Gaussian(0.5), penalty=p, penalty_on=form).fit(X, y).score(new, labels)
        for p in penalties
    ]
    for form in FORMS
}
for form, scores in right.items():
    print(f"{form:<13} best on new rows: {100 * max(scores):.1f} % right")

# %%
# The borders of both, with a small and a large penalty.

columns, rows = np.meshgrid(np.linspace(-2, 3, 120), np.linspace(-1.7, 2.2, 120))
grid = np.column_stack([columns.ravel(), rows.ravel()])
figure, axes = plt.subplots(1, 3, figsize=(13, 3.9), layout="constrained")
for ax, penalty in zip(axes, (1e-6, 1e-1), strict=False):
    for form, colour in FORMS.items():
        machine = FisherDiscriminant(Gaussian(0.5), penalty=penalty, penalty_on=form).fit(X, y)
        values = machine.decision_function(grid).reshape(columns.shape)
        ax.contour(columns, rows, values, levels=[0.0], colors=colour, linewidths=1.6)
    ax.scatter(*X.T, c=np.where(y == 1, "#333333", "#bbbbbb"), s=12)
    ax.set(title=f"penalty = {penalty:g}", xticks=[], yticks=[])
for form, colour in FORMS.items():
    axes[2].semilogx(penalties, 100 * np.array(right[form]), color=colour, label=f"on the {form}")
axes[2].set(xlabel="penalty", ylabel="right on new rows, %", title="Each in units of its scatter")
axes[2].legend(frameon=False)
plt.show()
