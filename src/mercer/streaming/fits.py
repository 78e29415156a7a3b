"""All fits over blocks, in one import."""

from mercer.streaming import kmeans, logistic, naive_bayes, pca, ridge, svc
from mercer.streaming.fit import fit

__all__ = ["fit", "kmeans", "logistic", "naive_bayes", "pca", "ridge", "svc"]
