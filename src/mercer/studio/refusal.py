"""What a scene cannot have, said in words for the page."""

from __future__ import annotations


class RefusalError(ValueError):
    """A request that is refused: why, which parameter, and where in a text.

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
