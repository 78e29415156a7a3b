"""CSV, TSV and their like: names, columns, and what each column is."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data.column import Parsed, truths_in
from mercer.data.errors import DataError, shorten
from mercer.data.kinds import Kind, has_decimal_comma
from mercer.data.reading.cells import (
    Cells,
    NotANumberError,
    arrow_columns,
    is_easy,
    numbers_at_once,
    numbers_from,
    pyarrow,
    words_from,
)
from mercer.data.reading.columns import inferred, known, refuse_lacking
from mercer.data.reading.records import (
    SAMPLE,
    Chunk,
    LineStream,
    Records,
    chunks,
    dialect_of,
    first_records,
    records_of,
    refuse_wide_lines,
)
from mercer.data.reading.source import Bytes, ReadOptions, utf8
from mercer.data.table import Schema, Table, refuse_twins, refuse_unknown
from mercer.resources import require_memory

_GUESS = 1000  # rows of the first piece that say which columns look like numbers
_BYTES_TAKEN = 12  # for each byte of a piece, while it is cut into fields
ROW_NAMES = "rownames"
CHUNK = 4 << 20  # bytes of a piece: enough to keep all threads of pyarrow busy


class DelimitedFile:
    """A delimited text whose names are known, and whose rows come in pieces."""

    def __init__(self, data: Bytes, options: ReadOptions, delimiter: str | None = None) -> None:
        self.name, self.options = data.name, options
        self.with_arrow = _wants_arrow(options.parser)
        # as far as is known
        self._numbers_only, self._gaps = True, False
        self._known = False  # whether a schema says what the columns are
        # of the whole process: the csv module has no other
        csv.field_size_limit(max(csv.field_size_limit(), options.limits.field))
        self.cells = Cells(frozenset(word.strip() for word in options.missing), options.decimal)
        self.stream = LineStream(utf8(data, options.encoding), options.limits, data.name)
        sample = self.stream.take(SAMPLE)
        self.stream.give_back(sample)
        self.dialect = dialect_of(
            sample[: 4 * SAMPLE].decode("utf-8", "replace"),
            options.missing,
            delimiter=options.delimiter or delimiter,
            header=options.header,
            decimal=options.decimal,
        )
        delimiter = self.dialect.delimiter
        refuse_wide_lines(sample, delimiter, options.limits, data.name, 1)
        first, lines = first_records(sample, self.dialect, data.name)
        if not first:
            raise DataError("the file is empty", source=data.name)
        if self.dialect.header:
            self.stream.skip(lines)
        self.names = self._named(first)
        options.limits.check("columns", len(self.names), data.name)

    def _named(self, first: list[list[str]]) -> list[str]:
        """Return the names: given, of the header, or x0, x1, ..."""
        width = len(first[-1])
        names = [field.strip() for field in first[0]]
        if not self.dialect.header:
            names = [f"x{k}" for k in range(width)]
        elif len(names) == width - 1:  # as R writes row names
            names = [ROW_NAMES, *names]
        if self.options.names is not None:
            if len(self.options.names) != len(names):
                raise DataError(
                    f"names={list(self.options.names)!r} has {len(self.options.names)} names for "
                    f"{len(names)} columns",
                    source=self.name,
                )
            names = [str(name) for name in self.options.names]
        unnamed = [ROW_NAMES if not k else f"column {k + 1}" for k in range(len(names))]
        names = [name or other for name, other in zip(names, unnamed, strict=True)]
        refuse_twins(names, self.name, 1)
        return names

    # --- one piece --------------------------------------------------------------------------

    def parse(self, chunk: Chunk, parsed: Mapping[str, Parsed]) -> Parsing:
        """Return columns of a piece as numbers or words. Dates are still words."""
        quick = self._by_arrow(chunk, parsed) if self.with_arrow else self._by_numpy(chunk, parsed)
        if quick is not None:
            return quick
        records = records_of(chunk, len(self.names), self.dialect, self.options.limits, self.name)
        place = {name: k for k, name in enumerate(self.names)}
        arrays: dict[str, Array] = {}
        failed: dict[str, DataError] = {}
        for name, what in parsed.items():
            fields = records.columns[place[name]]
            if what != "number":
                arrays[name] = words_from(fields, self.cells)
                continue
            try:
                arrays[name] = numbers_from(fields, self.cells, name, records)
            except NotANumberError as odd:
                failed[name] = self._not_a_number(odd, name, records)
                arrays[name] = words_from(fields, self.cells)
            except DataError as error:
                raise error.at(self.name) from None
        return Parsing(arrays, failed, records.lines)

    def _by_arrow(self, chunk: Chunk, parsed: Mapping[str, Parsed]) -> Parsing | None:
        """Parse a piece with pyarrow, if it is installed and supports the piece."""
        if not parsed or not is_easy(chunk, self.cells, self.options.limits):
            return None
        arrays = arrow_columns(chunk, self.names, parsed, self.cells, self.dialect.delimiter)
        if arrays is None:
            return None
        rows = len(next(iter(arrays.values())))
        return Parsing(arrays, {}, range(chunk.line, chunk.line + rows))

    def _by_numpy(self, chunk: Chunk, parsed: Mapping[str, Parsed]) -> Parsing | None:
        """Parse a numeric piece with NumPy, until the first piece that is not numeric."""
        if not self._numbers_only or any(what != "number" for what in parsed.values()):
            return None
        place = {name: k for k, name in enumerate(self.names)}
        places = [place[name] for name in parsed]
        width, delimiter = len(self.names), self.dialect.delimiter
        matrix = None
        for gaps in (True,) if self._gaps else (False, True):
            if matrix is None:
                matrix = numbers_at_once(chunk, width, places, delimiter, self.cells, gaps=gaps)
                self._gaps = gaps
        if matrix is None:
            self._numbers_only = False
            return None
        arrays = {name: np.ascontiguousarray(matrix[:, k]) for k, name in enumerate(parsed)}
        return Parsing(arrays, {}, range(chunk.line, chunk.line + len(matrix)))

    def _not_a_number(self, odd: NotANumberError, name: str, records: Records) -> DataError:
        comma = has_decimal_comma(odd.word) and self.cells.decimal == "."
        if self._known:
            sign = "point" if self.cells.decimal == "." else "comma"
            advice = (
                f"the training table has numbers with a decimal {sign} here: correct it, or leave "
                "it blank"
            )
        elif comma:
            advice = "pass decimal=',' if it is a decimal comma"
        else:
            advice = "add the word to missing=..., or use the kind category"
        line = records.lines[odd.row]
        message = f"{shorten(odd.word)!r} is not a number; {advice}"
        return DataError(message, source=self.name, line=line, column=name)

    # --- all of them ------------------------------------------------------------------------

    def table(self) -> Table:
        """Read all rows."""
        wanted = list(self.names if self.options.columns is None else self.options.columns)
        refuse_unknown([*wanted, *self.options.kinds], self.names)
        parsed: dict[str, Parsed] = {}
        done: list[tuple[Chunk, dict[str, Array]]] = []
        rows = 0
        for chunk in chunks(self.stream, self.dialect, CHUNK):
            self._require_memory(chunk, len(done))
            if not parsed:
                parsed = self._guess(chunk, wanted)
            found = self.parse(chunk, parsed)
            rows += len(found.lines)
            self.options.limits.check("rows", rows, self.name)
            done.append((chunk, found.arrays))
            self._read_again(found.failed, parsed, done)
        if not rows:
            raise DataError("the file has no rows", source=self.name)
        columns = {}
        for name in wanted:
            values = np.concatenate([arrays.pop(name) for _, arrays in done])
            kind = self.options.kinds.get(name)
            columns[name] = inferred(name, values, kind, self.name, self.cells.decimal)
        written = Schema(format="csv", missing=self.options.missing, decimal=self.options.decimal)
        return Table(columns, source=self.name, schema=written)

    def _require_memory(self, chunk: Chunk, pieces: int) -> None:
        """Raise if the next piece exceeds the memory budget."""
        needed = _BYTES_TAKEN * len(chunk.data)
        require_memory(
            needed,
            f"reading more than {pieces * CHUNK} bytes of {self.name or 'a stream'}",
            "Select columns with columns=..., or read block by block with read_blocks.",
            held=3 * pieces * CHUNK,  # text, numbers, and words that are not repeated
        )

    def _guess(self, chunk: Chunk, wanted: list[str]) -> dict[str, Parsed]:
        """Detect numeric columns from the first rows. Later rows can change the result."""
        kinds = self.options.kinds
        words = {Kind.CATEGORY, Kind.TEXT, Kind.IDENTIFIER, Kind.DATE}
        parsed: dict[str, Parsed] = {
            name: "word" if kinds.get(name) in words else "number" for name in wanted
        }
        head = chunk.data.split(b"\n", _GUESS)[:_GUESS]
        if chunk.whole or not chunk.quoted:
            few = Chunk(b"\n".join(head), chunk.line, chunk.quoted, chunk.whole)
            for name in self.parse(few, parsed).failed:
                if kinds.get(name) is not Kind.NUMBER:
                    parsed[name] = "word"
        return parsed

    def _read_again(
        self,
        failed: Mapping[str, DataError],
        parsed: dict[str, Parsed],
        done: list[tuple[Chunk, dict[str, Array]]],
    ) -> None:
        """Read columns again as words in earlier pieces if they are not numeric."""
        for name, error in failed.items():
            if self.options.kinds.get(name) is Kind.NUMBER:
                raise error
            parsed[name] = "word"
        if failed:
            for chunk, arrays in done[:-1]:
                arrays.update(self.parse(chunk, dict.fromkeys(failed, "word")).arrays)

    def blocks(self, schema: Schema) -> Iterator[Table]:
        """Read rows as the columns of a schema, piece by piece."""
        refuse_lacking(schema, self.names, self.name)
        self._known = True
        rows = 0
        for chunk in chunks(self.stream, self.dialect, CHUNK):
            found = self.parse(chunk, schema.parsed)
            for name, error in found.failed.items():
                words = self.parse(chunk, {name: "word"}).arrays[name]
                truths = truths_in(words) if schema.kinds[name] is Kind.BINARY else None
                if truths is None:
                    raise error
                found.arrays[name] = truths
            rows += len(found.lines)
            self.options.limits.check("rows", rows, self.name)
            arrays, lines = found.arrays, found.lines
            yield Table(
                {n: known(n, arrays[n], schema, self.name, lines) for n in schema.names},
                source=self.name,
                schema=schema,
            )


def _wants_arrow(parser: str) -> bool:
    if parser not in ("auto", "mercer", "pyarrow"):
        raise ValueError(f"parser={parser!r} must be 'auto', 'mercer' or 'pyarrow'")
    if parser == "pyarrow" and pyarrow() is None:
        raise ImportError('parser="pyarrow" needs pyarrow: pip install "mercer[tables]"')
    return parser != "mercer" and pyarrow() is not None


@dataclass(frozen=True, eq=False)
class Parsing:
    """Columns of a piece, those that are no numbers, and the lines that the rows end at."""

    arrays: dict[str, Array]
    failed: dict[str, DataError]
    lines: Any
