"""What is wrong with a LIBSVM file, and where."""

from __future__ import annotations

from mercer.files.errors import ModelFormatError


class LibsvmFormatError(ModelFormatError):
    """A file that is no LIBSVM model.

    Parameters
    ----------
    message : str
        What is wrong, and what was expected.
    source : str
        The file.
    line : int or None
        The line, from 1.
    column : int or None
        The character in it, from 1.

    Examples
    --------
    >>> str(LibsvmFormatError("total_sv is missing", "a.model", 3))
    'a.model, line 3: total_sv is missing'
    """

    def __init__(
        self, message: str, source: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        place = [source] if source else []
        place += [f"line {line}"] if line is not None else []
        place += [f"column {column}"] if column is not None else []
        super().__init__(f"{', '.join(place)}: {message}" if place else message)
        self.source, self.line, self.column = source, line, column
