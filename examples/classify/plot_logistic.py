"""
Logistic regression: three losses and outliers
==============================================

The squared loss punishes rows for being far on the right side; the log loss grows for ever on the
wrong side; the tanh loss is bounded, so a few rows far away with the wrong label cost no more than
a few mistakes, and the border stays where the others are.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import LogisticRegression

COLORS = {"squared": "#009E73", "log": "#0072B2", "tanh": "#D55E00"}
INK = "#333333"
rng = np.random.default_rng(0)
X = np.vstack([rng.normal((-1.5, 0), 0.8, (80, 2)), rng.normal((1.5, 0), 0.8, (80, 2))])
y = np.repeat([0, 1], 80)
far = rng.normal((9, 5), 0.6, (12, 2))  # twelve rows that carry the label of the other side
XO, yo = np.vstack([X, far]), np.append(y, np.zeros(12, dtype=int))

figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
f = np.linspace(-4, 4, 200)
curves = {"squared": (1 - f) ** 2 / 2, "log": np.logaddexp(0, -f), "tanh": 1 - np.tanh(f)}
for loss, values in curves.items():
    axes[0].plot(f, values, color=COLORS[loss], label=loss)
axes[0].set(ylim=(-0.1, 5), xlabel="y f(x)", ylabel="loss", title="The losses")
axes[0].legend(frameon=False)

for ax, (A, c), title in (
    (axes[1], (X, y), "Clean rows"),
    (axes[2], (XO, yo), "Twelve rows with the wrong label, far away"),
):
    ax.scatter(*A.T, c=np.where(c == 1, "#CC79A7", "#56B4E9"), s=12)
    for loss, color in COLORS.items():
        machine = LogisticRegression(loss=loss, penalty=0.1).fit(A, c)
        w, b = machine.coef_[0], machine.intercept_[0]
        across = np.array([-4.5, 7.0])
        # the line w'x + b = 0, whichever way it runs
        line = np.column_stack([-(b + w[1] * across) / w[0], across])
        wrong = 100 * (1 - machine.score(X, y))
        style = "--" if loss == "squared" else "-"  # it may lie on another
        ax.plot(
            *line.T,
            style,
            color=color,
            zorder=3 if style == "--" else 2,
            label=f"{loss}: {wrong:.0f} % of clean rows wrong",
        )
        print(f"{title:<45} {loss:<8} {machine.certificate_.statement}")
    ax.set(xlim=(-4.5, 11), ylim=(-4.5, 7), title=title, xticks=[], yticks=[])
    ax.legend(frameon=False, loc="lower right", fontsize=8)
plt.show()
