"""Drop-ins for classes of scikit-learn: change one import line, or none.

``from sklearn.svm import SVC`` becomes ``from mercer.compat.sklearn import SVC``; or ``patch()``,
and ``python -m mercer.compat.sklearn program.py``, swap the classes in programs as they are.
Signatures, defaults, fitted attributes, shapes and signs are those of scikit-learn 1.9; what
differs is listed in the user guide, with reasons. `certificate_`, `solution_` and `machine_` come
on top.
"""

from mercer.compat.sklearn.cluster import KMeans, SpectralClustering
from mercer.compat.sklearn.cross_decomposition import CCA
from mercer.compat.sklearn.decomposition import KernelPCA
from mercer.compat.sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from mercer.compat.sklearn.kernel_ridge import KernelRidge
from mercer.compat.sklearn.linear_model import LogisticRegression
from mercer.compat.sklearn.mixture import GaussianMixture
from mercer.compat.sklearn.naive_bayes import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    MultinomialNB,
)
from mercer.compat.sklearn.neighbors import KNeighborsClassifier
from mercer.compat.sklearn.patch import patch, unpatch
from mercer.compat.sklearn.svm.linear import LinearSVC, LinearSVR
from mercer.compat.sklearn.svm.one_class import OneClassSVM
from mercer.compat.sklearn.svm.svc import SVC, NuSVC
from mercer.compat.sklearn.svm.svr import SVR, NuSVR

__all__ = [
    "CCA",
    "SVC",
    "SVR",
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianMixture",
    "GaussianNB",
    "KMeans",
    "KNeighborsClassifier",
    "KernelPCA",
    "KernelRidge",
    "LinearDiscriminantAnalysis",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "MultinomialNB",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "QuadraticDiscriminantAnalysis",
    "SpectralClustering",
    "patch",
    "unpatch",
]
