"""The scikit-learn face: validate, translate to a problem, keep the answer. Thin."""

from mercer.machines.base.approximate import ApproximationWarning
from mercer.machines.base.moving import to_device
from mercer.machines.base.parameters import ParameterError
from mercer.machines.base.similarity import FitWarning
from mercer.machines.bayes.bag_of_words import BagOfWords
from mercer.machines.bayes.bayes_decision import BayesDecision
from mercer.machines.bayes.gaussian_classifier import GaussianClassifier
from mercer.machines.bayes.informative_values import Telling
from mercer.machines.bayes.joint_table import Independence, JointTable
from mercer.machines.bayes.naive_bayes import NaiveBayes
from mercer.machines.classification.fisher import FisherDiscriminant
from mercer.machines.classification.nearest_mean import NearestMean
from mercer.machines.classification.nearest_neighbors import NearestNeighbors
from mercer.machines.classification.rectangle import AxisAlignedRectangle
from mercer.machines.clustering.disconnected import DisconnectedWarning
from mercer.machines.clustering.kmeans import KMeans
from mercer.machines.clustering.spectral import SpectralClustering
from mercer.machines.compression.compress import compress
from mercer.machines.correlation.cca import CCA
from mercer.machines.density.bernoulli_mixture import BernoulliMixture
from mercer.machines.density.gaussian_mixture import GaussianMixture
from mercer.machines.density.maximum_entropy import MaximumEntropy
from mercer.machines.density.multinomial_mixture import MultinomialMixture
from mercer.machines.embedding.mds import MDS
from mercer.machines.independent.ica import ICA
from mercer.machines.independent.pursuit import ProjectionPursuit
from mercer.machines.margin.ball import EnclosingBall
from mercer.machines.margin.one_class import OneClassSVM
from mercer.machines.margin.svc import SVC
from mercer.machines.margin.svr import SVR
from mercer.machines.multitask.gaussian_process import MultiTaskGaussianProcess
from mercer.machines.neural.autoencoder import Autoencoder
from mercer.machines.neural.variational_autoencoder import VariationalAutoencoder
from mercer.machines.online.perceptron import Perceptron
from mercer.machines.process.classifier import GaussianProcessClassifier
from mercer.machines.process.gaussian_process import GaussianProcess
from mercer.machines.projection.log_shift import LogShift
from mercer.machines.projection.pca import PCA
from mercer.machines.projection.probabilistic_pca import ProbabilisticPCA
from mercer.machines.projection.whiten import Whiten
from mercer.machines.regression.logistic import LogisticRegression
from mercer.machines.regression.ridge import KernelRidge
from mercer.machines.semi_supervised.harmonic import HarmonicRegressor
from mercer.machines.semi_supervised.label_propagation import LabelPropagation, LabelSpreading
from mercer.machines.semi_supervised.laplacian_ridge import LaplacianRidge
from mercer.machines.semi_supervised.laplacian_svc import LaplacianSVC

__all__ = [
    "CCA",
    "PCA",
    "SVC",
    "SVR",
    "ApproximationWarning",
    "Autoencoder",
    "AxisAlignedRectangle",
    "BagOfWords",
    "BayesDecision",
    "BernoulliMixture",
    "DisconnectedWarning",
    "EnclosingBall",
    "FisherDiscriminant",
    "GaussianClassifier",
    "Independence",
    "JointTable",
    "GaussianMixture",
    "GaussianProcess",
    "GaussianProcessClassifier",
    "KMeans",
    "KernelRidge",
    "LogisticRegression",
    "LogShift",
    "NaiveBayes",
    "MaximumEntropy",
    "MultiTaskGaussianProcess",
    "MultinomialMixture",
    "NearestMean",
    "NearestNeighbors",
    "OneClassSVM",
    "FitWarning",
    "ParameterError",
    "Perceptron",
    "MDS",
    "ProbabilisticPCA",
    "SpectralClustering",
    "Telling",
    "VariationalAutoencoder",
    "ICA",
    "ProjectionPursuit",
    "HarmonicRegressor",
    "LabelPropagation",
    "LabelSpreading",
    "LaplacianRidge",
    "LaplacianSVC",
    "Whiten",
    "compress",
    "to_device",
]
