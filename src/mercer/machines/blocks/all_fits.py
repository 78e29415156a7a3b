"""All fits over blocks, in one import."""

from mercer.machines.bayes import blocks as gaussian_classifier
from mercer.machines.bayes import blocks as naive_bayes
from mercer.machines.blocks.fit import fit, has_fit
from mercer.machines.clustering import blocks as kmeans
from mercer.machines.clustering import spectral_blocks as spectral
from mercer.machines.decomposition import blocks as pca
from mercer.machines.discriminant import blocks as fisher
from mercer.machines.logistic import blocks as logistic
from mercer.machines.mixture import blocks as mixture
from mercer.machines.ridge import blocks as ridge
from mercer.machines.svm import blocks as svc

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
