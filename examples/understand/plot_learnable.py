"""
What can be learnt, and what cannot
===================================

Learning is possible because a mean of many trials is seldom far off, and because a class of finite
VC dimension gives many points only few of all labellings. Where the dimension is infinite, an
adversary leaves every learner a quarter of the points to guess.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.plots import style
from mercer.theory import (
    Sines,
    binomial_tail,
    chernoff_tail,
    growth_bound,
    hoeffding_tail,
    no_free_lunch,
    play_adversary,
    relative_entropy_tail,
    sauer,
)


def remember(X, y, Z):
    """Keep to the labels that were seen, and say what the nearest one says elsewhere."""
    order = np.log10(Z[:, :1]) - np.log10(X[:, 0])
    return y[np.abs(order).argmin(axis=1)]


n, p = 400, 0.1
psi = np.linspace(0.02, 0.98, 49)
tails = {
    "Hoeffding": [hoeffding_tail(n, s * p, two_sided=False).value for s in psi],
    "Chernoff": [chernoff_tail(n, p, s).value for s in psi],
    "relative entropy": [relative_entropy_tail(n, p, (1 - s) * p).value for s in psi],
    "exact": [binomial_tail(n, p, int(np.ceil((1 - s) * n * p)) - 1) for s in psi],
}
examples = np.arange(1, 6)
points = Sines().draw(np.random.default_rng(0), 10)  # powers of ten
games = [play_adversary(remember, points[: 2 * m], m, trials=1500) for m in examples]

# %%
# On the left the chance that 400 trials of chance 0.1 succeed so much less often than expected; in
# the middle the labellings that three dimensions allow; on the right a learner of sines, which
# shatter any number of points, against the adversary. A learner in the sense of the theory would
# stay below the dashed line.

with style():
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4.2))
    for name, values in tails.items():
        left.plot(psi, values, label=name, lw=2.4 if name == "exact" else 1.6)
    left.set(yscale="log", ylim=(1e-16, 2), xlabel="fewer by this share", ylabel="probability")
    left.set_title("Tails: bounds and the truth")
    left.legend()
    m = np.arange(3, 31)
    middle.plot(m, 2.0**m, "--", color="#8C8C8C", label="all, $2^m$")
    middle.plot(m, [growth_bound(3, int(k)).value for k in m], label="$(em/d)^d$")
    middle.plot(m, [sauer(3, int(k)) for k in m], label="Sauer's sum")
    middle.set(yscale="log", xlabel="points m", ylabel="labellings")
    middle.set_title("VC dimension 3: a power, not an exponential")
    middle.legend()
    bars = [2 * g.standard_error for g in games]
    right.errorbar(
        examples, [g.mean for g in games], bars, fmt="o", label="simulated, two standard errors"
    )
    right.plot(
        examples, [no_free_lunch(int(k)).value for k in examples], label="no learner has less"
    )
    right.axhline(0.25, color="#8C8C8C", lw=1, label="a quarter")
    right.axhline(0.19, color="#8C8C8C", ls="--", lw=1, label="error 0.1 with probability 0.9")
    right.set(xlabel="examples", ylabel="mean error", ylim=(0, 0.4), xticks=examples)
    right.set_title("The adversary of infinite VC dimension")
    right.legend(loc="lower right")
plt.show()
