"""Tours: each method of the texts in a few frames, to play, step through and rewind."""

from __future__ import annotations

from mercer.studio.tours import learning, margins, regression, separation, unlabelled
from mercer.studio.tours.tour import Tour

# in the order in which they are listed
TOURS: dict[str, Tour] = {
    tour.name: tour
    for family in (separation, margins, regression, unlabelled, learning)
    for tour in family.TOURS
}
