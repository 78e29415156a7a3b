"""All fits over blocks, in one import."""

from mercer.streaming.fit import fit, has_fit
from mercer.streaming.fits import (
    fisher,
    gaussian_classifier,
    kmeans,
    logistic,
    mixture,
    naive_bayes,
    pca,
    ridge,
    spectral,
    svc,
)

__all__ = [
    "fisher",
    "fit",
    "gaussian_classifier",
    "has_fit",
    "kmeans",
    "logistic",
    "mixture",
    "naive_bayes",
    "pca",
    "ridge",
    "spectral",
    "svc",
]
