"""Every machine of the library, fitted in several ways: what model files are tested with."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.approximation import Nystrom, RandomFeatures
from mercer.compat import sklearn as compat
from mercer.kernels import Gaussian, Linear, Matern, Polynomial, Spectrum
from mercer.selection import FeatureElimination, MultipleKernel, Tuned
from mercer.solvers import GradientDescent

# a sum and a product, each part with features of its own kind
SKETCHED = Gaussian(1.0).on([0, 1]) + 0.5 * Polynomial(3, 1.0) * Gaussian(2.0) + Linear().on([2])


class Data:
    """Rows and targets of every kind, of a size."""

    def __init__(self, n: int = 40, d: int = 3, classes: int = 3) -> None:
        rng = np.random.default_rng(0)
        half = n // 2
        self.X = rng.normal(size=(n, d))
        self.X[half:] += 1.5
        self.y = (np.arange(n) >= half).astype(np.int64)
        self.few = np.where(np.arange(n) % 4 == 0, self.y, -1)
        words = np.array(["red", "green", "blue", "ochre", "black"])
        self.three = words[np.arange(n) % classes]
        self.targets = self.X @ rng.normal(size=d) + 0.1 * rng.normal(size=n)
        self.few_targets = np.where(self.few >= 0, self.targets, np.nan)
        self.two_targets = np.column_stack([self.targets, self.targets**2])
        self.view = self.X[:, :2] + 0.1 * rng.normal(size=(n, 2))
        self.counts = rng.poisson(2.0, size=(n, d + 2)).astype(float)
        self.bits = (self.counts > 1).astype(float)
        self.K = Gaussian(1.0)(self.X)
        self.thin = sparse.csr_array(np.where(np.abs(self.X) > 1, self.X, 0.0))
        said = ["the cat sat", "a dog ran", "cats sit on mats", "dogs run far"]
        self.texts = np.array([said[i % 4] for i in range(n)], dtype=object)
        self.weights = rng.integers(0, 3, n).astype(float)


class Case:
    """A machine, and what it is fitted to."""

    def __init__(self, machine: Any, *data: Any) -> None:
        self.machine, self.data = machine, data

    def fit(self) -> Any:
        """Fit the machine."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ends other than SOLVED: files hold them, too
            return self.machine.fit(*self.data)


class Stream(Case):
    """A machine, and the stream that it learns from."""

    def __init__(self, machine: Any, *data: Any, classes: Any) -> None:
        super().__init__(machine, *data)
        self.classes = classes

    def fit(self) -> Any:
        """Let the machine learn from the rows, once."""
        return self.machine.partial_fit(*self.data, classes=self.classes)


class Made(Case):
    """A table that is made, not fitted."""

    def fit(self) -> Any:
        """Return it."""
        return self.machine


MACHINES: dict[str, Callable[[Data], Any]] = {
    "SVC": lambda D: Case(mercer.SVC(Gaussian(1.0)), D.X, D.y),
    "SVC linear": lambda D: Case(mercer.SVC("linear", C=10.0), D.X, D.y),
    "SVC three": lambda D: Case(mercer.SVC("gaussian", probability=True), D.X, D.three),
    "SVC ovr": lambda D: Case(mercer.SVC(Matern(1.5), multiclass="ovr"), D.X, D.three, D.weights),
    "SVC nu": lambda D: Case(mercer.SVC(Gaussian(1.0), nu=0.3), D.X, D.y == 1),
    "SVC l2": lambda D: Case(mercer.SVC(Polynomial(2), slack="l2"), D.X, D.y * 2.0),
    "SVC precomputed": lambda D: Case(mercer.SVC("precomputed"), D.K, D.three),
    "SVC sparse": lambda D: Case(mercer.SVC(Gaussian(1.0)), D.thin, D.y),
    "SVC words": lambda D: Case(mercer.SVC(Spectrum(2)), D.texts, D.y),
    "SVC landmarks": lambda D: Case(
        mercer.SVC(Gaussian(1.0), approximation=Nystrom(9)), D.X, D.three, D.weights
    ),
    "SVC landmarks among words": lambda D: Case(
        mercer.SVC(Spectrum(2), approximation="nystrom:3"), D.texts, D.y
    ),
    "KernelRidge landmarks, sparse": lambda D: Case(
        mercer.KernelRidge("loo", Gaussian(1.0), approximation=Nystrom(9)), D.thin, D.targets
    ),
    "LogisticRegression features": lambda D: Case(
        mercer.LogisticRegression(SKETCHED, approximation=RandomFeatures(16)), D.X, D.y
    ),
    "GaussianProcess landmarks": lambda D: Case(
        mercer.GaussianProcess(Gaussian(1.0), noise=0.1, approximation=Nystrom(9)), D.X, D.targets
    ),
    "PCA landmarks": lambda D: Case(
        mercer.PCA(2, Gaussian(1.0), approximation=Nystrom(9)), D.X, None
    ),
    "CCA features": lambda D: Case(
        mercer.CCA(1, Gaussian(1.0), Gaussian(1.0), approximation=RandomFeatures(8)), D.X, D.view
    ),
    "Perceptron features": lambda D: Stream(
        mercer.Perceptron(Gaussian(1.0), approximation=RandomFeatures(8)), D.X, D.y, classes=[0, 1]
    ),
    "SVC columns": lambda D: Case(mercer.SVC(Gaussian([0.5, 2.0]).on([0, 2]) + 0.1), D.X, D.y),
    "SVC float32": lambda D: Case(mercer.SVC(Gaussian(1.0)), D.X.astype(np.float32), D.y),
    "SVR": lambda D: Case(mercer.SVR(Gaussian(1.0)), D.X, D.targets),
    "SVR nu": lambda D: Case(mercer.SVR("linear", nu=0.5), D.X, D.targets),
    "OneClassSVM": lambda D: Case(mercer.OneClassSVM(Gaussian(1.0), nu=0.2), D.X),
    "EnclosingBall": lambda D: Case(mercer.EnclosingBall(Gaussian(1.0), nu=0.2), D.X),
    "KernelRidge": lambda D: Case(mercer.KernelRidge(0.1, Gaussian(1.0)), D.X, D.targets),
    "KernelRidge loo": lambda D: Case(mercer.KernelRidge("loo", Gaussian(1.0)), D.X, D.two_targets),
    "KernelRidge linear": lambda D: Case(
        mercer.KernelRidge([0.1, 1.0]), D.X, D.two_targets, D.weights
    ),
    "GaussianProcess": lambda D: Case(
        mercer.GaussianProcess("1 * gaussian", optimize=True), D.X, D.targets, D.weights
    ),
    "GaussianProcess linear": lambda D: Case(
        mercer.GaussianProcess("linear", bias=True), D.X, D.two_targets
    ),
    "GaussianProcess precomputed": lambda D: Case(
        mercer.GaussianProcess("precomputed", bias=True), D.K, D.targets, D.weights
    ),
    "GaussianProcessClassifier": lambda D: Case(
        mercer.GaussianProcessClassifier("1 * gaussian", optimize=True), D.X, D.three, D.weights
    ),
    "GaussianProcessClassifier landmarks": lambda D: Case(
        mercer.GaussianProcessClassifier(Gaussian(1.0), approximation=Nystrom(9)), D.X, D.three
    ),
    "GaussianProcessClassifier precomputed": lambda D: Case(
        mercer.GaussianProcessClassifier("precomputed"), D.K, D.y
    ),
    "MultiTaskGaussianProcess": lambda D: Case(
        mercer.MultiTaskGaussianProcess(Gaussian(1.0), optimize=True),
        D.X,
        D.two_targets,
        D.weights,
    ),
    "MultiTaskGaussianProcess landmarks": lambda D: Case(
        mercer.MultiTaskGaussianProcess(Gaussian(1.0), approximation=Nystrom(9)),
        D.X,
        D.two_targets,
    ),
    "MultiTaskGaussianProcess gaps": lambda D: Case(
        mercer.MultiTaskGaussianProcess(Gaussian(1.0), task_covariance=[[1.0, 0.5], [0.5, 1.0]]),
        D.X,
        np.where(np.arange(len(D.X))[:, None] % 3 == [0, 1], np.nan, D.two_targets),
    ),
    "KernelRidge product": lambda D: Case(
        mercer.KernelRidge(1.0, Linear() * Gaussian(1.0)), D.X, D.targets
    ),
    "LogisticRegression steps": lambda D: Case(
        mercer.LogisticRegression(solver=GradientDescent(step=1.0, max_iter=2000)), D.X, D.y
    ),
    "LogisticRegression": lambda D: Case(mercer.LogisticRegression(Gaussian(1.0)), D.X, D.three),
    "LogisticRegression linear": lambda D: Case(mercer.LogisticRegression(), D.X, D.y),
    "LogisticRegression stream": lambda D: Stream(
        mercer.LogisticRegression(), D.X, D.y, classes=[0, 1]
    ),
    "PCA": lambda D: Case(mercer.PCA(2, kernel=Gaussian(1.0)), D.X),
    "PCA linear": lambda D: Case(mercer.PCA(0.9), D.X),
    "PCA whiten": lambda D: Case(mercer.PCA(2, kernel=Polynomial(2), whiten=True), D.X),
    "PCA about the origin": lambda D: Case(mercer.PCA(2, kernel=Gaussian(1.0), center=False), D.X),
    "PCA sparse": lambda D: Case(mercer.PCA(2), D.thin),
    "CCA": lambda D: Case(mercer.CCA(1, kernel_x=Gaussian(2.0)), D.X, D.view),
    "CCA linear": lambda D: Case(mercer.CCA(2, penalty=0.1), D.X, D.view),
    "FisherDiscriminant": lambda D: Case(
        mercer.FisherDiscriminant(kernel=Gaussian(1.0)), D.X, D.three
    ),
    "FisherDiscriminant coefficients": lambda D: Case(
        mercer.FisherDiscriminant(kernel=Gaussian(1.0), penalty_on="coefficients"), D.X, D.three
    ),
    "FisherDiscriminant linear": lambda D: Case(mercer.FisherDiscriminant(), D.X, D.y),
    "KMeans balanced": lambda D: Case(mercer.KMeans(2, balanced=True), D.X),
    "KMeans": lambda D: Case(mercer.KMeans(3), D.X),
    "KMeans kernel": lambda D: Case(mercer.KMeans(3, kernel=Gaussian(1.0)), D.X),
    "SpectralClustering": lambda D: Case(mercer.SpectralClustering(2, kernel=Gaussian(1.0)), D.X),
    "SpectralClustering graph": lambda D: Case(mercer.SpectralClustering(2, neighbors=8), D.X),
    "GaussianMixture": lambda D: Case(mercer.GaussianMixture(2), D.X),
    "GaussianMixture bic": lambda D: Case(
        mercer.GaussianMixture("bic", max_components=3, covariance="diagonal"), D.X
    ),
    "GaussianMixture shared": lambda D: Case(mercer.GaussianMixture(2, covariance="shared"), D.X),
    "BernoulliMixture": lambda D: Case(mercer.BernoulliMixture(2), D.bits),
    "BernoulliMixture tied": lambda D: Case(mercer.BernoulliMixture(2, tied=True), D.bits),
    "MultinomialMixture": lambda D: Case(mercer.MultinomialMixture(2), D.counts),
    "MultinomialMixture documents": lambda D: Case(
        mercer.MultinomialMixture(2, source="documents"), D.counts
    ),
    "MDS": lambda D: Case(mercer.MDS(2), D.X),
    "MDS cityblock": lambda D: Case(mercer.MDS(1, metric="cityblock"), D.X),
    "ICA": lambda D: Case(mercer.ICA(2), D.X),
    "ICA deflation": lambda D: Case(mercer.ICA(algorithm="deflation", contrast="exp"), D.X),
    "ProjectionPursuit": lambda D: Case(mercer.ProjectionPursuit(1, contrast="cube"), D.X),
    "LabelPropagation": lambda D: Case(mercer.LabelPropagation(), D.X, D.few),
    "LabelPropagation dense": lambda D: Case(
        mercer.LabelPropagation(Gaussian(1.0), neighbors=None), D.X, D.few
    ),
    "LabelSpreading": lambda D: Case(mercer.LabelSpreading("precomputed"), D.K, D.few),
    "HarmonicRegressor": lambda D: Case(mercer.HarmonicRegressor(), D.X, D.few_targets),
    "LaplacianRidge": lambda D: Case(mercer.LaplacianRidge(0.1), D.X, D.few_targets),
    "LaplacianRidge linear": lambda D: Case(
        mercer.LaplacianRidge(0.1, Linear()), D.X, D.few_targets
    ),
    "LaplacianSVC": lambda D: Case(mercer.LaplacianSVC(), D.X, D.few),
    "LaplacianSVC three": lambda D: Case(
        mercer.LaplacianSVC(unlabelled="black"), D.X, np.where(D.y == D.y[0], D.three, "black")
    ),
    "FeatureElimination": lambda D: Case(
        FeatureElimination(mercer.SVC(Gaussian(2.0)), cv=2), D.X, D.three
    ),
    "ProbabilisticPCA": lambda D: Case(mercer.ProbabilisticPCA(2), D.X),
    "ProbabilisticPCA em": lambda D: Case(mercer.ProbabilisticPCA(1, method="em"), D.X),
    "NearestMean": lambda D: Case(mercer.NearestMean(Gaussian(1.0)), D.X, D.three),
    "NearestMean linear": lambda D: Case(mercer.NearestMean(), D.X, D.y),
    "NearestNeighbors": lambda D: Case(mercer.NearestNeighbors(3), D.X, D.three),
    "NearestNeighbors kernel": lambda D: Case(
        mercer.NearestNeighbors("loo", kernel=Gaussian(1.0), votes="similarity"), D.X, D.y
    ),
    "NearestNeighbors similar": lambda D: Case(
        mercer.NearestNeighbors(3, by="similarity", votes="signed"), D.X, D.three
    ),
    "NaiveBayes": lambda D: Case(mercer.NaiveBayes(), D.bits, D.y),
    "NaiveBayes gaussian": lambda D: Case(mercer.NaiveBayes(kinds="gaussian"), D.X, D.three),
    "NaiveBayes words": lambda D: Case(
        mercer.NaiveBayes(), np.column_stack([D.three, D.texts]).astype(object), D.y
    ),
    "NaiveBayes counts": lambda D: Case(mercer.NaiveBayes(kinds="count"), D.counts, D.y),
    "GaussianClassifier": lambda D: Case(mercer.GaussianClassifier(), D.X, D.three),
    "GaussianClassifier shared": lambda D: Case(mercer.GaussianClassifier(shared=True), D.X, D.y),
    "BayesDecision": lambda D: Case(mercer.BayesDecision(), D.bits, D.y),
    "BayesDecision words": lambda D: Case(
        mercer.BayesDecision(alpha=1.0), np.column_stack([D.three, D.texts]).astype(object), D.y
    ),
    "AxisAlignedRectangle": lambda D: Case(mercer.AxisAlignedRectangle(), D.X, D.X[:, 0] > 0),
    "Perceptron": lambda D: Case(mercer.Perceptron(Gaussian(0.3)), D.X, D.y),
    "Perceptron voted": lambda D: Case(mercer.Perceptron(answer="voted"), D.X, D.X[:, 0] > 0),
    "Perceptron stream": lambda D: Stream(
        mercer.Perceptron(Gaussian(1.0), budget=5), D.X, D.y, classes=[0, 1]
    ),
    "LogShift": lambda D: Case(mercer.LogShift(), D.counts),
    "Whiten": lambda D: Case(mercer.Whiten(), D.X),
    "BagOfWords": lambda D: Case(mercer.BagOfWords(), D.texts),
    "MaximumEntropy": lambda D: Case(mercer.MaximumEntropy(), D.bits, D.bits.mean(axis=0) * 0.9),
    "JointTable": lambda D: Made(mercer.JointTable.from_data(D.three, D.y)),
    "MultipleKernel": lambda D: Case(
        MultipleKernel(mercer.SVC(), [Gaussian(0.5), Gaussian(2.0), Linear()]), D.X, D.y
    ),
    "MultipleKernel ridge": lambda D: Case(
        MultipleKernel(mercer.KernelRidge(0.1), [Gaussian(0.5), Linear()], method="ridge"),
        D.X,
        D.targets,
    ),
    "Tuned": lambda D: Case(Tuned(mercer.SVC(Gaussian(1.0)), {"C": [0.1, 1.0]}, cv=3), D.X, D.y),
    "Tuned ridge": lambda D: Case(
        Tuned(mercer.KernelRidge(kernel=Gaussian(1.0)), {"penalty": [0.1, 1.0]}, cv="loo"),
        D.X,
        D.targets,
    ),
    "Pipeline": lambda D: Case(
        make_pipeline(StandardScaler(), mercer.SVC(Gaussian(1.0))), D.X, D.three
    ),
    "Pipeline words": lambda D: Case(
        make_pipeline(mercer.BagOfWords(n_features=64), mercer.NaiveBayes()), D.texts, D.y
    ),
    "compat.SVC": lambda D: Case(compat.SVC(), D.X, D.three),
    "compat.SVC linear": lambda D: Case(compat.SVC(kernel="linear"), D.X, D.y),
    "compat.SVR": lambda D: Case(compat.SVR(), D.X, D.targets),
    "compat.NuSVC": lambda D: Case(compat.NuSVC(nu=0.3), D.X, D.three),
    "compat.NuSVR": lambda D: Case(compat.NuSVR(), D.X, D.targets),
    "compat.OneClassSVM": lambda D: Case(compat.OneClassSVM(nu=0.2), D.X),
    "compat.LinearSVC": lambda D: Case(compat.LinearSVC(), D.X, D.three),
    "compat.LinearSVR": lambda D: Case(compat.LinearSVR(), D.X, D.targets),
    "compat.KernelRidge": lambda D: Case(compat.KernelRidge(kernel="rbf"), D.X, D.targets),
    "compat.KernelPCA": lambda D: Case(compat.KernelPCA(2, kernel="rbf"), D.X),
    "compat.KernelPCA inverse": lambda D: Case(
        compat.KernelPCA(2, kernel="rbf", fit_inverse_transform=True), D.X
    ),
    "compat.KMeans": lambda D: Case(compat.KMeans(3, random_state=0), D.X),
    "compat.KNeighborsClassifier": lambda D: Case(compat.KNeighborsClassifier(3), D.X, D.three),
    "compat.LinearDiscriminantAnalysis": lambda D: Case(
        compat.LinearDiscriminantAnalysis(), D.X, D.three
    ),
    "compat.QuadraticDiscriminantAnalysis": lambda D: Case(
        compat.QuadraticDiscriminantAnalysis(), D.X, D.three
    ),
    "compat.LogisticRegression": lambda D: Case(compat.LogisticRegression(), D.X, D.three),
    "compat.GaussianNB": lambda D: Case(compat.GaussianNB(), D.X, D.three),
    "compat.MultinomialNB counts": lambda D: Case(compat.MultinomialNB(), D.counts, D.y),
    "compat.ComplementNB counts": lambda D: Case(compat.ComplementNB(), D.counts, D.y),
    "compat.BernoulliNB counts": lambda D: Case(compat.BernoulliNB(), D.counts, D.y),
    "compat.CategoricalNB counts": lambda D: Case(compat.CategoricalNB(), D.counts, D.y),
    "compat.GaussianMixture": lambda D: Case(compat.GaussianMixture(2, random_state=0), D.X),
    "compat.CCA": lambda D: Case(compat.CCA(1), D.X, D.view),
    "compat.SpectralClustering": lambda D: Case(compat.SpectralClustering(2, random_state=0), D.X),
}


SMALL, OTHER, TINY = Data(), Data(37, 5, 4), Data(12, 3, 3)


@functools.cache
def fit(name: str, data: Data) -> Any:
    """Fit the machine of a name, once: tests that change it fit their own."""
    return MACHINES[name](data).fit()


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
