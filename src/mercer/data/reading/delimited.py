"""CSV, TSV and their like: names, columns, and what each column is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data.cells import date_of, has_decimal_comma
from mercer.data.column import Column, Parsed
from mercer.data.errors import DataError, shorten
from mercer.data.frames import refuse_twins
from mercer.data.kinds import Kind
from mercer.data.limits import Limits
from mercer.data.reading.chunks import Chunk, LineStream, Records, chunks, first_records, records_of
from mercer.data.reading.convert import Cells, NotANumberError, numbers_from, words_from
from mercer.data.reading.dialect import SAMPLE, dialect_of
from mercer.data.reading.source import Bytes, utf8
from mercer.data.schema import Schema
from mercer.data.table import Table, refuse_unknown

_GUESS = 1000  # rows of the first piece that say which columns look like numbers
ROW_NAMES = "rownames"


@dataclass(frozen=True, eq=False)
class Options:
    """What the caller says about a file, beside its name."""

    columns: Sequence[str] | None
    names: Sequence[str] | None
    kinds: Mapping[str, Kind]
    missing: tuple[str, ...]
    limits: Limits
    encoding: str | None
    delimiter: str | None
    header: bool | None
    decimal: str
    parser: str


class DelimitedFile:
    """A delimited text whose names are known, and whose rows come in pieces."""

    def __init__(self, data: Bytes, options: Options, delimiter: str | None = None) -> None:
        self.name, self.options = data.name, options
        self.cells = Cells(frozenset(word.strip() for word in options.missing), options.decimal)
        self.stream = LineStream(utf8(data, options.encoding), options.limits, data.name)
        sample = self.stream.take(SAMPLE)
        self.stream.give_back(sample)
        self.dialect = dialect_of(
            sample.decode("utf-8", "replace"),
            options.missing,
            delimiter=options.delimiter or delimiter,
            header=options.header,
            decimal=options.decimal,
        )
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
        """Return columns of a piece as numbers or words; dates are words as yet."""
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
            except DataError as error:
                raise error.at(self.name) from None
        return Parsing(arrays, failed, records.lines)

    def _not_a_number(self, odd: NotANumberError, name: str, records: Records) -> DataError:
        comma = has_decimal_comma(odd.word) and self.cells.decimal == "."
        advice = (
            "pass decimal=',' if it is a decimal comma"
            if comma
            else "name the word in missing=..., or call the column a category"
        )
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
        for chunk in chunks(self.stream, self.dialect):
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
            columns[name] = self._column(name, values)
        written = Schema(format="csv", missing=self.options.missing, decimal=self.options.decimal)
        return Table(columns, source=self.name, schema=written)

    def _guess(self, chunk: Chunk, wanted: list[str]) -> dict[str, Parsed]:
        """Tell from the first rows which columns are numbers; later ones may correct it."""
        kinds = self.options.kinds
        words = {Kind.CATEGORY, Kind.TEXT, Kind.IDENTIFIER, Kind.DATE}
        parsed: dict[str, Parsed] = {
            name: "word" if kinds.get(name) in words else "number" for name in wanted
        }
        head = chunk.data.split(b"\n", _GUESS)[:_GUESS]
        if not chunk.quoted:
            few = Chunk(b"\n".join(head), chunk.line, False)
            for name in self.parse(few, parsed).failed:
                parsed[name] = "word"
        return parsed

    def _read_again(
        self,
        failed: Mapping[str, DataError],
        parsed: dict[str, Parsed],
        done: list[tuple[Chunk, dict[str, Array]]],
    ) -> None:
        """Read columns that turned out not to be numbers as words, from the beginning."""
        for name, error in failed.items():
            if self.options.kinds.get(name) is Kind.NUMBER:
                raise error
            parsed[name] = "word"
        if failed:
            for chunk, arrays in done:
                arrays.update(self.parse(chunk, dict.fromkeys(failed, "word")).arrays)

    def _column(self, name: str, values: Array) -> Column:
        kind = self.options.kinds.get(name)
        if kind is None and values.dtype.kind == "O":
            present = {entry for entry in values.tolist() if entry is not None}
            if self.cells.decimal == "." and present and all(map(has_decimal_comma, present)):
                example = next(iter(sorted(present)))
                raise DataError(
                    f"holds numbers with a decimal comma, such as {example!r}; pass decimal=','",
                    source=self.name,
                    column=name,
                )
            if present and all(date_of(entry) is not None for entry in present):
                kind = Kind.DATE
        try:
            return Column.of(name, values, kind)
        except DataError as error:
            raise error.at(self.name) from None

    def blocks(self, schema: Schema) -> Iterator[Table]:
        """Read rows as the columns of a schema, piece by piece."""
        lacking = [name for name in schema.names if name not in set(self.names)]
        if lacking:
            raise DataError(
                f"the file has no column {lacking[0]!r} (and {len(lacking) - 1} more are lacking)"
                if len(lacking) > 1
                else f"the file has no column {lacking[0]!r}",
                source=self.name,
                line=1,
            )
        rows = 0
        for chunk in chunks(self.stream, self.dialect):
            found = self.parse(chunk, schema.parsed)
            for error in found.failed.values():
                raise error
            rows += len(found.lines)
            self.options.limits.check("rows", rows, self.name)
            yield Table(
                {name: self._known(name, found, schema) for name in schema.names},
                source=self.name,
                schema=schema,
            )

    def _known(self, name: str, found: Parsing, schema: Schema) -> Column:
        """Return a column as the schema has it; new values of a binary column are kept."""
        values, kind, parsed = found.arrays[name], schema.kinds[name], schema.parsed[name]
        try:
            if parsed == "date":
                values = Column(values, Kind.CATEGORY, "word").as_kind(name, Kind.DATE).values
            column = Column(values, kind, parsed)
            return column if kind is Kind.BINARY else column.as_kind(name, kind)
        except DataError as error:
            raise error.at(self.name) from None


@dataclass(frozen=True, eq=False)
class Parsing:
    """Columns of a piece, those that are no numbers, and the lines that the rows end at."""

    arrays: dict[str, Array]
    failed: dict[str, DataError]
    lines: Any
