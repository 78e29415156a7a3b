"""Container of a model file (safetensors with digests), strict JSON, and atomic file writes."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mercer.array_types import Array

# --- container -----------------------------------------------------------------------------------
#
# The outer form of a model file: safetensors, read without trust.
#
# ::
#
#     8 bytes         length of the header, little-endian
#     header          JSON: {"__metadata__": {...}, name: {"dtype", "shape", "data_offsets"}, ...}
#     the rest        the arrays, contiguous
#
# Any reader of safetensors opens it. Two keys of the metadata are ours: "mercer", a JSON text
# with the meaning of the arrays, and "sha256", the digest of that text. The text holds type,
# shape and digest of every array again, so that no bit of a file can change unseen.

MOST_HEADER = 1_000_000  # bytes: larger values belong in arrays
MOST_TENSORS = 256
_MOST_DIMENSIONS = 8
_MOST_BYTES = 2**48  # the address space of a processor; NumPy's own counts end at 2^63
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
    (b"\x80", "a pickle, which can run any code when it is loaded; if you trust its source, load "
    "it with pickle or joblib and write it with mercer.save"),
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
    """The contents of a file.

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
        The text stored under the key "mercer".
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
            f"the estimator needs a header of {len(data)} bytes and {len(tensors)} arrays; the "
            f"limits of a model file are {MOST_HEADER} bytes and {MOST_TENSORS} arrays"
        )
    yield len(data).to_bytes(_LENGTH, "little")
    yield data
    for name in names:
        yield _bytes(tensors[name])


# --- reading -------------------------------------------------------------------------------------


def read_container(path: str | os.PathLike[str]) -> Container:
    """Read a whole file and check everything that does not depend on the estimator.

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
                f"not a Mercer model file: its header would have {length} bytes; at most "
                f"{MOST_HEADER} are allowed"
            )
        if length > size - _LENGTH:
            raise ModelFormatError(
                f"the file is truncated: its header has {length} bytes, the whole file {size}"
            )
        header = head[_LENGTH:] + file.read(length - 1)
        if len(header) < length:
            raise ModelFormatError("the file is truncated: its header is incomplete")
        text, entries = _read_header(header)
        total = max((entry.end for entry in entries), default=0)
        if total != size - _LENGTH - length:
            raise ModelFormatError(
                f"the file should have {_LENGTH + length + total} bytes and has {size}: it is "
                "truncated, or data were added"
            )
        block: Any = np.empty(total, dtype=np.uint8)
        if file.readinto(memoryview(block)) != total:
            raise ModelFormatError("the file is truncated: its arrays are incomplete")
    return Container(text, {entry.name: entry.view(block) for entry in entries})


def _refuse_others(head: bytes, size: int) -> None:
    """Raise an error that names the format if this is not a Mercer file."""
    if not head:
        raise ModelFormatError("the file is empty")
    if head[_LENGTH:] == b"{" and head[_LENGTH - 4 : _LENGTH] == bytes(4):
        return
    for start, what in _OTHERS:
        if head.startswith(start):
            raise ModelFormatError(f"not a Mercer model file but {what}")
    if len(head) <= _LENGTH:
        raise ModelFormatError(f"truncated or not a Mercer model file: it has {size} bytes")
    raise ModelFormatError("not a Mercer model file: it has no header")


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
        raise ModelFormatError(
            "not a Mercer model file: the header has no metadata. Create model files with "
            "mercer.save."
        )
    text = _read_metadata(header.pop("__metadata__"))
    if len(header) > MOST_TENSORS:
        raise ModelFormatError(
            f"there are {len(header)} arrays; at most {MOST_TENSORS} are allowed"
        )
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
            "not a Mercer model file but a safetensors file: its metadata name another format"
        )
    if metadata.keys() != keys or not all(isinstance(metadata[key], str) for key in keys):
        raise ModelFormatError(f"the metadata must be three texts: {', '.join(sorted(keys))}")
    text: str = metadata["mercer"]
    if sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != metadata["sha256"]:
        raise ModelFormatError("the header is corrupt: its SHA-256 digest does not match")
    return text


def _read_entry(name: str, value: Any) -> _Entry:
    where = f"array {name[:80]!r}"
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFormatError(f"{where}: dtype, shape and data_offsets are expected")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ModelFormatError(f"{where}: dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    if not _are_sizes(shape) or len(shape) > _MOST_DIMENSIONS:
        raise ModelFormatError(f"{where}: shape {shape!r:.80} must be a list of sizes")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ModelFormatError(f"{where}: data_offsets {offsets!r:.80} must be two offsets")
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
    """Raise an error if the arrays differ from their description.

    Parameters
    ----------
    container : Container
        The arrays.
    described : object
        Their description in the text, not yet validated.
    """
    if not isinstance(described, dict) or described.keys() != container.tensors.keys():
        raise ModelFormatError("the header does not describe the arrays that are there")
    for name, array in container.tensors.items():
        expected = {"dtype": _NAMES[array.dtype], "shape": list(array.shape)}
        found = described[name]
        if not isinstance(found, dict) or found.keys() != {"dtype", "shape", "sha256"}:
            raise ModelFormatError(f"array {name!r}: dtype, shape and sha256 are expected")
        if {key: found[key] for key in expected} != expected:
            raise ModelFormatError(f"array {name!r}: type or shape differs from the header")
        if found["sha256"] != digest(array):
            raise ModelFormatError(
                f"array {name!r} is corrupt: its SHA-256 digest does not match the header"
            )


# --- strict json ---------------------------------------------------------------------------------
#
# JSON that is looked at before it is parsed: size, depth, no key twice, no NaN.

MOST_DEPTH = 64  # nested brackets: pipelines within pipelines have about 25
# the end may lack: a string that is not closed is passed over once, not from each of its quotes
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = re.compile(rb"[^][{}]+")


def read_json(data: bytes) -> Any:
    """Parse JSON in UTF-8; raise an error for text that two parsers could read differently.

    Parameters
    ----------
    data : bytes
        The text; the caller has bounded its length.

    Returns
    -------
    object
        As `json.loads` gives it.

    Examples
    --------
    >>> read_json(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> read_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    mercer.files.container.ModelFormatError: the key 'a' occurs twice
    """
    _refuse_depth(data)
    try:
        return json.loads(
            data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refuse_constant
        )
    except ModelFormatError:
        raise
    except (ValueError, RecursionError) as refusal:
        raise ModelFormatError(f"the header is not JSON ({refusal})") from None


def _refuse_depth(data: bytes) -> None:
    brackets = _NOT_BRACKETS.sub(b"", _STRING.sub(b"", data))
    depth = 0
    for sign in brackets:
        depth += 1 if sign in b"[{" else -1
        if depth > MOST_DEPTH:
            raise ModelFormatError(f"the header is nested deeper than {MOST_DEPTH}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ModelFormatError(f"the key {twice[:80]!r} occurs twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ModelFormatError(f"{name} is not a JSON number")


def write_json(value: Any) -> str:
    """Write JSON without spaces; floats are written so that they read back exactly."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)


# --- atomic --------------------------------------------------------------------------------------
#
# Files that are written whole or not at all.

_OPEN_FILES = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")
_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}  # links that must stay


def write_file(path: str | os.PathLike[str], parts: Iterable[Any]) -> None:
    """Write a file so that its name never stands for half of it.

    The parts go to a temporary file in the same folder, which takes the name when it is safely
    on the disk. Whatever happens before, an error, Ctrl-C or the end of the process, leaves the
    earlier file unchanged; all but the last also remove the temporary file. For a link, the link is
    replaced, not its target. Pipes and devices, such as /dev/null, are written to directly.

    Parameters
    ----------
    path : path
        Path of the file; the folder must exist.
    parts : iterable of bytes-like
        Contents, in order.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(pathlib.Path(folder) / "note", [b"whole ", b"or not"])
    ...     (pathlib.Path(folder) / "note").read_text()
    'whole or not'
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target}: is a folder; name a file in it")
    number = _open_number(target)
    if number is not None or (target.exists() and not target.is_file()):
        # a second handle of an open file continues at its position; a second opening would not
        with os.fdopen(os.dup(number), "wb") if number is not None else target.open("wb") as file:
            file.writelines(parts)
        return
    handle = -1
    temporary = ""
    try:
        # a short name of its own: a name of 255 bytes cannot be extended
        handle, temporary = tempfile.mkstemp(prefix=".mercer-", suffix=".tmp", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            handle = -1  # the file object closes it from here on
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
        temporary = ""
        _sync_folder(target.parent)
    except OSError as error:
        # the user knows the requested name, not the temporary one
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        if handle >= 0:
            os.close(handle)
        if temporary:
            os.unlink(temporary)


def _open_number(target: Path) -> int | None:
    """Return the number of the open file that a name such as /dev/stdout stands for."""
    name = os.path.abspath(target)
    found = _OPEN_FILES.fullmatch(name)
    return int(found[1]) if found is not None else _STANDARD.get(name)


def _mode(target: Path) -> int:
    """Return the permissions of the file that is replaced, or those of a new one."""
    if target.is_file() and not target.is_symlink():  # those behind a link are not ours to take
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Make the new name safe, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- errors --------------------------------------------------------------------------------------
#
# Errors of model files, and of estimators that cannot be stored.


class ModelFormatError(ValueError):
    """A file that is not a Mercer model, or an estimator that cannot be stored; says where and why.

    Examples
    --------
    >>> import mercer
    >>> mercer.load("/dev/null")
    Traceback (most recent call last):
    mercer.files.container.ModelFormatError: /dev/null: the file is empty
    """
