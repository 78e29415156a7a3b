"""Machines that are fitted on a cluster, their targets, and the rows."""

import numpy as np

from mercer import (
    PCA,
    SVC,
    BernoulliMixture,
    FisherDiscriminant,
    GaussianClassifier,
    GaussianMixture,
    KernelRidge,
    KMeans,
    LogisticRegression,
    MultinomialMixture,
    NaiveBayes,
    SpectralClustering,
)
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian

RNG = np.random.default_rng(0)
X = np.abs(np.concatenate([RNG.standard_normal((60, 2)), RNG.standard_normal((40, 2)) + 4.0]))
Y = np.sin(X[:, 0]) + X[:, 1]
LABELS = np.where(X.sum(axis=1) > 3.0, "far", "near")
KERNEL = Nystrom(12).of(Gaussian(2.0), X)

MACHINES = [
    (KernelRidge(0.1, KERNEL), Y),
    (KernelRidge(0.1), Y),
    (LogisticRegression(KERNEL), LABELS),
    (SVC(KERNEL), LABELS),
    (FisherDiscriminant(KERNEL), LABELS),
    (NaiveBayes(kinds="gaussian"), LABELS),
    (GaussianClassifier(), LABELS),
    (PCA(2, KERNEL), None),
    (KMeans(2, KERNEL, n_init=2), None),
    (GaussianMixture(2, n_init=1), None),
    (BernoulliMixture(2, n_init=1, binarize=1.0), None),
    (MultinomialMixture(2, source="documents"), None),
    (SpectralClustering(2, KERNEL), None),
]


def named(value):
    return type(value[0]).__name__ if isinstance(value, tuple) else None
