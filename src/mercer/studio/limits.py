"""Limits of the studio, and the error if a request exceeds them."""

from __future__ import annotations

from dataclasses import dataclass

# --- limits --------------------------------------------------------------------------------------
#
# How much the studio takes from its pages.


@dataclass(frozen=True)
class StudioLimits:
    """Limits of a studio; requests beyond them get an error message.

    Attributes
    ----------
    points : int
        Points of a scene that are painted.
    upload : int
        Bytes of a file.
    rows : int
        Rows of a table that are used; of more, so many are drawn at random.
    columns : int
        Columns of a table.
    frame : int
        Bytes of one message of a page.
    tables : int
        Tables that are kept; the oldest goes when there are more.
    pages : int
        Pages that are open at the same time.
    spare : bool
        Whether a process is kept warm for the next page, so that it need not wait for imports.
    seconds : float
        Time for a fit.
    long_seconds : float
        Time for a curve, a grid or a report.

    Examples
    --------
    >>> from mercer.studio import StudioLimits
    >>> StudioLimits(points=500).points
    500
    """

    points: int = 2000
    upload: int = 16 << 20
    rows: int = 5000
    columns: int = 1000
    frame: int = 4 << 20
    tables: int = 8
    pages: int = 8
    spare: bool = True
    seconds: float = 30.0
    long_seconds: float = 600.0


# --- refusal -------------------------------------------------------------------------------------
# --- errors --------------------------------------------------------------------------------------
#
# Errors of a scene, as messages for the page.


class RefusalError(ValueError):
    """An invalid request: the reason, the parameter, and the position in a text.

    Examples
    --------
    >>> RefusalError("C=-1 must be positive", parameter="C").parameter
    'C'
    """

    def __init__(
        self, words: str, *, parameter: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(words)
        self.words, self.parameter, self.position = words, parameter, position
