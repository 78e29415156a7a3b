"""How much a server takes from its clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServeLimits:
    """Limits of a server; what is beyond is refused with the status in brackets.

    Attributes
    ----------
    body : int
        Bytes of a request (413).
    rows : int
        Rows of a request (413).
    at_once : int
        Requests that are computed or read at the same time (429).
    body_seconds : float
        Seconds for a request to arrive (408).

    Examples
    --------
    >>> from mercer.serve import ServeLimits
    >>> ServeLimits(rows=1000).rows
    1000
    """

    body: int = 64 << 20
    rows: int = 200_000
    at_once: int = 16
    body_seconds: float = 30.0
