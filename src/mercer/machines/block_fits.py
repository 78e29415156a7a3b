"""All fits over rows in blocks, in one import: each family registers its own."""

from mercer.machines.bayes import blocks as bayes
from mercer.machines.blocks.fit import fit, has_fit
from mercer.machines.clustering import blocks as clustering
from mercer.machines.clustering import spectral_blocks as spectral
from mercer.machines.decomposition import blocks as decomposition
from mercer.machines.discriminant import blocks as discriminant
from mercer.machines.logistic import blocks as logistic
from mercer.machines.mixture import blocks as mixture
from mercer.machines.ridge import blocks as ridge
from mercer.machines.svm import blocks as svm

__all__ = [
    "bayes",
    "clustering",
    "decomposition",
    "discriminant",
    "fit",
    "has_fit",
    "logistic",
    "mixture",
    "ridge",
    "spectral",
    "svm",
]
