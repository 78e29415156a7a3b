"""The outer form of a model file: safetensors, read without trust.

::

    8 bytes         length of the header, little-endian
    header          JSON: {"__metadata__": {...}, name: {"dtype", "shape", "data_offsets"}, ...}
    the rest        the arrays, one after another, without gaps

Any reader of safetensors opens it. Two keys of the metadata are ours: "mercer", a JSON text that
says what the arrays mean, and "sha256", the digest of that text. The text holds type, shape and
digest of every array again, so that no bit of a file can change unseen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.files.errors import ModelFormatError
from mercer.files.strict_json import read_json, write_json

MOST_HEADER = 1_000_000  # bytes: what is larger belongs into arrays
MOST_TENSORS = 256
_MOST_DIMENSIONS = 8
_MOST_BYTES = 2**48  # what a processor can address; NumPy's own counts end at 2^63
_LENGTH = 8  # bytes of the first number

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}

_ZLIB = "compressed by zlib, as joblib does; it holds a pickle, which can run any code"
# how other files begin, and what to do with them
_OTHERS = (
    (b"\x80", "a pickle, which can run any code when it is read; load it with pickle or joblib, "
     "if you trust whoever made it, and write it with mercer.save"),
    (b"PK\x03\x04", "a zip archive (skops, npz or Keras); read it with the library that wrote it"),
    (b"\x89HDF", "an HDF5 file; read it with the library that wrote it"),
    (b"\x1f\x8b", "compressed by gzip; uncompress it first"),
    (b"\x08", "an ONNX model; run it with onnxruntime"),
    (b"x\x9c", _ZLIB),
    (b"x^", _ZLIB),
    (b"x\x01", _ZLIB),
    (b"x\xda", _ZLIB),
    (b"svm_type", "a model of LIBSVM; read it with mercer.files.libsvm"),
    (b"\x93NUMPY", "an array of NumPy; read it with numpy.load(..., allow_pickle=False)"),
    (b"{", "a text in JSON, not a model file"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Container:
    """What is in a file.

    Attributes
    ----------
    text : str
        The JSON text under the key "mercer".
    tensors : dict of str to array
        The arrays by name: views of one block of memory.
    """

    text: str
    tensors: dict[str, Array]


def describe(tensors: Mapping[str, Array]) -> dict[str, Any]:
    """Return type, shape and digest of every array, as the text repeats them."""
    return {
        name: {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "sha256": digest(array)}
        for name, array in tensors.items()
    }


def digest(array: Array) -> str:
    """Return the SHA-256 of the bytes of a contiguous array, as 64 hexadecimal digits."""
    return sha256(_bytes(array)).hexdigest()


def _bytes(array: Array) -> Any:
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat) if array.size else b""


def parts_of(text: str, tensors: Mapping[str, Array]) -> Iterator[Any]:
    """Return the bytes of a file piece by piece: the header, then every array.

    Parameters
    ----------
    text : str
        What goes under the key "mercer".
    tensors : mapping of str to array
        Contiguous arrays of the types in `DTYPES`.
    """
    # large numbers first: every array then begins at a multiple of the size of its entries
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    metadata = {"format": "mercer", "sha256": sha256(text.encode()).hexdigest(), "mercer": text}
    header: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    for name in names:
        array = tensors[name]
        end = start + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
        start = end
    data = write_json(header).encode()
    data += b" " * (-len(data) % 8)
    if len(data) > MOST_HEADER or len(tensors) > MOST_TENSORS:
        raise ModelFormatError(
            f"the machine needs a header of {len(data)} bytes and {len(tensors)} arrays; a model "
            f"file has at most {MOST_HEADER} and {MOST_TENSORS}"
        )
    yield len(data).to_bytes(_LENGTH, "little")
    yield data
    for name in names:
        yield _bytes(tensors[name])


# --- reading -------------------------------------------------------------------------------------


def read_container(path: str | os.PathLike[str]) -> Container:
    """Read a file whole, and check everything that can be checked without knowing machines.

    The file is read once into one block, of which the arrays are views: no second copy is made,
    and a file that changes later changes no model, as it would a memory map.
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_LENGTH + 1)
        _refuse_others(head, size)
        length = int.from_bytes(head[:_LENGTH], "little")
        if length > MOST_HEADER:
            raise ModelFormatError(
                f"this is no model file of Mercer: its header would be {length} bytes long, and "
                f"at most {MOST_HEADER} are allowed"
            )
        if length > size - _LENGTH:
            raise ModelFormatError(
                f"the file is cut short: its header has {length} bytes, the whole file {size}"
            )
        header = head[_LENGTH:] + file.read(length - 1)
        if len(header) < length:
            raise ModelFormatError("the file is cut short: its header is not whole")
        text, entries = _read_header(header)
        total = max((entry.end for entry in entries), default=0)
        if total != size - _LENGTH - length:
            raise ModelFormatError(
                f"the file should have {_LENGTH + length + total} bytes and has {size}: it is cut "
                "short, or something was added"
            )
        block: Any = np.empty(total, dtype=np.uint8)
        if file.readinto(memoryview(block)) != total:
            raise ModelFormatError("the file is cut short: its arrays are not whole")
    return Container(text, {entry.name: entry.view(block) for entry in entries})


def _refuse_others(head: bytes, size: int) -> None:
    """Refuse what does not begin like a file of ours, and say what it is."""
    if not head:
        raise ModelFormatError("the file is empty")
    if head[_LENGTH:] == b"{" and head[_LENGTH - 4 : _LENGTH] == bytes(4):
        return
    for start, what in _OTHERS:
        if head.startswith(start):
            raise ModelFormatError(f"this is no model file of Mercer but {what}")
    if len(head) <= _LENGTH:
        raise ModelFormatError(f"the file is cut short, or no model file: it has {size} bytes")
    raise ModelFormatError("this is no model file of Mercer: it has no header")


@dataclass(frozen=True)
class _Entry:
    """An array as the header describes it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    def view(self, block: Array) -> Array:
        """Return the array as a view of the block."""
        return block[self.start : self.end].view(DTYPES[self.dtype]).reshape(self.shape)


def _read_header(data: bytes) -> tuple[str, list[_Entry]]:
    """Return our text and the arrays, in the order of their places."""
    header = read_json(data)
    if not isinstance(header, dict) or "__metadata__" not in header:
        raise ModelFormatError("this is no model file of Mercer: its header has no metadata")
    text = _read_metadata(header.pop("__metadata__"))
    if len(header) > MOST_TENSORS:
        raise ModelFormatError(f"there are {len(header)} arrays; at most {MOST_TENSORS} may be")
    entries = sorted(
        (_read_entry(name, value) for name, value in header.items()),
        key=lambda entry: (entry.start, entry.end),
    )
    place = 0
    for entry in entries:
        if entry.start != place:
            raise ModelFormatError(
                f"array {entry.name!r} begins at byte {entry.start}, and {place} is where the one "
                "before it ends"
            )
        if entry.start % DTYPES[entry.dtype].itemsize:
            raise ModelFormatError(f"array {entry.name!r} begins between two numbers")
        place = entry.end
    return text, entries


def _read_metadata(metadata: Any) -> str:
    keys = {"format", "sha256", "mercer"}
    if not isinstance(metadata, dict) or metadata.get("format") != "mercer":
        raise ModelFormatError(
            "this is a safetensors file, but no model of Mercer: the format that its metadata "
            "name is another"
        )
    if metadata.keys() != keys or not all(isinstance(metadata[key], str) for key in keys):
        raise ModelFormatError(f"the metadata must be three texts: {', '.join(sorted(keys))}")
    text: str = metadata["mercer"]
    if sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != metadata["sha256"]:
        raise ModelFormatError("the header is damaged: its digest is another")
    return text


def _read_entry(name: str, value: Any) -> _Entry:
    where = f"array {name[:80]!r}"
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFormatError(f"{where}: dtype, shape and data_offsets are expected")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ModelFormatError(f"{where}: dtype {dtype!r} is none of {', '.join(DTYPES)}")
    if not _are_sizes(shape) or len(shape) > _MOST_DIMENSIONS:
        raise ModelFormatError(f"{where}: shape {shape!r:.80} is no list of sizes")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ModelFormatError(f"{where}: data_offsets {offsets!r:.80} are no two places")
    need = prod(shape) * DTYPES[dtype].itemsize  # of Python's integers: nothing overflows
    if offsets[1] - offsets[0] != need:
        raise ModelFormatError(
            f"{where}: {dtype} of shape {shape!r:.80} takes {need:.6g} bytes, and its place has "
            f"{offsets[1] - offsets[0]}"
        )
    return _Entry(name, dtype, tuple(shape), offsets[0], offsets[1])


def _are_sizes(value: Any) -> bool:
    """Return whether a value is a list of integers that a size in memory could be."""
    return isinstance(value, list) and all(
        type(size) is int and 0 <= size < _MOST_BYTES for size in value
    )


def check_digests(container: Container, described: Any) -> None:
    """Refuse arrays that are not those that the text describes.

    Parameters
    ----------
    container : Container
        What was read.
    described : object
        What the text says of the arrays; not yet looked at.
    """
    if not isinstance(described, dict) or described.keys() != container.tensors.keys():
        raise ModelFormatError("the header does not describe the arrays that are there")
    for name, array in container.tensors.items():
        expected = {"dtype": _NAMES[array.dtype], "shape": list(array.shape)}
        found = described[name]
        if not isinstance(found, dict) or found.keys() != {"dtype", "shape", "sha256"}:
            raise ModelFormatError(f"array {name!r}: dtype, shape and sha256 are expected")
        if {key: found[key] for key in expected} != expected:
            raise ModelFormatError(f"array {name!r}: type or shape is not what was written")
        if found["sha256"] != digest(array):
            raise ModelFormatError(f"array {name!r} is damaged: its digest is another")
