"""Problems that one solver alone answers: the plain part of the choice that `choose.py` makes."""

from __future__ import annotations

from mercer.problems import (
    Autoencoding,
    BalancedPartition,
    BellmanEquation,
    ClassMeans,
    ClassTables,
    DeformedKernel,
    Evidence,
    GaussianClasses,
    IndependentComponents,
    KernelAlignment,
    KernelCombination,
    LaplaceEvidence,
    LatentGaussian,
    MinimumCut,
    Partition,
    ProcessClassification,
    ProcessRegression,
    Relevance,
    Scaling,
    Separation,
    TaskEvidence,
    VariationalAutoencoding,
)
from mercer.problems.entropy import Expectations
from mercer.problems.mixture.mixture import Mixture
from mercer.solvers.base import Solver
from mercer.solvers.bayes.class_means import Averages
from mercer.solvers.bayes.counting import Counting
from mercer.solvers.bayes.gaussian_likelihood import GaussianLikelihood
from mercer.solvers.clustering.balanced import BalancedLloyd
from mercer.solvers.clustering.lloyd import Lloyd
from mercer.solvers.clustering.maximum_flow import MaximumFlow
from mercer.solvers.decision.policy_iteration import KernelPolicyIteration
from mercer.solvers.entropy.newton import EntropyNewton
from mercer.solvers.independent.fixed_point import FixedPointICA
from mercer.solvers.kernel_learning.nonnegative import Nonnegative
from mercer.solvers.kernel_learning.scale_descent import ScaleDescent
from mercer.solvers.kernel_learning.simplex_newton import SimplexNewton
from mercer.solvers.mixture.em import EM
from mercer.solvers.mixture.latent_em import LatentEM
from mercer.solvers.multitask.evidence import TaskAscent
from mercer.solvers.neural.network_lbfgs import NetworkLBFGS
from mercer.solvers.online.mistakes import Mistakes
from mercer.solvers.process.evidence import EvidenceAscent
from mercer.solvers.process.laplace import LaplaceAscent, LaplaceMode
from mercer.solvers.process.posterior import ExactPosterior
from mercer.solvers.semi_supervised.deform import Deform
from mercer.solvers.spectral.sinkhorn import Sinkhorn

ONLY: tuple[tuple[type, type[Solver]], ...] = (
    (LatentGaussian, LatentEM),
    (BellmanEquation, KernelPolicyIteration),
    (IndependentComponents, FixedPointICA),
    (DeformedKernel, Deform),
    (Autoencoding, NetworkLBFGS),
    (VariationalAutoencoding, NetworkLBFGS),
    (Partition, Lloyd),
    (BalancedPartition, BalancedLloyd),
    (Scaling, Sinkhorn),
    (MinimumCut, MaximumFlow),
    (ClassMeans, Averages),
    (Separation, Mistakes),
    (Mixture, EM),
    (ClassTables, Counting),
    (GaussianClasses, GaussianLikelihood),
    (Expectations, EntropyNewton),
    (KernelAlignment, Nonnegative),
    (KernelCombination, SimplexNewton),
    (Relevance, ScaleDescent),
    (ProcessRegression, ExactPosterior),
    (Evidence, EvidenceAscent),
    (ProcessClassification, LaplaceMode),
    (LaplaceEvidence, LaplaceAscent),
    (TaskEvidence, TaskAscent),
)
