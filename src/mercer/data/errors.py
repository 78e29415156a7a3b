"""Errors for invalid data, and limits on the size of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# --- errors --------------------------------------------------------------------------------------
#
# The error of data that cannot be read: where it is, and what to do.


class DataError(ValueError):
    """Invalid data, with file, line and column.

    Parameters
    ----------
    message : str
        Problem and remedy.
    source : str
        File, or "".
    line : int, optional
        Line of the file, starting at one.
    column : str or int, optional
        Name of the column, or its number in the line, starting at one.

    Examples
    --------
    >>> print(DataError("'x' is not a number", source="a.csv", line=3, column="age"))
    a.csv, line 3, column 'age': 'x' is not a number
    """

    def __init__(
        self,
        message: str,
        *,
        source: str = "",
        line: int | None = None,
        column: str | int | None = None,
    ) -> None:
        self.message, self.source, self.line, self.column = message, source, line, column
        places = [shorten(source, 200)] if source else []
        if line is not None:
            places.append(f"line {line}")
        if column is not None:
            shown = shorten(repr(column), 80) if isinstance(column, str) else str(column)
            places.append(f"column {shown}")
        # "column 'age' has ..." is a complete sentence
        joint = " " if column is not None and message.startswith(("has ", "holds ")) else ": "
        super().__init__(", ".join(places) + joint + message if places else message)

    def __reduce__(self) -> tuple[Any, ...]:
        place = {"source": self.source, "line": self.line, "column": self.column}
        return _again, (self.message, place)

    def at(self, source: str = "", line: int | None = None) -> DataError:
        """Return the error with additional file, line or column."""
        return DataError(
            self.message,
            source=self.source or source,
            line=self.line if self.line is not None else line,
            column=self.column,
        )


def _again(message: str, place: dict[str, Any]) -> DataError:
    return DataError(message, **place)


def shorten(text: str, most: int = 60) -> str:
    """Shorten a text for display."""
    return text if len(text) <= most else text[: most - 3] + "..."


# --- limits --------------------------------------------------------------------------------------
#
# How much of a file is believed: sizes beyond which reading stops with an error.


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a file. None means no limit.

    Readers check the size after decompression, the sizes that headers declare, and the length of
    lines before they allocate memory.

    Attributes
    ----------
    bytes : int or None
        Bytes of the file after decompression. In Parquet, each occurrence of a word counts, and a
        number counts 8 bytes.
    rows : int or None
        Number of rows.
    columns : int or None
        Number of columns, or the largest index of a sparse row.
    line : int
        Bytes per line of a text file.
    field : int
        Characters per entry.

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
        """Raise if a size exceeds a limit."""
        most = getattr(self, what)
        if most is not None and size > most:
            words = {"field": "characters in one entry", "line": "bytes in one line"}
            raise DataError(
                f"more than {most} {words.get(what, what)}; to raise the limit, pass "
                f"limits=Limits({what}=...)",
                source=source,
                line=line,
            )
