"""The scikit-learn face: validate, translate to a problem, keep the answer. Thin."""

from mercer.machines._disconnected import DisconnectedWarning
from mercer.machines._parameters import ParameterError
from mercer.machines._telling import Telling
from mercer.machines.bag_of_words import BagOfWords
from mercer.machines.ball import EnclosingBall
from mercer.machines.bayes_decision import BayesDecision
from mercer.machines.bernoulli_mixture import BernoulliMixture
from mercer.machines.cca import CCA
from mercer.machines.fisher import FisherDiscriminant
from mercer.machines.gaussian_classifier import GaussianClassifier
from mercer.machines.gaussian_mixture import GaussianMixture
from mercer.machines.joint_table import Independence, JointTable
from mercer.machines.kmeans import KMeans
from mercer.machines.log_shift import LogShift
from mercer.machines.logistic import LogisticRegression
from mercer.machines.maximum_entropy import MaximumEntropy
from mercer.machines.multinomial_mixture import MultinomialMixture
from mercer.machines.naive_bayes import NaiveBayes
from mercer.machines.nearest_mean import NearestMean
from mercer.machines.nearest_neighbors import NearestNeighbors
from mercer.machines.one_class import OneClassSVM
from mercer.machines.pca import PCA
from mercer.machines.perceptron import Perceptron
from mercer.machines.probabilistic_pca import ProbabilisticPCA
from mercer.machines.rectangle import AxisAlignedRectangle
from mercer.machines.ridge import KernelRidge
from mercer.machines.spectral import SpectralClustering
from mercer.machines.svc import SVC
from mercer.machines.svr import SVR
from mercer.machines.whiten import Whiten

__all__ = [
    "CCA",
    "PCA",
    "SVC",
    "SVR",
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
    "KMeans",
    "KernelRidge",
    "LogisticRegression",
    "LogShift",
    "NaiveBayes",
    "MaximumEntropy",
    "MultinomialMixture",
    "NearestMean",
    "NearestNeighbors",
    "OneClassSVM",
    "ParameterError",
    "Perceptron",
    "ProbabilisticPCA",
    "SpectralClustering",
    "Telling",
    "Whiten",
]
