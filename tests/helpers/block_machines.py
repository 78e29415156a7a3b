"""Machines that are fitted to rows in blocks and on a cluster, by name, each with its targets."""

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


def block_machines(kernel, y, labels):
    """Return one of each; the kernel must have features."""
    return {
        "KernelRidge": (KernelRidge(0.1, kernel), y),
        "LogisticRegression": (LogisticRegression(kernel), labels),
        "SVC": (SVC(kernel), labels),
        "FisherDiscriminant": (FisherDiscriminant(kernel), labels),
        "NaiveBayes": (NaiveBayes(kinds="gaussian"), labels),
        "GaussianClassifier": (GaussianClassifier(), labels),
        "PCA": (PCA(2, kernel), None),
        "KMeans": (KMeans(2, kernel, n_init=2), None),
        "GaussianMixture": (GaussianMixture(2, n_init=1), None),
        "BernoulliMixture": (BernoulliMixture(2, n_init=1, binarize=1.0), None),
        "MultinomialMixture": (MultinomialMixture(2, source="documents"), None),
        "SpectralClustering": (SpectralClustering(2, kernel), None),
    }
