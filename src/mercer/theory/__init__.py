"""The theory of learning, in figures: what so many examples promise, and what a margin is worth.

Each bound is a `Bound`: a value, what it assumes, whether it is vacuous, and a sentence. Classes of
hypotheses can be looked at, learnt from and played against. A `Program` is a problem with
constraints: its Lagrangian, its dual, and whether they meet.
"""

from mercer.theory.bound import Bound
from mercer.theory.capacity import (
    double_sampling_error,
    double_sampling_size,
    growth_bound,
    sauer,
    vc_error,
)
from mercer.theory.classes.adversary import AdversaryGame, no_free_lunch, play_adversary
from mercer.theory.classes.conjunctions import Conjunction, Conjunctions, OnlineConjunction
from mercer.theory.classes.finite_class import EpsilonNet, FiniteClass, LearntHypothesis
from mercer.theory.dichotomies import (
    HalfSpaces,
    Hypotheses,
    Intervals,
    Rectangles,
    Sines,
    growth,
    is_shattered,
    vc_dimension,
)
from mercer.theory.duality.conditions import KKTConditions
from mercer.theory.duality.image import ImageSet, SupportingLine, image_set, supporting_line
from mercer.theory.duality.known import (
    double_well_program,
    hard_margin_program,
    projection_program,
)
from mercer.theory.duality.program import (
    DualValue,
    Program,
    ProgramSolution,
    ProgramStatus,
    SlaterPoint,
)
from mercer.theory.duality.quadratic import QuadraticProgram
from mercer.theory.duality.smooth import SmoothFunction, SmoothProgram
from mercer.theory.entropy import relative_entropy
from mercer.theory.finite import (
    agnostic_sample_size,
    finite_class_dimension,
    finite_class_error,
    hoeffding,
    realisable_sample_size,
    rectangle_sample_size,
)
from mercer.theory.margins import machine_bound, margin_dimension, margin_error, novikoff
from mercer.theory.simplex import least_squares_projection, relative_entropy_projection
from mercer.theory.tails import (
    binomial_tail,
    chernoff_tail,
    hoeffding_tail,
    relative_entropy_tail,
)

__all__ = [
    "AdversaryGame",
    "Bound",
    "Conjunction",
    "Conjunctions",
    "DualValue",
    "EpsilonNet",
    "FiniteClass",
    "HalfSpaces",
    "Hypotheses",
    "ImageSet",
    "Intervals",
    "KKTConditions",
    "LearntHypothesis",
    "OnlineConjunction",
    "Program",
    "ProgramSolution",
    "ProgramStatus",
    "QuadraticProgram",
    "Rectangles",
    "Sines",
    "SlaterPoint",
    "SmoothFunction",
    "SmoothProgram",
    "SupportingLine",
    "agnostic_sample_size",
    "binomial_tail",
    "chernoff_tail",
    "double_sampling_error",
    "double_sampling_size",
    "double_well_program",
    "finite_class_dimension",
    "finite_class_error",
    "growth",
    "growth_bound",
    "hard_margin_program",
    "hoeffding",
    "hoeffding_tail",
    "image_set",
    "is_shattered",
    "least_squares_projection",
    "machine_bound",
    "margin_dimension",
    "margin_error",
    "no_free_lunch",
    "novikoff",
    "play_adversary",
    "projection_program",
    "realisable_sample_size",
    "rectangle_sample_size",
    "relative_entropy",
    "relative_entropy_projection",
    "relative_entropy_tail",
    "sauer",
    "supporting_line",
    "vc_dimension",
    "vc_error",
]
