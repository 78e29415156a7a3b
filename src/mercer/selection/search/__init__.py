"""Ways through a grid: every point, finer and finer, on more and more rows, or as a race."""

from mercer.selection.search.base import Evaluates, Exhaustive, Search
from mercer.selection.search.halving import Halve
from mercer.selection.search.racing import Race
from mercer.selection.search.refinement import Refine

__all__ = ["Evaluates", "Exhaustive", "Halve", "Race", "Refine", "Search"]
