"""Which kernel: what kinds of columns there are, what is worth comparing, and the comparison."""

from mercer.selection.choosing.choice import Choice, Contender, choose, compare

__all__ = ["Choice", "Contender", "choose", "compare"]
