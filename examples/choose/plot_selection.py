"""
Learning curves, bias and variance, thresholds
==============================================

The error on new rows has two parts that move against each other: what a machine cannot say (bias)
and what it says by accident (variance). Beside them a learning curve, and the choice of a threshold
when a miss costs ten wrong alarms.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, KernelRidge
from mercer.kernels import Gaussian
from mercer.selection import bias_variance, choose_threshold, learning_curve, roc

rng = np.random.default_rng(1)
x = rng.uniform(-3, 3, size=(360, 1))
target = np.sin(2 * x[:, 0]) + 0.4 * rng.standard_normal(360)
scales = np.logspace(-1.3, 0.9, 12)
parts = [
    bias_variance(
        KernelRidge(0.05, kernel=Gaussian(s)),
        x[:60],
        target[:60],
        x[60:],
        target[60:],
        resamples=25,
    )
    for s in scales
]

points = rng.standard_normal((900, 2))
label = (points**2).sum(axis=1) + 0.8 * rng.standard_normal(900) > 1.5
curve = learning_curve(
    SVC(Gaussian(1.0)), points[:500], label[:500], sizes=[15, 30, 60, 120, 240, 400]
)
machine = SVC(Gaussian(1.0)).fit(points[:300], label[:300])
score = machine.decision_function(points[500:])
found = roc(label[500:], score)
even = choose_threshold(label[500:], score)
careful = choose_threshold(label[500:], score, false_negative_cost=10.0)

# %%
# On the left the scale of the kernel is varied: small scales follow the noise, large ones cannot
# follow the sine.

INK, BLUE, ORANGE, GREEN = "#333333", "#0072B2", "#D55E00", "#009E73"
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.1), layout="constrained")
left.plot(scales, [p.error for p in parts], color=INK, lw=2.2, label="error")
left.plot(scales, [p.bias for p in parts], color=BLUE, label="bias and noise")
left.plot(scales, [p.variance for p in parts], color=ORANGE, label="variance")
left.axhline(0.16, color=GREEN, ls="--", lw=1, label="noise alone")
left.set(xscale="log", xlabel="scale of the kernel", ylabel="squared error", ylim=(0, None))
left.set_title("Bias against variance")
left.legend(frameon=False)

for name, scores, colour in (
    ("new rows", curve.scores, BLUE),
    ("own rows", curve.train_scores, ORANGE),
):
    mean, spread = scores.mean(axis=1), scores.std(axis=1)
    middle.plot(curve.sizes, mean, "o-", color=colour, label=name)
    middle.fill_between(curve.sizes, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
middle.set(xscale="log", xlabel="rows learnt from", ylabel="share of right labels")
middle.set_xticks(curve.sizes, labels=curve.sizes)
middle.minorticks_off()
middle.set_title("Learning curve")
middle.legend(frameon=False)

right.plot(found.false_positive, found.true_positive, color=INK)
right.plot([0, 1], [0, 1], ":", color=INK, lw=1)
for cut, name, colour in (
    (even, "all errors cost the same", BLUE),
    (careful, "a miss costs ten", ORANGE),
):
    right.plot(cut.false_positive, cut.true_positive, "o", ms=9, color=colour, label=name)
right.set(xlabel="wrong alarms", ylabel="positives found", aspect="equal")
right.set_title(f"Every threshold: area {found.area:.3f}")
right.legend(frameon=False, loc="lower right")
plt.show()
