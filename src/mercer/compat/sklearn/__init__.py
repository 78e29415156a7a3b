"""Drop-ins for classes of scikit-learn: change one import line, or none.

``from sklearn.svm import SVC`` becomes ``from mercer.compat.sklearn import SVC``; or ``patch()``,
and ``python -m mercer.compat.sklearn program.py``, swap the classes in programs as they are.
Signatures, defaults, fitted attributes, shapes and signs are those of scikit-learn 1.9; what
differs is listed in the user guide, with reasons. `certificate_`, `solution_` and `machine_` come
on top.
"""

from mercer.compat.sklearn.cca import CCA
from mercer.compat.sklearn.discriminant import LinearDiscriminantAnalysis
from mercer.compat.sklearn.gaussian_mixture import GaussianMixture
from mercer.compat.sklearn.kernel_pca import KernelPCA
from mercer.compat.sklearn.kernel_ridge import KernelRidge
from mercer.compat.sklearn.kmeans import KMeans
from mercer.compat.sklearn.logistic import LogisticRegression
from mercer.compat.sklearn.naive_bayes import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    MultinomialNB,
)
from mercer.compat.sklearn.neighbors import KNeighborsClassifier
from mercer.compat.sklearn.patch import patch, unpatch
from mercer.compat.sklearn.quadratic_discriminant import QuadraticDiscriminantAnalysis
from mercer.compat.sklearn.spectral import SpectralClustering
from mercer.compat.sklearn.svm.linear_svc import LinearSVC
from mercer.compat.sklearn.svm.linear_svr import LinearSVR
from mercer.compat.sklearn.svm.nu_svc import NuSVC
from mercer.compat.sklearn.svm.one_class import OneClassSVM
from mercer.compat.sklearn.svm.svc import SVC
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
