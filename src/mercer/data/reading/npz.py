"""Read arrays of NumPy's .npz and .npy files without pickle and with checks of their sizes."""

from __future__ import annotations

import io
import lzma
import struct
import sys
import warnings
import zipfile
import zlib
from math import prod
from tokenize import TokenError
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array
from mercer.data.errors import DataError, Limits, shorten
from mercer.data.reading.columns import finished, inferred
from mercer.data.reading.source import Bytes, ReadOptions
from mercer.data.table import Table, columns_in
from mercer.rows.points import refuse_broken_sparse

_MAGIC = b"\x93NUMPY"
_SPARSE = {"data", "indices", "indptr", "shape", "format"}  # as scipy.sparse.save_npz writes
_TITLES = ("feature_names", "columns", "names")  # arrays that name the columns of another


def read_npz(data: Bytes, options: ReadOptions) -> Table:
    """Read the arrays of a file as columns.

    Columns of two-dimensional arrays are named by an array `feature_names` of the same length, or
    x0, x1, ...; other arrays are single columns with their name. If there is an array `X`, or
    exactly one two-dimensional array, arrays of a different length (class names, folds) are
    ignored. Files of `scipy.sparse.save_npz` become sparse tables.
    """
    options.refuse_text_options("npz")
    arrays = arrays_in(data.all(), data.name, options.limits)
    if set(arrays) >= _SPARSE:
        return _sparse(arrays, data.name, options)
    titles = {name: arrays.pop(name) for name in _TITLES if name in arrays}
    arrays = {name: array for name, array in arrays.items() if array.ndim in (1, 2)}
    wide = [name for name, array in arrays.items() if array.ndim == 2]
    rows = {len(array) for array in arrays.values()}
    rules = "X" if "X" in wide else wide[0] if len(wide) == 1 else ""
    if rules:  # names of classes, rows of folds and the like are no columns
        rows = {len(arrays[rules])}
        arrays = {name: array for name, array in arrays.items() if len(array) in rows}
        wide = [name for name in wide if name in arrays]
    if len(rows) != 1 or rows == {0}:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise DataError(
            f"the arrays do not form a table ({shorten(shapes, 200)}); load them with numpy and "
            "pass columns of equal length to Table.of",
            source=data.name,
        )
    options.limits.check("rows", rows.pop(), data.name)
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        made = {name: array} if array.ndim == 1 else _by_column(name, array, titles, len(wide))
        for title in made:
            if title in columns:
                raise DataError(f"two columns are named {title!r}", source=data.name, column=title)
        columns |= made
        options.limits.check("columns", len(columns), data.name)
    try:
        found = columns_in(columns, None)
    except DataError as error:
        raise error.at(data.name) from None
    made_columns = {
        name: inferred(name, values, options.kinds.get(name, kind), data.name, decimal="")
        for name, (values, kind) in found.items()
    }
    return finished(made_columns, options, data.name, "npz")


def _by_column(name: str, array: Array, titles: dict[str, Array], wide: int) -> dict[str, Array]:
    width = array.shape[1]
    for title in titles.values():
        if (
            title.shape == (width,)
            and title.dtype.kind == "U"
            and len(set(title.tolist())) == width
        ):
            return {str(word): array[:, k] for k, word in enumerate(title.tolist())}
    first = "x" if wide == 1 else f"{name}_"
    return {f"{first}{k}": array[:, k] for k in range(width)}


def _sparse(arrays: dict[str, Array], source: str, options: ReadOptions) -> Table:
    try:
        kind = arrays["format"].item()
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        shape = tuple(int(size) for size in arrays["shape"].ravel())
        if kind not in ("csr", "csc") or len(shape) != 2 or min(shape) < 0:
            raise ValueError(f"format {shorten(kind)!r} of shape {shape} is not supported")
        options.limits.check("rows", shape[0], source)
        options.limits.check("columns", shape[1], source)
        if len(arrays["indptr"]) != shape[0 if kind == "csr" else 1] + 1:
            raise ValueError("indptr does not match the shape")
        places = arrays["indices"], arrays["indptr"]
        if any(array.dtype.kind not in "iu" for array in places):
            raise ValueError("indices and indptr must be integers")
        # copies: what lies in the bytes of the file cannot be written, and duplicates are summed
        parts: Any = (arrays["data"].astype(np.float64), *(np.array(array) for array in places))
        made = (sparse.csr_array if kind == "csr" else sparse.csc_array)(parts, shape=shape)
        refuse_broken_sparse(made)
    except (ValueError, TypeError, AttributeError, OverflowError, IndexError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the sparse matrix is corrupt ({error})", source=source) from error
    csr = made.tocsr()
    csr.sum_duplicates()
    names = [f"x{k}" for k in range(shape[1])]
    return finished({}, options, source, "npz", csr=csr, names=names)


def arrays_in(content: bytes, source: str, limits: Limits) -> dict[str, Array]:
    """Return the arrays of an .npz or .npy file by name."""
    if content.startswith(_MAGIC):
        return {"x": _array(content, "x", source)}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            limits.check("bytes", sum(entry.file_size for entry in archive.infolist()), source)
            limits.check("columns", len(archive.infolist()), source)
            arrays = {}
            for entry in archive.infolist():
                with archive.open(entry) as member:  # what it says of its size is not believed
                    member_bytes = member.read(entry.file_size + 1)
                name = entry.filename.removesuffix(".npy")
                arrays[name] = _array(member_bytes, name, source)
            return arrays
    except DataError:
        raise
    except (
        zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, KeyError,
        NotImplementedError, RuntimeError, OverflowError, ValueError,
    ) as error:  # fmt: skip
        raise DataError(
            f"the file is not an npz archive or is corrupt ({error})", source=source
        ) from error


def _array(content: bytes, name: str, source: str) -> Array:
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        head = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        with warnings.catch_warnings():  # of a file written by Python 2, which is read all the same
            warnings.simplefilter("ignore")
            shape, fortran, dtype = head(stream)
        if dtype.hasobject or dtype.kind not in "biufUSM" or dtype.itemsize == 0:
            raise ValueError(f"entries of type {dtype} are not supported")
        rest = content[stream.tell() :]
        if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != len(rest):
            raise ValueError(f"shape {shape} does not match {len(rest)} bytes")
        flat = np.frombuffer(rest, dtype=dtype)
        codes = flat.view(f"{dtype.byteorder}u4") if dtype.kind == "U" else flat[:0]
        if len(codes) and codes.max() > sys.maxunicode:
            raise ValueError("four bytes are not a character")
        array: Array = flat.reshape(shape, order="F" if fortran else "C")
    except (
        ValueError,
        KeyError,
        TypeError,
        SyntaxError,
        TokenError,  # NumPy takes a broken header to pieces as if Python 2 had written it
        OverflowError,
        RecursionError,
        EOFError,
        MemoryError,
    ) as error:
        raise DataError(
            f"array {shorten(name)!r} cannot be read ({shorten(str(error), 120)}); only "
            "arrays of numbers, texts and dates are supported",
            source=source,
        ) from error
    return array
