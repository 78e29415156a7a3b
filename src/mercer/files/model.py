"""Functions `save` and `load`: model files of fitted estimators."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from mercer.files.container import (
    ModelFormatError,
    check_digests,
    describe,
    parts_of,
    read_container,
    read_json,
    write_file,
    write_json,
)
from mercer.files.decode import Decoder
from mercer.files.encode import Encoder
from mercer.files.schema import RECORDS
from mercer.files.schema.records import record_name

# --- save ----------------------------------------------------------------------------------------
#
# Write an estimator to a file.

FORMAT = 1
WRITER = f"mercer {sys.modules['mercer'].__version__}"  # subpackages do not import mercer
NEEDS = "0.9.0"  # the first release that reads this format


def save(machine: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to a model file, whole or not at all.

    Parameters
    ----------
    machine : estimator
        An estimator of Mercer, fitted or not, or a pipeline of such and scikit-learn's scalers.
    path : path
        Path of the file; an existing file is replaced once the new one is safely on the disk.

    Raises
    ------
    ModelFormatError
        If the estimator holds an object that no file can hold, such as a function; names the
        attribute.
    OSError
        If the file cannot be written; names the path.

    Notes
    -----
    Fitted kernel methods keep rows of their training data (such as support vectors), and so does
    the file: everyone who has the file has these rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import mercer
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> machine = mercer.SVC("gaussian(1)").fit(X, ["no", "no", "yes", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mercer.save(machine, pathlib.Path(folder) / "small.mercer")
    ...     same = mercer.load(pathlib.Path(folder) / "small.mercer")
    >>> same.predict([[0.4], [2.6]]).tolist(), same.certificate_.ok
    (['no', 'yes'], True)
    """
    kind = type(machine).__name__
    name = record_name(machine)
    if name is None or not RECORDS[name].whole:
        raise ModelFormatError(
            f"{type(machine).__module__}.{kind} cannot be stored in a model file; use pickle, "
            "joblib or skops if the readers of the file trust its source"
        )
    encoder = Encoder(machine)
    node = encoder.encode(machine, kind)
    tensors = encoder.finish()
    Decoder(tensors).decode(node)  # check that the file can be read back
    text = write_json(
        {
            "format": FORMAT,
            "needs": NEEDS,
            "writer": WRITER,
            "machine": node,
            "tensors": describe(tensors),
        }
    )
    write_file(path, parts_of(text, tensors))


# --- load ----------------------------------------------------------------------------------------
#
# Read an estimator from a file.

_KEYS = {"format", "needs", "writer", "machine", "tensors"}
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}")


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a model file. No code runs, whatever the file holds.

    Every number is checked: digests of the arrays, names of classes against a fixed table, every
    field against its type, and sizes against each other. Invalid content raises an error.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator
        The estimator, with its certificate.

    Raises
    ------
    ModelFormatError
        If the file is not a model, is corrupt, or needs a newer release; the message says which.
    OSError
        If the file cannot be read.

    See Also
    --------
    save : Write such a file.
    mercer.files.verify : Verify a loaded estimator against data.
    """
    try:
        return _load(path)
    except ModelFormatError as refusal:
        raise ModelFormatError(f"{os.fspath(path)}: {refusal}") from None


def _load(path: str | os.PathLike[str]) -> Any:
    container = read_container(path)
    found = read_json(container.text.encode("utf-8", "surrogatepass"))
    _check_version(found)
    check_digests(container, found["tensors"])
    decoder = Decoder(container.tensors)
    machine = decoder.decode(found["machine"])
    name = record_name(machine)
    if name is None or not RECORDS[name].whole:
        raise ModelFormatError("the file does not hold an estimator")
    unused = decoder.unused()
    if unused:
        raise ModelFormatError(
            f"array {unused[0]!r:.60} is unexpected: no field of the model refers to it"
        )
    return machine


def _check_version(found: Any) -> None:
    if not isinstance(found, dict) or type(found.get("format")) is not int:
        raise ModelFormatError("the header does not state its format")
    if found["format"] > FORMAT:
        needs = found.get("needs")
        known = isinstance(needs, str) and _VERSION.fullmatch(needs)
        raise ModelFormatError(
            f"the file has format {found['format']}, and {WRITER} reads up to {FORMAT}"
            + (f"; it needs mercer >= {needs}" if known else "; it needs a newer mercer")
        )
    if found["format"] != FORMAT:
        raise ModelFormatError(f"unknown format {found['format']}")
    if found.keys() != _KEYS:
        raise ModelFormatError(f"the header must have the keys {', '.join(sorted(_KEYS))}")
    if not isinstance(found["needs"], str) or not isinstance(found["writer"], str):
        raise ModelFormatError(
            "the header must name the required and the writing version of mercer"
        )
