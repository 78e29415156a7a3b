"""The error of data that cannot be read: where it is, and what to do."""

from __future__ import annotations

from typing import Any


class DataError(ValueError):
    """Data that cannot be read or used as asked, with the place.

    Parameters
    ----------
    message : str
        What is wrong, and what to do instead.
    source : str
        The file, or nothing.
    line : int, optional
        Line of the file, from one.
    column : str or int, optional
        Name of the column, or its place in the line, from one.

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
        # "column 'age' has ..." is a sentence as it is
        joint = " " if column is not None and message.startswith(("has ", "holds ")) else ": "
        super().__init__(", ".join(places) + joint + message if places else message)

    def __reduce__(self) -> tuple[Any, ...]:
        place = {"source": self.source, "line": self.line, "column": self.column}
        return _again, (self.message, place)

    def at(self, source: str = "", line: int | None = None) -> DataError:
        """Return the error with a place that was not known where it was raised."""
        return DataError(
            self.message,
            source=self.source or source,
            line=self.line if self.line is not None else line,
            column=self.column,
        )


def _again(message: str, place: dict[str, Any]) -> DataError:
    return DataError(message, **place)


def shorten(text: str, most: int = 60) -> str:
    """Cut a text that is too long to be shown."""
    return text if len(text) <= most else text[: most - 3] + "..."
