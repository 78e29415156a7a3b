"""What a page is told first: all that can be chosen."""

from __future__ import annotations

import sys
from typing import Any

from mercer.kernels import parse
from mercer.studio.catalog.kernels import OFFERS, OPERATORS, numbers_of
from mercer.studio.catalog.presets import PRESETS
from mercer.studio.catalog.table import MACHINES, TASKS
from mercer.studio.limits import StudioLimits
from mercer.studio.tours.table import TOURS


def greeting(limits: StudioLimits, table: dict[str, Any] | None) -> dict[str, Any]:
    """Return the first message of a socket.

    Examples
    --------
    >>> greeting(StudioLimits(), None)["tasks"][0]
    {'name': 'classes', 'words': 'points of several classes'}
    """
    return {
        "id": 0,
        "kind": "hello",
        "version": sys.modules["mercer"].__version__,  # rooms do not import the front door
        "limits": {
            "points": limits.points, "upload": limits.upload, "seconds": limits.seconds,
        },
        "tasks": [{"name": name, "words": words} for name, words in TASKS.items()],
        "machines": [entry.described() for entry in MACHINES.values()],
        "kernels": [
            {
                "name": offer.name,
                "text": offer.text,
                "words": offer.words,
                "parameters": numbers_of(parse(offer.text)),
            }
            for offer in OFFERS
        ],
        "operators": [{"text": text, "words": words} for text, words in OPERATORS],
        "presets": [preset.described() for preset in PRESETS.values()],
        "tours": [tour.described() for tour in TOURS.values()],
        "table": table,
    }  # fmt: skip
