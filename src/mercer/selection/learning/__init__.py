"""Learning the kernel: alignment with the labels, weights of a sum, one scale per feature."""

from mercer.selection.learning.alignment import alignment
from mercer.selection.learning.combination import combine
from mercer.selection.learning.combined import Combined
from mercer.selection.learning.multiple_kernel import MultipleKernel
from mercer.selection.learning.relevance import LearntScales, learn_scales

__all__ = [
    "Combined",
    "LearntScales",
    "MultipleKernel",
    "alignment",
    "combine",
    "learn_scales",
]
