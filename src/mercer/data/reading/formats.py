"""Which format a file has: by its name, else by how it begins."""

from __future__ import annotations

import re
from pathlib import PurePath

from mercer.data.reading.source import Bytes

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
    """Return the format: the one asked for, that of the name, or that of the first bytes.

    Parameters
    ----------
    data : Bytes
        The file.
    asked : str or None
        What the caller says.
    """
    if asked is not None:
        if asked not in FORMATS:
            raise ValueError(f"format={asked!r} is none of: {', '.join(FORMATS)}")
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
