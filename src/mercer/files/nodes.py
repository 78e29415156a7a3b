"""How values are written in the JSON text of a file.

Numbers, strings, truth values and null are themselves, lists are lists. All else is an object with
one key, which says what it is:

==============  ============================================================================
key             what follows
==============  ============================================================================
``array``       {"tensor": place, ...}: an array; "dtype" if it is none of the five, "order" if
                "F", "alias" if an equal array is another; a place is {"name"}, or {"name", "start",
                "shape"} in an array that holds several
``masked``      {"data", "mask"}: an array of which some entries do not count
``words``       {"text": place, "ends": place, "shape", "dtype"}: strings in UTF-8, one after
                another
``tokens``      {"words", "ends"}: rows that are lists of strings
``objects``     {"shape", "items"}: an array of few values of several types
``sparse``      {"data", "indices", "indptr", "shape", "format", "matrix"}: CSR or CSC
``scalar``      [dtype, value]: a number of NumPy
``number``      "nan", "inf" or "-inf"
``kernel``      the text of a kernel; ``expression``: its formula is meant; ``formula``: that of a
                kernel of features, which is a record
``long``        the number of a long text; all of them are in the arrays "texts.text", "texts.ends"
``again``       the number of a sparse array that came before
``tuple``       [...]; ``set``: [...]
``dict``        [keys, values]
``packed``      {"kind": "list" or "tuple", "of": node}: a list of one type as an array or words;
                as ``records``, [name, count, {field: list}]; as ``dicts``, [count, keys, lists]
``record``      [name, {field: value}]
``enum``        [name, member]; ``function``: its name
==============  ============================================================================
"""

from __future__ import annotations

import numpy as np

# types that are stored as another: in a file there are five
STORED_AS = {
    "bool": "u1",
    "int8": "i4",
    "int16": "i4",
    "uint16": "i4",
    "uint32": "i8",
    "uint64": "i8",
    "float16": "f4",
    **{f"datetime64[{unit}]": "i8" for unit in ("D", "h", "m", "s", "ms", "us", "ns")},
}
SCALARS = frozenset(
    name for name in (*STORED_AS, "uint8", "int32", "int64", "float32", "float64")
    if not name.startswith("datetime")
)  # fmt: skip
SMALL = 512  # bytes: equal arrays up to this size may be many
LONG = 32  # a list of more numbers or strings than this goes into an array
FEW = 4  # of more records or dictionaries alike, each field is one list
LONG_TEXT = 64  # characters: longer texts are kept once, in an array
LONG_TEXTS = "texts"  # how the names of these arrays begin


def is_wasteful(size: int, text: int) -> bool:
    """Return whether strings of one width take far more memory than a file has of them.

    Such arrays come back as objects, so that a small file never asks for much memory.
    """
    return size > max(2**20, 16 * text)


def holds_same(array: np.ndarray, name: str) -> bool:
    """Return whether stored numbers are all numbers of the type they stand for."""
    if name == "bool":
        return bool((array <= 1).all())
    if name.startswith("datetime64") or name == "uint64":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        back = array.astype(name).astype(array.dtype)
    return bool(np.array_equal(back, array, equal_nan=array.dtype.kind == "f"))
