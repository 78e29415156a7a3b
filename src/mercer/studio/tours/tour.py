"""Tours of the studio: frames, and how they are made."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mercer.studio.drawing import Fitted, SceneRows
from mercer.studio.jobs.answers import answer_of
from mercer.studio.limits import StudioLimits
from mercer.studio.presets import PRESETS
from mercer.studio.scenes import read_scene, rows_of

# --- tour ----------------------------------------------------------------------------------------
#
# A tour consists of frames of title, text and scene, some computed step by step.


@dataclass(frozen=True)
class Frame:
    """One picture of a tour.

    Attributes
    ----------
    title, text : str
        The text of the frame.
    scene : dict
        The scene of the frame.
    answer : dict or None
        The response to draw; with None the page requests the fit of the scene.
    mark : tuple of int
        Points that the text speaks of.
    """

    title: str
    text: str
    scene: dict[str, Any]
    answer: dict[str, Any] | None = None
    mark: tuple[int, ...] = field(default=())

    def described(self) -> dict[str, Any]:
        """Return the frame as the page gets it."""
        return {
            "title": self.title, "text": self.text, "scene": self.scene, "answer": self.answer,
            "mark": self.mark,
        }  # fmt: skip


@dataclass(frozen=True)
class Tour:
    """A method in a few frames.

    Attributes
    ----------
    name, title, family, words : str
        For the page and for people.
    source : str
        Source of the texts.
    frames : callable
        Makes the frames.
    """

    name: str
    title: str
    family: str
    words: str
    source: str
    frames: Callable[[], Iterator[Frame]]

    def described(self) -> dict[str, Any]:
        """Return the entry in the list of tours."""
        return {
            "name": self.name, "title": self.title, "family": self.family, "words": self.words,
            "source": self.source,
        }  # fmt: skip


# --- making --------------------------------------------------------------------------------------
#
# Make frames: a preset with changes, or the response for a step.

WIDE = (-2.7, 2.7, -1.8, 1.8)  # as much of the plane as wide and high windows show
ACROSS, UP = 144, 96  # points of the surfaces of steps: a tour is sent in one piece

NOTHING: dict[str, Any] = {"surface": None, "regions": None, "curve": None, "layers": {}}
"""The response before the first step."""

Told = tuple[str, str, dict[str, Any]]
"""Title, text, and the changes of the scene."""


def preset(name: str, n: int = 60, noise: float = 0.15, seed: int = 0) -> dict[str, Any]:
    """Return the scene of a preset."""
    return PRESETS[name].scene(n, noise, seed)


def changed(scene: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a scene with some things changed.

    A change of `machine` drops the parameters of the previous estimator.

    Examples
    --------
    >>> changed({"machine": "SVC", "parameters": {"C": 1.0}}, machine="NearestMean")["parameters"]
    {}
    """
    found = {**scene, **changes}
    if changes.get("machine", scene.get("machine")) != scene.get("machine"):
        found["parameters"] = changes.get("parameters", {})
    return found


def told(scene: dict[str, Any], frames: Iterable[Told]) -> Iterator[Frame]:
    """Return a frame for each text, each with its own changes of the same scene."""
    for title, text, changes in frames:
        yield Frame(title, text, changed(scene, **changes))


def rows_in(scene: dict[str, Any]) -> SceneRows:
    """Return the rows of a scene of points."""
    return rows_of(read_scene(scene, StudioLimits()), _no_table, StudioLimits())


def step(scene: dict[str, Any], machine: Any) -> dict[str, Any]:
    """Return the response for an estimator in the middle of its fit."""
    bounds = scene["view"]["bounds"] if scene["task"] == "regression" else WIDE
    shown = {**scene, "view": {**scene["view"], "bounds": bounds, "nx": ACROSS, "ny": UP}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return answer_of(read_scene(shown, StudioLimits()), Fitted(machine, rows_in(shown)))


def quietly_fitted(machine: Any, *data: Any) -> Any:
    """Fit without the warnings about early stopping, which is intended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return machine.fit(*data)


def _no_table(name: str) -> Any:
    raise LookupError(name)
