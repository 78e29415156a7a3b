"""`tour`: the frames of a tour."""

from __future__ import annotations

from typing import Any

from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell
from mercer.studio.refusal import RefusalError
from mercer.studio.tours.table import TOURS


def tour_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Make the frames of a tour."""
    name = request.get("name")
    if not isinstance(name, str) or name not in TOURS:
        raise RefusalError(f"tours are {', '.join(TOURS)}", parameter="name")
    tour = TOURS[name]
    return {**tour.described(), "frames": [frame.described() for frame in tour.frames()]}
