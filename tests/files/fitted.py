"""Every machine of the library, fitted in several ways: what model files are tested with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.compat import sklearn as compat
from mercer.kernels import Gaussian, Linear, Matern, Polynomial, Spectrum
from mercer.selection import MultipleKernel, Tuned


class Data:
    """Rows and targets of every kind, of a size."""

    def __init__(self, n: int = 40, d: int = 3, classes: int = 3) -> None:
        rng = np.random.default_rng(0)
        half = n // 2
        self.X = rng.normal(size=(n, d))
        self.X[half:] += 1.5
        self.y = (np.arange(n) >= half).astype(np.int64)
        words = np.array(["red", "green", "blue", "ochre", "black"])
        self.three = words[np.arange(n) % classes]
        self.targets = self.X @ rng.normal(size=d) + 0.1 * rng.normal(size=n)
        self.two_targets = np.column_stack([self.targets, self.targets**2])
        self.view = self.X[:, :2] + 0.1 * rng.normal(size=(n, 2))
        self.counts = rng.poisson(2.0, size=(n, d + 2)).astype(float)
        self.bits = (self.counts > 1).astype(float)
        self.K = Gaussian(1.0)(self.X)
        self.thin = sparse.csr_array(np.where(np.abs(self.X) > 1, self.X, 0.0))
        said = ["the cat sat", "a dog ran", "cats sit on mats", "dogs run far"]
        self.texts = np.array([said[i % 4] for i in range(n)], dtype=object)
        self.weights = rng.integers(0, 3, n).astype(float)


MACHINES: dict[str, Callable[[Data], Any]] = {
    "SVC": lambda D: mercer.SVC(Gaussian(1.0)).fit(D.X, D.y),
    "SVC linear": lambda D: mercer.SVC("linear", C=10.0).fit(D.X, D.y),
    "SVC three": lambda D: mercer.SVC("gaussian", probability=True).fit(D.X, D.three),
    "SVC ovr": lambda D: mercer.SVC(Matern(1.5), multiclass="ovr").fit(D.X, D.three, D.weights),
    "SVC nu": lambda D: mercer.SVC(Gaussian(1.0), nu=0.3).fit(D.X, D.y == 1),
    "SVC l2": lambda D: mercer.SVC(Polynomial(2), slack="l2").fit(D.X, D.y * 2.0),
    "SVC precomputed": lambda D: mercer.SVC("precomputed").fit(D.K, D.three),
    "SVC sparse": lambda D: mercer.SVC(Gaussian(1.0)).fit(D.thin, D.y),
    "SVC words": lambda D: mercer.SVC(Spectrum(2)).fit(D.texts, D.y),
    "SVC columns": lambda D: mercer.SVC(Gaussian([0.5, 2.0]).on([0, 2]) + 0.1).fit(D.X, D.y),
    "SVC float32": lambda D: mercer.SVC(Gaussian(1.0)).fit(D.X.astype(np.float32), D.y),
    "SVR": lambda D: mercer.SVR(Gaussian(1.0)).fit(D.X, D.targets),
    "SVR nu": lambda D: mercer.SVR("linear", nu=0.5).fit(D.X, D.targets),
    "OneClassSVM": lambda D: mercer.OneClassSVM(Gaussian(1.0), nu=0.2).fit(D.X),
    "EnclosingBall": lambda D: mercer.EnclosingBall(Gaussian(1.0), nu=0.2).fit(D.X),
    "KernelRidge": lambda D: mercer.KernelRidge(0.1, Gaussian(1.0)).fit(D.X, D.targets),
    "KernelRidge loo": lambda D: mercer.KernelRidge("loo", Gaussian(1.0)).fit(D.X, D.two_targets),
    "KernelRidge linear": lambda D: mercer.KernelRidge([0.1, 1.0]).fit(
        D.X, D.two_targets, D.weights
    ),
    "KernelRidge product": lambda D: mercer.KernelRidge(1.0, Linear() * Gaussian(1.0)).fit(
        D.X, D.targets
    ),
    "LogisticRegression": lambda D: mercer.LogisticRegression(Gaussian(1.0)).fit(D.X, D.three),
    "LogisticRegression linear": lambda D: mercer.LogisticRegression().fit(D.X, D.y),
    "LogisticRegression stream": lambda D: mercer.LogisticRegression().partial_fit(
        D.X, D.y, classes=[0, 1]
    ),
    "PCA": lambda D: mercer.PCA(2, kernel=Gaussian(1.0)).fit(D.X),
    "PCA linear": lambda D: mercer.PCA(0.9).fit(D.X),
    "PCA whiten": lambda D: mercer.PCA(2, kernel=Polynomial(2), whiten=True).fit(D.X),
    "PCA sparse": lambda D: mercer.PCA(2).fit(D.thin),
    "CCA": lambda D: mercer.CCA(1, kernel_x=Gaussian(2.0)).fit(D.X, D.view),
    "CCA linear": lambda D: mercer.CCA(2, penalty=0.1).fit(D.X, D.view),
    "FisherDiscriminant": lambda D: mercer.FisherDiscriminant(kernel=Gaussian(1.0)).fit(
        D.X, D.three
    ),
    "FisherDiscriminant linear": lambda D: mercer.FisherDiscriminant().fit(D.X, D.y),
    "KMeans": lambda D: mercer.KMeans(3).fit(D.X),
    "KMeans kernel": lambda D: mercer.KMeans(3, kernel=Gaussian(1.0)).fit(D.X),
    "SpectralClustering": lambda D: mercer.SpectralClustering(2, kernel=Gaussian(1.0)).fit(D.X),
    "SpectralClustering graph": lambda D: mercer.SpectralClustering(2, neighbors=8).fit(D.X),
    "GaussianMixture": lambda D: mercer.GaussianMixture(2).fit(D.X),
    "GaussianMixture bic": lambda D: mercer.GaussianMixture(
        "bic", max_components=3, covariance="diagonal"
    ).fit(D.X),
    "GaussianMixture shared": lambda D: mercer.GaussianMixture(2, covariance="shared").fit(D.X),
    "BernoulliMixture": lambda D: mercer.BernoulliMixture(2).fit(D.bits),
    "MultinomialMixture": lambda D: mercer.MultinomialMixture(2).fit(D.counts),
    "MultinomialMixture documents": lambda D: mercer.MultinomialMixture(2, source="documents").fit(
        D.counts
    ),
    "ProbabilisticPCA": lambda D: mercer.ProbabilisticPCA(2).fit(D.X),
    "ProbabilisticPCA em": lambda D: mercer.ProbabilisticPCA(1, method="em").fit(D.X),
    "NearestMean": lambda D: mercer.NearestMean(Gaussian(1.0)).fit(D.X, D.three),
    "NearestMean linear": lambda D: mercer.NearestMean().fit(D.X, D.y),
    "NearestNeighbors": lambda D: mercer.NearestNeighbors(3).fit(D.X, D.three),
    "NearestNeighbors kernel": lambda D: mercer.NearestNeighbors(
        "loo", kernel=Gaussian(1.0), votes="similarity"
    ).fit(D.X, D.y),
    "NaiveBayes": lambda D: mercer.NaiveBayes().fit(D.bits, D.y),
    "NaiveBayes gaussian": lambda D: mercer.NaiveBayes(kinds="gaussian").fit(D.X, D.three),
    "NaiveBayes words": lambda D: mercer.NaiveBayes().fit(
        np.column_stack([D.three, D.texts]).astype(object), D.y
    ),
    "NaiveBayes counts": lambda D: mercer.NaiveBayes(kinds="count").fit(D.counts, D.y),
    "GaussianClassifier": lambda D: mercer.GaussianClassifier().fit(D.X, D.three),
    "GaussianClassifier shared": lambda D: mercer.GaussianClassifier(shared=True).fit(D.X, D.y),
    "BayesDecision": lambda D: mercer.BayesDecision().fit(D.bits, D.y),
    "BayesDecision words": lambda D: mercer.BayesDecision(alpha=1.0).fit(
        np.column_stack([D.three, D.texts]).astype(object), D.y
    ),
    "AxisAlignedRectangle": lambda D: mercer.AxisAlignedRectangle().fit(D.X, D.X[:, 0] > 0),
    "Perceptron": lambda D: mercer.Perceptron(Gaussian(0.3)).fit(D.X, D.y),
    "Perceptron voted": lambda D: mercer.Perceptron(answer="voted").fit(D.X, D.X[:, 0] > 0),
    "Perceptron stream": lambda D: mercer.Perceptron(Gaussian(1.0), budget=5).partial_fit(
        D.X, D.y, classes=[0, 1]
    ),
    "LogShift": lambda D: mercer.LogShift().fit(D.counts),
    "Whiten": lambda D: mercer.Whiten().fit(D.X),
    "BagOfWords": lambda D: mercer.BagOfWords().fit(D.texts),
    "MaximumEntropy": lambda D: mercer.MaximumEntropy().fit(D.bits, D.bits.mean(axis=0) * 0.9),
    "JointTable": lambda D: mercer.JointTable.from_data(D.three, D.y),
    "MultipleKernel": lambda D: MultipleKernel(
        mercer.SVC(), [Gaussian(0.5), Gaussian(2.0), Linear()]
    ).fit(D.X, D.y),
    "MultipleKernel ridge": lambda D: MultipleKernel(
        mercer.KernelRidge(0.1), [Gaussian(0.5), Linear()], method="ridge"
    ).fit(D.X, D.targets),
    "Tuned": lambda D: Tuned(mercer.SVC(Gaussian(1.0)), {"C": [0.1, 1.0]}, cv=3).fit(D.X, D.y),
    "Tuned ridge": lambda D: Tuned(
        mercer.KernelRidge(kernel=Gaussian(1.0)), {"penalty": [0.1, 1.0]}, cv="loo"
    ).fit(D.X, D.targets),
    "Pipeline": lambda D: make_pipeline(StandardScaler(), mercer.SVC(Gaussian(1.0))).fit(
        D.X, D.three
    ),
    "Pipeline words": lambda D: make_pipeline(mercer.BagOfWords(), mercer.NaiveBayes()).fit(
        D.texts, D.y
    ),
    "compat.SVC": lambda D: compat.SVC().fit(D.X, D.three),
    "compat.SVC linear": lambda D: compat.SVC(kernel="linear").fit(D.X, D.y),
    "compat.SVR": lambda D: compat.SVR().fit(D.X, D.targets),
    "compat.NuSVC": lambda D: compat.NuSVC(nu=0.3).fit(D.X, D.three),
    "compat.NuSVR": lambda D: compat.NuSVR().fit(D.X, D.targets),
    "compat.OneClassSVM": lambda D: compat.OneClassSVM(nu=0.2).fit(D.X),
    "compat.LinearSVC": lambda D: compat.LinearSVC().fit(D.X, D.three),
    "compat.LinearSVR": lambda D: compat.LinearSVR().fit(D.X, D.targets),
    "compat.KernelRidge": lambda D: compat.KernelRidge(kernel="rbf").fit(D.X, D.targets),
    "compat.KernelPCA": lambda D: compat.KernelPCA(2, kernel="rbf").fit(D.X),
    "compat.KernelPCA inverse": lambda D: compat.KernelPCA(
        2, kernel="rbf", fit_inverse_transform=True
    ).fit(D.X),
    "compat.KMeans": lambda D: compat.KMeans(3, random_state=0).fit(D.X),
    "compat.KNeighborsClassifier": lambda D: compat.KNeighborsClassifier(3).fit(D.X, D.three),
    "compat.LinearDiscriminantAnalysis": lambda D: compat.LinearDiscriminantAnalysis().fit(
        D.X, D.three
    ),
    "compat.QuadraticDiscriminantAnalysis": lambda D: compat.QuadraticDiscriminantAnalysis().fit(
        D.X, D.three
    ),
    "compat.LogisticRegression": lambda D: compat.LogisticRegression().fit(D.X, D.three),
    "compat.GaussianNB": lambda D: compat.GaussianNB().fit(D.X, D.three),
    "compat.MultinomialNB counts": lambda D: compat.MultinomialNB().fit(D.counts, D.y),
    "compat.ComplementNB counts": lambda D: compat.ComplementNB().fit(D.counts, D.y),
    "compat.BernoulliNB counts": lambda D: compat.BernoulliNB().fit(D.counts, D.y),
    "compat.CategoricalNB counts": lambda D: compat.CategoricalNB().fit(D.counts, D.y),
    "compat.GaussianMixture": lambda D: compat.GaussianMixture(2, random_state=0).fit(D.X),
    "compat.CCA": lambda D: compat.CCA(1).fit(D.X, D.view),
    "compat.SpectralClustering": lambda D: compat.SpectralClustering(2, random_state=0).fit(D.X),
}


def rows_for(name: str, data: Data) -> Any:
    """Return rows that a machine can be asked about."""
    if "precomputed" in name:
        return data.K
    if name in ("NaiveBayes words", "BayesDecision words"):
        return np.column_stack([data.three, data.texts]).astype(object)
    if "words" in name or "Bag" in name:
        return data.texts
    if "sparse" in name:
        return data.thin
    if name in ("NaiveBayes", "BayesDecision", "BernoulliMixture", "MaximumEntropy"):
        return data.bits
    if "Multinomial" in name or "counts" in name or name == "LogShift":
        return data.counts
    return data.X
