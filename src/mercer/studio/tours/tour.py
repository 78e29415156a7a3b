"""What a tour is: frames of title, text and scene, some computed step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Frame:
    """One picture of a tour.

    Attributes
    ----------
    title, text : str
        What is said.
    scene : dict
        What is shown.
    answer : dict or None
        The answer to draw; None lets the page ask for the fit of the scene.
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
        Where the texts have it.
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
        """Return what the list of tours says."""
        return {
            "name": self.name, "title": self.title, "family": self.family, "words": self.words,
            "source": self.source,
        }  # fmt: skip
