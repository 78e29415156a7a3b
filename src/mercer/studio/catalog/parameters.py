"""Parameters that a page can set: what kind of control they need, and how a value is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from mercer.studio.frames import number
from mercer.studio.refusal import RefusalError


@dataclass(frozen=True)
class Parameter(ABC):
    """A parameter of a machine."""

    name: str
    default: Any
    words: str
    kind: ClassVar[str]

    @abstractmethod
    def read(self, value: Any) -> Any:
        """Return the value for the machine; refuse what is of another type."""

    def described(self) -> dict[str, Any]:
        """Return what the page needs to draw a control."""
        return {"kind": self.kind, **asdict(self)}

    def _refuse(self, value: Any, must: str) -> RefusalError:
        said = f"{self.name}={str(value)[:40]} must be {must}"
        return RefusalError(said, parameter=self.name)


@dataclass(frozen=True)
class Number(Parameter):
    """A slider; `infinite` gives it a last notch, `curve` a curve of scores under it."""

    low: float = 0.0
    high: float = 1.0
    scale: str = "linear"
    infinite: bool = False
    curve: bool = False
    kind: ClassVar[str] = "number"

    def read(self, value: Any) -> Any:
        """Return a float.

        Examples
        --------
        >>> Number("C", 1.0, "price of slack", 1e-3, 1e4, "log").read("inf")
        inf
        """
        found = number(value)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._refuse(value, "a number")
        return float(found)


@dataclass(frozen=True)
class Integer(Parameter):
    """A slider of whole numbers."""

    low: int = 1
    high: int = 10
    scale: str = "linear"
    curve: bool = False
    kind: ClassVar[str] = "integer"

    def read(self, value: Any) -> Any:
        """Return an int.

        Examples
        --------
        >>> Integer("n_clusters", 3, "how many", 1, 12).read(4.0)
        4
        """
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise self._refuse(value, "a whole number")
        return int(value)


@dataclass(frozen=True)
class Choice(Parameter):
    """One of several words."""

    choices: tuple[str, ...] = ()
    kind: ClassVar[str] = "choice"

    def read(self, value: Any) -> Any:
        """Return the word.

        Examples
        --------
        >>> Choice("slack", "l1", "how slack is priced", ("l1", "l2")).read("l2")
        'l2'
        """
        if value not in self.choices:
            raise self._refuse(value, f"one of {', '.join(self.choices)}")
        return value


@dataclass(frozen=True)
class Switch(Parameter):
    """On or off."""

    kind: ClassVar[str] = "switch"

    def read(self, value: Any) -> Any:
        """Return True or False.

        Examples
        --------
        >>> Switch("bias", True, "whether there is a constant").read(False)
        False
        """
        if not isinstance(value, bool):
            raise self._refuse(value, "true or false")
        return value
