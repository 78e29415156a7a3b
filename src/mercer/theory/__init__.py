"""The theory of learning, in figures: what so many examples promise, and what a margin is worth.

Each bound is a `Bound`: a value, what it assumes, whether it is vacuous, and a sentence.
"""

from mercer.theory.bound import Bound
from mercer.theory.capacity import double_sampling_error, double_sampling_size, sauer, vc_error
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
from mercer.theory.entropy import relative_entropy
from mercer.theory.finite import (
    agnostic_sample_size,
    finite_class_error,
    hoeffding,
    realisable_sample_size,
    rectangle_sample_size,
)
from mercer.theory.margins import machine_bound, margin_dimension, margin_error, novikoff

__all__ = [
    "Bound",
    "HalfSpaces",
    "Hypotheses",
    "Intervals",
    "Rectangles",
    "Sines",
    "agnostic_sample_size",
    "double_sampling_error",
    "double_sampling_size",
    "finite_class_error",
    "growth",
    "hoeffding",
    "is_shattered",
    "machine_bound",
    "margin_dimension",
    "margin_error",
    "novikoff",
    "realisable_sample_size",
    "rectangle_sample_size",
    "relative_entropy",
    "sauer",
    "vc_dimension",
    "vc_error",
]
