"""Is it right? An answer is judged from the problem alone, in float64, whoever produced it."""

from mercer.certificates import box_qp, correlation, eigenproblem, linear_system, many, ridge_path
from mercer.certificates.base import Certificate, certify
from mercer.certificates.box_qp import BoxQPQuantities
from mercer.certificates.class_means import ClassMeansQuantities
from mercer.certificates.class_tables import ClassTablesQuantities
from mercer.certificates.correlation import CorrelationQuantities
from mercer.certificates.cuts import MinimumCutQuantities
from mercer.certificates.discriminant import DiscriminantQuantities
from mercer.certificates.eigenproblem import EigenQuantities
from mercer.certificates.entropy import EntropyQuantities
from mercer.certificates.gaussian_classes import GaussianClassesQuantities
from mercer.certificates.kernel_alignment import KernelAlignmentQuantities
from mercer.certificates.kernel_combination import KernelCombinationQuantities
from mercer.certificates.latent import LatentQuantities
from mercer.certificates.linear_system import LinearSystemQuantities
from mercer.certificates.many import ManyQuantities
from mercer.certificates.mixture import MixtureQuantities
from mercer.certificates.nearest import NearestQuantities
from mercer.certificates.partition import PartitionQuantities
from mercer.certificates.relevance import RelevanceQuantities
from mercer.certificates.scaling import ScalingQuantities
from mercer.certificates.separation import SeparationQuantities
from mercer.certificates.smooth_risk import SmoothRiskQuantities
from mercer.certificates.stream import StreamQuantities

__all__ = [
    "BoxQPQuantities",
    "Certificate",
    "ClassMeansQuantities",
    "ClassTablesQuantities",
    "CorrelationQuantities",
    "GaussianClassesQuantities",
    "NearestQuantities",
    "DiscriminantQuantities",
    "EigenQuantities",
    "EntropyQuantities",
    "KernelAlignmentQuantities",
    "KernelCombinationQuantities",
    "LatentQuantities",
    "LinearSystemQuantities",
    "ManyQuantities",
    "MixtureQuantities",
    "PartitionQuantities",
    "MinimumCutQuantities",
    "RelevanceQuantities",
    "ScalingQuantities",
    "SeparationQuantities",
    "SmoothRiskQuantities",
    "StreamQuantities",
    "certify",
]

# imported for the certificates they register
_ = (box_qp, correlation, eigenproblem, linear_system, many, ridge_path)
