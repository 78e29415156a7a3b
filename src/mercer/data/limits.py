"""How much of a file is believed: sizes beyond which reading stops with an error."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.data.errors import DataError


@dataclass(frozen=True)
class Limits:
    """Sizes beyond which a file is refused; None is no limit.

    Nothing of a file is trusted: what a compressed file grows to, what a header announces, and how
    long a line goes on are held against these before memory is taken.

    Attributes
    ----------
    bytes : int or None
        Of the file, after decompression.
    rows : int or None
        Rows.
    columns : int or None
        Columns, or the largest index of a sparse row.
    line : int
        Bytes of one line of a text file.
    field : int
        Characters of one entry.

    Examples
    --------
    >>> Limits(rows=1000).rows
    1000
    """

    bytes: int | None = 4 << 30
    rows: int | None = 100_000_000
    columns: int | None = 1_000_000
    line: int = 64 << 20
    field: int = 131_072  # the limit of Python's csv module

    def check(self, what: str, size: int, source: str = "", line: int | None = None) -> None:
        """Raise if a size is beyond the limit of that name."""
        most = getattr(self, what)
        if most is not None and size > most:
            words = {"field": "characters in one entry", "line": "bytes in one line"}
            raise DataError(
                f"more than {most} {words.get(what, what)}; pass limits=Limits({what}=...) if that "
                "is meant",
                source=source,
                line=line,
            )
