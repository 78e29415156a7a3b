"""
Bayes decisions: base rates and costs
=====================================

A test finds 98 % of the ill and alarms 3 % of the healthy; 1 % of the population is ill. What does
an alarm mean? Bayes' rule says 24.8 %: of a hundred alarms, three quarters are false. What to do
about it depends on what errors cost, and a second test may be worth more than a decision.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import BayesDecision

kit = BayesDecision.from_likelihood(
    [[0.98, 0.03], [0.02, 0.97]], [0.01, 0.99], classes=["cancer", "healthy"], values=["+", "-"]
)
print(f"P(cancer | +) = {kit.predict_proba([['+']])[0, 0]:.3f}")
for name, params in {
    "likelihood alone": {"rule": "ml"},
    "most probable": {"rule": "map"},
    "missing a cancer costs 20": {"loss": [[0, 1], [20, 0]]},
    "a second test costs 0.2": {"reject": 0.2, "reject_label": "test again"},
}.items():
    decision = BayesDecision.from_likelihood(
        kit.likelihood_, kit.prior_, classes=kit.classes_, values=["+", "-"], **params
    ).predict([["+"]])[0]
    print(f"{name:<26} {decision}")

# %%
# On the left, what an alarm means at other base rates. On the right, a coin that may be forged
# (heads with probability 0.6, believed in with 0.25): belief after each toss of a forged and of a
# fair one.

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
rates = np.logspace(-4, -0.05, 200)
left.semilogx(rates, 0.98 * rates / (0.98 * rates + 0.03 * (1 - rates)), color=BLUE)
left.plot(0.01, 0.0098 / 0.0395, "o", color=ORANGE)
left.annotate("1 % are ill: 24.8 %", (0.01, 0.248), xytext=(10, -4), textcoords="offset points")
left.set(xlabel="share of the ill in the population", ylabel="P(ill | alarm)", ylim=(0, 1))
left.set_title("The base rate decides what an alarm means", loc="left")

coin = BayesDecision.from_likelihood(
    [[0.5, 0.6], [0.5, 0.4]], [0.75, 0.25], classes=["fair", "forged"], values=["H", "T"]
)
rng = np.random.default_rng(2)
for chance, colour, name in ((0.6, ORANGE, "forged coins"), (0.5, BLUE, "fair coins")):
    for run in range(5):
        tosses = np.where(rng.random(400) < chance, "H", "T")
        belief = coin.update(tosses.tolist())[:, 1]
        right.plot(belief, color=colour, alpha=0.7, linewidth=1.2, label=None if run else name)
right.axhline(0.25, color=INK, linewidth=0.8, linestyle=":")
right.set(xlabel="tosses", ylabel="P(forged | tosses)", ylim=(0, 1))
right.legend(frameon=True, framealpha=0.95, edgecolor="none", loc="center right")
right.set_title("Belief, toss by toss", loc="left")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
