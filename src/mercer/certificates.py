"""Certificates: the function `certify`, and what it measures for each kind of problem."""

from mercer.machines import block_fits  # noqa: F401  for what it registers
from mercer.machines.bayes.certificate import (
    ClassTablesQuantities,
    ColumnGaussiansQuantities,
    GaussianClassesQuantities,
    SmoothedSharesQuantities,
)
from mercer.machines.clustering.certificate import (
    BalancedQuantities,
    MinimumCutQuantities,
    PartitionQuantities,
    ScalingQuantities,
)
from mercer.machines.compression.problem import ReductionQuantities
from mercer.machines.correlation.certificate import CorrelationQuantities
from mercer.machines.decomposition.ica_fixed_point import UnmixingQuantities
from mercer.machines.decomposition.probabilistic_pca_em import LatentQuantities
from mercer.machines.discriminant.certificate import DiscriminantQuantities
from mercer.machines.entropy.certificate import EntropyQuantities
from mercer.machines.gaussian_process.certificate import (
    LaplaceQuantities,
    ProcessBoundQuantities,
    ProcessQuantities,
)
from mercer.machines.kernel_learning.certificate import (
    KernelAlignmentQuantities,
    KernelCombinationQuantities,
    RelevanceQuantities,
)
from mercer.machines.logistic.certificate import SmoothRiskQuantities
from mercer.machines.mixture.certificate import MixtureQuantities, RegularizedMixtureQuantities
from mercer.machines.multitask.certificate import TaskQuantities
from mercer.machines.neighbors.certificate import ClassMeansQuantities, NearestQuantities
from mercer.machines.neural.certificate import AutoencodingQuantities, VariationalQuantities
from mercer.machines.perceptron.certificate import SeparationQuantities
from mercer.machines.reinforcement.certificate import BellmanQuantities
from mercer.machines.ridge.certificate import FoldedPathQuantities, LinearSystemQuantities
from mercer.machines.semi_supervised.certificate import (
    DeformationQuantities,
    GraphLabelsQuantities,
    ManifoldQuantities,
)
from mercer.machines.svm.blocks import BlockMarginQuantities
from mercer.machines.svm.certificate import BoxQPQuantities, ManyQuantities, MarginPathQuantities
from mercer.solvers.certificate import Certificate, StreamQuantities, certify
from mercer.solvers.eigen.certificate import EigenQuantities

__all__ = [
    "AutoencodingQuantities",
    "BellmanQuantities",
    "VariationalQuantities",
    "BalancedQuantities",
    "BlockMarginQuantities",
    "BoxQPQuantities",
    "Certificate",
    "ClassMeansQuantities",
    "ClassTablesQuantities",
    "ColumnGaussiansQuantities",
    "RegularizedMixtureQuantities",
    "SmoothedSharesQuantities",
    "CorrelationQuantities",
    "FoldedPathQuantities",
    "GaussianClassesQuantities",
    "NearestQuantities",
    "DiscriminantQuantities",
    "EigenQuantities",
    "EntropyQuantities",
    "KernelAlignmentQuantities",
    "KernelCombinationQuantities",
    "LaplaceQuantities",
    "LatentQuantities",
    "LinearSystemQuantities",
    "ManifoldQuantities",
    "ManyQuantities",
    "MarginPathQuantities",
    "MixtureQuantities",
    "PartitionQuantities",
    "ProcessBoundQuantities",
    "ProcessQuantities",
    "MinimumCutQuantities",
    "ReductionQuantities",
    "RelevanceQuantities",
    "ScalingQuantities",
    "SeparationQuantities",
    "SmoothRiskQuantities",
    "StreamQuantities",
    "TaskQuantities",
    "UnmixingQuantities",
    "DeformationQuantities",
    "GraphLabelsQuantities",
    "certify",
]
