"""Jobs `preset` and `tour` of the studio."""

from __future__ import annotations

from typing import Any

from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell
from mercer.studio.limits import RefusalError
from mercer.studio.presets import PRESETS
from mercer.studio.scenes import is_number
from mercer.studio.tours import TOURS

# --- preset --------------------------------------------------------------------------------------
#
# `preset`: points to begin with.

_FEWEST = 4


def preset_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Draw the points of a preset, and return a scene of them."""
    name = request.get("name")
    if not isinstance(name, str) or name not in PRESETS:
        raise RefusalError(f"presets are {', '.join(PRESETS)}", parameter="name")
    n, noise, seed = (request.get(key, value) for key, value in _DEFAULTS.items())
    if not all(map(is_number, (n, noise, seed))):
        raise RefusalError("n, noise and seed must be numbers")
    if not (_FEWEST <= n <= bench.limits.points and 0 <= noise <= 1 and 0 <= seed < 2**32):
        raise RefusalError(
            f"n must be from {_FEWEST} to {bench.limits.points}, noise from 0 to 1, seed from 0"
        )
    return {"scene": PRESETS[name].scene(int(n), float(noise), int(seed))}


_DEFAULTS = {"n": 100, "noise": 0.15, "seed": 0}


# --- tour ----------------------------------------------------------------------------------------
#
# `tour`: the frames of a tour.


def tour_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Make the frames of a tour."""
    name = request.get("name")
    if not isinstance(name, str) or name not in TOURS:
        raise RefusalError(f"tours are {', '.join(TOURS)}", parameter="name")
    tour = TOURS[name]
    return {**tour.described(), "frames": [frame.described() for frame in tour.frames()]}
