"""Which kernel: what kinds of columns there are, what is worth comparing, and the comparison."""

from mercer.selection.choosing.choice import Choice, choose, compare
from mercer.selection.choosing.contender import Contender

__all__ = ["Choice", "Contender", "choose", "compare"]
