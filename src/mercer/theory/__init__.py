"""Learning theory: bounds, hypothesis classes, relative entropy, and duality of programs.

Each bound is a `Bound`: a value, its assumptions, whether it is vacuous, and a sentence. Classes of
hypotheses can be looked at, learned from and played against. A `Program` is a problem with
constraints: its Lagrangian, its dual, and whether they meet.
"""

from mercer.theory.bounds import (
    Bound,
    binomial_tail,
    chernoff_tail,
    hoeffding_tail,
    relative_entropy_tail,
)
from mercer.theory.classes import (
    AdversaryGame,
    Conjunction,
    Conjunctions,
    EpsilonNet,
    FiniteClass,
    LearntHypothesis,
    OnlineConjunction,
    no_free_lunch,
    play_adversary,
)
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
from mercer.theory.duality.examples import (
    ImageSet,
    SupportingLine,
    double_well_program,
    hard_margin_program,
    image_set,
    projection_program,
    supporting_line,
)
from mercer.theory.duality.program import (
    DualValue,
    KKTConditions,
    Program,
    ProgramSolution,
    ProgramStatus,
    SlaterPoint,
)
from mercer.theory.duality.quadratic import QuadraticProgram
from mercer.theory.duality.smooth import SmoothFunction, SmoothProgram
from mercer.theory.entropy import (
    least_squares_projection,
    relative_entropy,
    relative_entropy_projection,
)
from mercer.theory.margin_bounds import machine_bound, margin_dimension, margin_error, novikoff
from mercer.theory.sample_size import (
    agnostic_sample_size,
    finite_class_dimension,
    finite_class_error,
    hoeffding,
    realisable_sample_size,
    rectangle_sample_size,
)
from mercer.theory.vc_bounds import (
    double_sampling_error,
    double_sampling_size,
    growth_bound,
    sauer,
    vc_error,
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
