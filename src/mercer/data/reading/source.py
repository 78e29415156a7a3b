"""Sources of bytes: options of readers, file formats, compression, and limits."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from mercer.data.errors import DataError, Limits
from mercer.data.kinds import MISSING, Kind

# --- options -------------------------------------------------------------------------------------
#
# What the caller says about a file, beside its name.


@dataclass(frozen=True, eq=False)
class ReadOptions:
    """Options for reading a file; see `read`."""

    columns: Sequence[str] | None = None
    names: Sequence[str] | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING
    limits: Limits = field(default_factory=Limits)
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    decimal: str = "."
    parser: str = "auto"

    def refuse_text_options(self, kind: str) -> None:
        """Raise if an option is given that only delimited texts have."""
        given = {
            "names": self.names,
            "delimiter": self.delimiter,
            "header": self.header,
            "decimal": None if self.decimal == "." else self.decimal,
        }
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name}={value!r} is for delimited text; this file is {kind}")


# --- formats -------------------------------------------------------------------------------------
#
# Which format a file has: by its name, else by how it begins.

FORMATS = ("csv", "tsv", "parquet", "jsonl", "arff", "libsvm", "npz")
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arff": "arff",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
    ".npz": "npz",
    ".npy": "npz",
}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_SPARSE_LINE = re.compile(rb"\s*[+-]?[\w.,]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")
_LOOK = 4096  # bytes


def format_of(data: Bytes, asked: str | None) -> str:
    """Return the specified format, or the format of the file name or first bytes.

    Parameters
    ----------
    data : Bytes
        The file.
    asked : str or None
        Specified format.
    """
    if asked is not None:
        if asked not in FORMATS:
            raise ValueError(f"format={asked!r} must be one of {', '.join(FORMATS)}")
        return asked
    endings = [ending.lower() for ending in PurePath(data.name).suffixes]
    while endings and endings[-1] in _COMPRESSED:
        endings.pop()
    if endings and endings[-1] in _ENDINGS:
        return _ENDINGS[endings[-1]]
    start = data.peek(_LOOK)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"PK\x03\x04", b"\x93NUMPY")):
        return "npz"
    lines = [line for line in start.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    rows = [line for line in lines if not line.lstrip().startswith((b"%", b"#"))]
    if rows and rows[0].lstrip().startswith(b"{"):
        return "jsonl"
    if rows and rows[0].strip().lower().startswith(b"@relation"):
        return "arff"
    if rows and _SPARSE_LINE.fullmatch(rows[0]):
        return "libsvm"
    return "csv"


# --- source --------------------------------------------------------------------------------------
#
# Where bytes come from: a file, standard input or a stream, compressed or not, within limits.

PIECE = 1 << 20  # bytes that are decompressed at a time
MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
_LONGEST = 6  # bytes of those
_MARKS = {
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF32_BE: "utf-32",
}


class Bytes:
    """Decompressed bytes of a file, with a limit on their number.

    Parameters
    ----------
    raw : binary stream
        Input stream. Seeking is not required.
    name : str
        Name for errors.
    limits : Limits
        Maximum number of bytes.
    path : path, optional
        Path of the file, if it is one.
    """

    def __init__(self, raw: Any, name: str, limits: Limits, path: Path | None = None) -> None:
        self.name, self.limits, self._path = name, limits, path
        self._held, self._taken = b"", 0
        self._stream = raw
        start = b""
        while len(start) < _LONGEST and (more := self._read_from(raw, _LONGEST - len(start))):
            start += more  # a pipe may give one byte at a time
        self.compression = next(
            (kind for magic, kind in MAGIC.items() if start.startswith(magic)), ""
        )
        self._held = start
        if self.compression:
            self._stream = _decompressed(self.compression, _Rest(start, raw), name)
            self._held = b""

    @property
    def file(self) -> Path | None:
        """Path of an uncompressed file, for readers with random access."""
        return None if self.compression else self._path

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them; fewer at the end."""
        while len(self._held) < size:
            more = self._read_from(self._stream, max(size - len(self._held), 1))
            if not more:
                break
            self._held += more
        return self._held[:size]

    def take(self, size: int = PIECE) -> bytes:
        """Return the next bytes; nothing at the end."""
        found = self._held[:size] if self._held else self._read_from(self._stream, size)
        self._held = self._held[size:]
        self._taken += len(found)
        self.limits.check("bytes", self._taken, self.name)
        return found

    def all(self) -> bytes:
        """Return whatever is left."""
        pieces = []
        while piece := self.take():
            pieces.append(piece)
        return b"".join(pieces)

    def _read_from(self, stream: Any, size: int) -> bytes:
        try:
            found = stream.read(size)
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DataError(
                f"the compressed file is corrupt or truncated ({error})", source=self.name
            ) from error
        if isinstance(found, str):
            return found.encode("utf-8", "surrogatepass")
        return bytes(found or b"")


class _Rest(io.RawIOBase):
    """A stream whose first bytes were read ahead."""

    def __init__(self, start: bytes, stream: Any) -> None:
        self._start, self._stream = start, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._start[: len(buffer)] or self._stream.read(len(buffer)) or b""
        self._start = self._start[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def _decompressed(kind: str, raw: Any, name: str) -> Any:
    if kind == "gz":
        return gzip.GzipFile(fileobj=raw)
    if kind == "bz2":
        return bz2.BZ2File(raw)
    if kind == "xz":
        return lzma.LZMAFile(raw)
    try:
        import pyarrow as pa  # noqa: PLC0415  optional
    except ImportError as missing:
        raise DataError(
            'files compressed by zstd need pyarrow: pip install "mercer[tables]"', source=name
        ) from missing
    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")


@contextmanager
def opened(source: Any, limits: Limits) -> Iterator[Bytes]:
    """Open a path, "-" for standard input, or a binary stream, which stays open."""
    if hasattr(source, "read"):
        yield Bytes(source, str(getattr(source, "name", "") or ""), limits)
    elif isinstance(source, str) and source == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise DataError("it is closed", source="standard input")
        yield Bytes(sys.stdin.buffer, "standard input", limits)
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        with path.open("rb") as stream:
            yield Bytes(stream, str(path), limits, path)
    else:
        raise TypeError(f"source={source!r} must be a path, a binary stream or '-'")


def utf8(data: Bytes, encoding: str | None) -> Iterator[bytes]:
    """Yield pieces of a text file as UTF-8, without a byte order mark."""
    start = data.peek(4)
    for mark, name in _MARKS.items():
        if encoding is None and start.startswith(mark):
            raise DataError(
                f"the file is {name}, not UTF-8; pass encoding={name!r}", source=data.name
            )
    if encoding is None or codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii"):
        if start.startswith(codecs.BOM_UTF8):
            data.take(3)
        while piece := data.take():
            yield piece
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    while True:
        piece = data.take()
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            raise DataError(
                f"the file is not {encoding} ({error.reason})", source=data.name
            ) from error
        if text:
            yield text.removeprefix("\ufeff").encode("utf-8", "surrogatepass")
        if not piece:
            return
