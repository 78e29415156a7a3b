"""Read LIBSVM text (a label and index:value pairs) as sparse tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array
from mercer.data.column import Column
from mercer.data.errors import DataError, Limits, shorten
from mercer.data.kinds import Kind, number_of
from mercer.data.reading.columns import finished, known
from mercer.data.reading.records import LineStream, lines_of
from mercer.data.reading.source import Bytes, ReadOptions, utf8
from mercer.data.table import Schema, Table

TARGET, GROUP = "target", "qid"
_SIZE = 1 << 22  # bytes of lines that are read at a time
_DENSE = 0.25  # share of entries that are there from which on columns are held one by one
_NARROW = 1000  # columns, at most, that are


@dataclass(eq=False)
class Lines:
    """Content of some lines.

    Attributes
    ----------
    labels : list of str
        First word of each line.
    groups : list of int or None
        Group numbers after qid, if any.
    indptr, indices, data : lists of arrays
        Rows in CSR with the indices of the file.
    numbers : list of int
        Line numbers.
    """

    labels: list[str] = field(default_factory=list)
    groups: list[int | None] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    data: list[float] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


def read_libsvm(data: Bytes, options: ReadOptions) -> Table:
    """Read all rows: columns `target`, `qid` if present, and x1, x2, ...

    The number in a column name is the index in the file, so indices can start at 0 or 1. Columns
    that are mostly zero remain sparse.
    """
    options.refuse_text_options("LIBSVM text")
    parts = list(_parts(data, options))
    labels = [label for part in parts for label in part.labels]
    if not labels:
        raise DataError("the file has no rows", source=data.name)
    indices = np.concatenate([np.array(part.indices, dtype=np.int64) for part in parts])
    first = int(indices.min(initial=1))
    width = int(indices.max(initial=0)) + 1 - first
    csr = _matrix(parts, first, width)
    columns = {TARGET: _labels(labels)}
    groups = [group for part in parts for group in part.groups]
    if any(group is not None for group in groups):
        columns[GROUP] = _groups(groups)
    names = [f"x{k}" for k in range(first, first + width)]
    if csr.shape[1] <= _NARROW and csr.nnz > _DENSE * csr.shape[0] * csr.shape[1]:
        dense = csr.toarray()
        columns |= {name: Column.of(name, dense[:, k].copy()) for k, name in enumerate(names)}
        return finished(columns, options, data.name, "libsvm")
    return finished(columns, options, data.name, "libsvm", csr=csr, names=names)


def libsvm_blocks(data: Bytes, schema: Schema, rows: int, options: ReadOptions) -> Iterator[Table]:
    """Read rows block by block with the columns of a schema. Other indices are ignored."""
    features = [name for name in schema.names if name not in (TARGET, GROUP)]
    place = {name: k for k, name in enumerate(features)}
    for part in _parts(data, options):
        top = max(part.indices, default=0) + 1
        csr = _matrix([part], 0, top)
        where = np.array([place.get(f"x{k}", -1) for k in range(top)], dtype=np.int64)
        chosen = _moved(csr, where, len(features))
        columns = {}
        for name, column in ((TARGET, _labels(part.labels)), (GROUP, _groups(part.groups))):
            if name in schema.kinds:
                columns[name] = known(name, column.values, schema, data.name, part.numbers)
        if len(features) <= _NARROW:
            dense = chosen.toarray()
            for k, name in enumerate(features):
                columns[name] = known(name, dense[:, k], schema, data.name, part.numbers)
            table = Table(columns, source=data.name, schema=schema)[schema.names]
        else:
            table = Table(columns, csr=chosen, names=features, source=data.name, schema=schema)
        for start in range(0, len(part.labels), rows):
            yield table.rows(slice(start, start + rows))


def _moved(csr: Any, where: Array, width: int) -> Any:
    """Reorder columns. Columns without a new index are dropped."""
    keep = where[csr.indices] >= 0
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))[keep]
    places = where[csr.indices[keep]]
    return sparse.csr_array((csr.data[keep], (rows, places)), shape=(csr.shape[0], width))


def _matrix(parts: list[Lines], first: int, width: int) -> Any:
    counts = np.concatenate([np.array(part.counts, dtype=np.int64) for part in parts])
    indices = np.concatenate([np.array(part.indices, dtype=np.int64) for part in parts]) - first
    data = np.concatenate([np.array(part.data, dtype=np.float64) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    made = sparse.csr_array((data, indices, indptr), shape=(len(counts), width))
    made.eliminate_zeros()
    return made


def _labels(labels: list[str]) -> Column:
    numbers = [number_of(label) for label in labels]
    if all(number is not None and isfinite(number) for number in numbers):
        return Column.of(TARGET, np.array(numbers, dtype=float))
    values = np.empty(len(labels), dtype=object)
    values[:] = labels
    return Column.of(TARGET, values)


def _groups(groups: list[int | None]) -> Column:
    return Column.of(GROUP, np.array(groups, dtype=float), Kind.IDENTIFIER)


def _parts(data: Bytes, options: ReadOptions) -> Iterator[Lines]:
    """Yield the content of the file in blocks of lines."""
    stream = LineStream(utf8(data, options.encoding), options.limits, data.name)
    rows = 0
    while piece := stream.take(_SIZE):
        lines = lines_of(piece, data.name, stream.line)
        part = _regular(lines, stream.line, options.limits)
        if part is None:
            part = Lines()
            for number, text in enumerate(lines, start=stream.line):
                words = text.partition("#")[0].split()
                if words:
                    _add(part, words, number, options, data.name)
        stream.line += len(lines)
        rows += len(part.labels)
        options.limits.check("rows", rows, data.name)
        if part.labels:
            yield part


def _regular(lines: list[str], first: int, limits: Limits) -> Lines | None:
    """Parse valid lines without groups, in a quarter of the time of `_add`.

    Returns None for other lines, which `_add` parses word by word to report errors.
    """
    part, pairs = Lines(), []
    for number, text in enumerate(lines, start=first):
        words = text.partition("#")[0].split()
        if words:
            part.labels.append(words[0])
            part.counts.append(len(words) - 1)
            part.numbers.append(number)
            pairs += words[1:]
    part.groups = [None] * len(part.labels)
    if ":" in "".join(part.labels):
        return None
    halves = ":".join(pairs).split(":") if pairs else []
    indices, values = halves[::2], halves[1::2]
    digits, text = "".join(indices), "".join(values)
    regular = len(halves) == 2 * len(pairs) and "_" not in text and text.isascii()
    if not regular or (pairs and not (digits.isascii() and digits.isdigit())) or "" in indices:
        return None
    if max(map(len, indices), default=0) > 18:
        return None
    try:
        part.indices = list(map(int, indices))
        part.data = list(map(float, values))
    except ValueError:
        return None
    places = np.array(part.indices, dtype=np.int64)
    most = np.inf if limits.columns is None else limits.columns
    starts = np.cumsum(np.array(part.counts, dtype=np.int64))[:-1]
    grows = np.diff(places) > 0
    grows[starts[(starts > 0) & (starts < len(places))] - 1] = True  # the next row begins anew
    fine = bool(grows.all()) and places.max(initial=0) <= most
    return part if fine and bool(np.isfinite(np.array(part.data)).all()) else None


def _add(part: Lines, words: list[str], line: int, options: ReadOptions, source: str) -> None:
    """Add one row. Raise with line and column for an invalid index or value."""
    part.labels.append(words[0])
    part.numbers.append(line)
    if ":" in words[0]:
        raise DataError(f"{shorten(words[0])!r} is not a label", source=source, line=line, column=1)
    start = 1
    group: int | None = None
    if len(words) > 1 and words[1].startswith("qid:"):
        if not (words[1][4:].isascii() and words[1][4:].isdigit() and len(words[1]) <= 19):
            raise DataError(
                f"{shorten(words[1])!r} is not a qid", source=source, line=line, column=2
            )
        group, start = int(words[1][4:]), 2
    part.groups.append(group)
    last, most = -1, options.limits.columns
    for place, word in enumerate(words[start:], start=start + 1):
        index, _, value = word.partition(":")
        problem = ""
        if not (index.isascii() and index.isdigit() and len(index) <= 18 and value):
            problem = "is not index:value"
        elif int(index) <= last:
            problem = f"follows index {last}; indices must increase along a line"
        elif most is not None and int(index) > most:
            problem = (
                f"has an index above {most}; to raise the limit, pass limits=Limits(columns=...)"
            )
        else:
            number = number_of(value)
            if number is None or not isfinite(number):
                problem = "has a value that is not a finite number"
        if problem:
            raise DataError(f"{shorten(word)!r} {problem}", source=source, line=line, column=place)
        last = int(index)
        part.indices.append(last)
        part.data.append(number)  # type: ignore[arg-type]
    part.counts.append(len(words) - start)
