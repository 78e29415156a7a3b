"""All tours, in the order in which they are listed."""

from __future__ import annotations

from mercer.studio.tours import learning, margins, regression, separation, unlabelled
from mercer.studio.tours.tour import Tour

TOURS: dict[str, Tour] = {
    tour.name: tour
    for family in (separation, margins, regression, unlabelled, learning)
    for tour in family.TOURS
}
