"""All fits over blocks, in one import."""

from mercer.streaming import (
    fisher,
    kmeans,
    logistic,
    mixture,
    naive_bayes,
    pca,
    ridge,
    svc,
)
from mercer.streaming.fit import fit

__all__ = ["fit", "fisher", "kmeans", "logistic", "mixture", "naive_bayes", "pca", "ridge", "svc"]
