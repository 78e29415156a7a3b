"""
Looking at machines: regions, margins, tubes, paths, topics
===========================================================

What has been learnt? Each display takes a fitted machine, and the rows it is to be seen on. With
more than two columns, choose two (the others are held at their median), or a plane of directions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, GaussianClassifier, KernelRidge, MultinomialMixture
from mercer.kernels import Gaussian
from mercer.plots import (
    ConvergenceDisplay,
    DecisionRegionDisplay,
    MarginDisplay,
    RidgePathDisplay,
    TopicsDisplay,
    TubeDisplay,
    style,
)

# %%
# Regions of a machine of four columns: over two of them, and over the plane that keeps the classes
# apart best.

iris = load_iris(as_frame=True)
names = iris.target_names[iris.target]
machine = make_pipeline(StandardScaler(), GaussianClassifier()).fit(iris.data, names)
petals = ("petal length (cm)", "petal width (cm)")
with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.2))
    DecisionRegionDisplay.from_estimator(machine, iris.data, names, features=petals, ax=left)
    DecisionRegionDisplay.from_estimator(machine, iris.data, names, plane="discriminant", ax=right)
plt.show()

# %%
# The margin of a support vector classifier, and the rows that carry it.

X, y = make_moons(200, noise=0.24, random_state=4)
MarginDisplay.from_estimator(SVC(Gaussian(0.6), C=5.0).fit(X, y), X, y)
plt.show()

# %%
# The tube of a support vector regression, and the penalty of a ridge regression: by exact
# leave-one-out errors, and by what becomes of the coefficients.

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0, 10, 120))[:, None]
wave = np.sin(x[:, 0]) + 0.1 * x[:, 0] + 0.2 * rng.standard_normal(120)
diabetes = load_diabetes(as_frame=True)
ridge = KernelRidge("loo", penalties=np.logspace(-4, 2, 30)).fit(diabetes.data, diabetes.target)
with style():
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.2))
    tube = SVR(Gaussian(1.2), C=5.0, epsilon=0.3).fit(x, wave)
    TubeDisplay.from_estimator(tube, x, wave, ax=axes[0])
    RidgePathDisplay.from_estimator(ridge, ax=axes[1])
    RidgePathDisplay.from_estimator(ridge, diabetes.data, diabetes.target, ax=axes[2])
plt.show()

# %%
# How a fit came to its end: it is stopped on the way, judged by its certificate, and resumed.

ConvergenceDisplay.from_fit(
    SVC(Gaussian(0.5), C=100.0, tol=1e-6), *make_moons(500, noise=0.3, random_state=0),
    against="iterations",
)  # fmt: skip
plt.show()

# %%
# Topics of texts, by their words; the share is that of all words.

TEXTS = """the judge read the law to the court|a court of law needs a judge and a jury
the team won the game with a late goal|a player of the team scored a goal in the game
the bank raised the rate of the loan|a loan from the bank has a rate of interest
the jury and the judge left the court|the law was read in court
the game ended without a goal|the bank and the loan have a fixed rate of interest""".replace(
    "\n", "|"
)
topics = make_pipeline(CountVectorizer(stop_words="english"), MultinomialMixture(3, n_init=5))
TopicsDisplay.from_estimator(topics.fit(TEXTS.split("|")), n_words=6)
plt.show()
