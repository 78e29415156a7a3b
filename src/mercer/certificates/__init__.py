"""Is it right? An answer is judged from the problem alone, in float64, whoever produced it."""

from mercer.certificates import correlation
from mercer.certificates.base import Certificate, certify
from mercer.certificates.bayes.class_means import ClassMeansQuantities
from mercer.certificates.bayes.class_tables import ClassTablesQuantities
from mercer.certificates.bayes.column_gaussians import ColumnGaussiansQuantities
from mercer.certificates.bayes.gaussian_classes import GaussianClassesQuantities
from mercer.certificates.bayes.nearest import NearestQuantities
from mercer.certificates.bayes.smoothed_shares import SmoothedSharesQuantities
from mercer.certificates.bellman import BellmanQuantities
from mercer.certificates.blocks.margin import BlockMarginQuantities
from mercer.certificates.clustering.balanced import BalancedQuantities
from mercer.certificates.clustering.cuts import MinimumCutQuantities
from mercer.certificates.clustering.partition import PartitionQuantities
from mercer.certificates.correlation import CorrelationQuantities
from mercer.certificates.discriminant import DiscriminantQuantities
from mercer.certificates.entropy import EntropyQuantities
from mercer.certificates.independent.unmixing import UnmixingQuantities
from mercer.certificates.kernel_learning.kernel_alignment import KernelAlignmentQuantities
from mercer.certificates.kernel_learning.kernel_combination import KernelCombinationQuantities
from mercer.certificates.kernel_learning.relevance import RelevanceQuantities
from mercer.certificates.margin import box_qp, many
from mercer.certificates.margin.box_qp import BoxQPQuantities
from mercer.certificates.margin.many import ManyQuantities
from mercer.certificates.margin.path import MarginPathQuantities
from mercer.certificates.mixture.latent import LatentQuantities
from mercer.certificates.mixture.mixture import MixtureQuantities
from mercer.certificates.mixture.regularized_mixture import RegularizedMixtureQuantities
from mercer.certificates.multitask.regression import TaskQuantities
from mercer.certificates.neural.autoencoding import AutoencodingQuantities
from mercer.certificates.neural.variational import VariationalQuantities
from mercer.certificates.process.classification import LaplaceQuantities
from mercer.certificates.process.regression import ProcessBoundQuantities, ProcessQuantities
from mercer.certificates.reduction import ReductionQuantities
from mercer.certificates.ridge import linear_system, ridge_path
from mercer.certificates.ridge.folded_path import FoldedPathQuantities
from mercer.certificates.ridge.linear_system import LinearSystemQuantities
from mercer.certificates.risk.smooth_risk import SmoothRiskQuantities
from mercer.certificates.risk.stream import StreamQuantities
from mercer.certificates.semi_supervised.deformation import DeformationQuantities
from mercer.certificates.semi_supervised.graph_labels import GraphLabelsQuantities
from mercer.certificates.semi_supervised.manifold import ManifoldQuantities
from mercer.certificates.separation import SeparationQuantities
from mercer.certificates.spectral import eigenproblem
from mercer.certificates.spectral.eigenproblem import EigenQuantities
from mercer.certificates.spectral.scaling import ScalingQuantities

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

# imported for the certificates they register
_ = (box_qp, correlation, eigenproblem, linear_system, many, ridge_path)
