"""All tours."""

from __future__ import annotations

from mercer.studio.tours.tour import Tour

TOURS: dict[str, Tour] = {}
