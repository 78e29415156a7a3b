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
# Write a machine to a file.

FORMAT = 1
WRITER = f"mercer {sys.modules['mercer'].__version__}"  # rooms do not import the front door
NEEDS = "0.9.0"  # the first release that reads this format


def save(machine: Any, path: str | os.PathLike[str]) -> None:
    """Write a machine to a model file, whole or not at all.

    Parameters
    ----------
    machine : estimator
        A machine of Mercer, fitted or not, or a pipeline of such and scikit-learn's scalers.
    path : path
        Where; an earlier file of that name is replaced when the new one is safely on the disk.

    Raises
    ------
    ModelFormatError
        If the machine holds what no file can hold, such as a function; names the attribute.
    OSError
        If the file cannot be written; names the path.

    Notes
    -----
    Kernel machines keep rows of their training data (support vectors and the like), and so does
    the file: whoever gets the file gets these rows.

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
            f"{type(machine).__module__}.{kind} is no machine that a model file can hold; pickle, "
            "joblib and skops may do, among people who trust each other"
        )
    encoder = Encoder(machine)
    node = encoder.encode(machine, kind)
    tensors = encoder.finish()
    Decoder(tensors).decode(node)  # what is written can be read
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
# Read a machine from a file.

_KEYS = {"format", "needs", "writer", "machine", "tensors"}
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}")


def load(path: str | os.PathLike[str]) -> Any:
    """Read a machine from a model file. No code runs, whatever the file holds.

    Every number is checked: digests of the arrays, names of classes against a fixed table, every
    field against its type, and sizes against each other. What is not as it should be is refused.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator
        The machine, with its certificate.

    Raises
    ------
    ModelFormatError
        If the file is no model, is damaged, or needs a newer release; says what is wrong.
    OSError
        If the file cannot be read.

    See Also
    --------
    save : Write such a file.
    mercer.files.verify : Judge a loaded machine against data.
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
        raise ModelFormatError("the file holds no machine")
    unused = decoder.unused()
    if unused:
        raise ModelFormatError(f"array {unused[0]!r:.60} belongs to nothing")
    return machine


def _check_version(found: Any) -> None:
    if not isinstance(found, dict) or type(found.get("format")) is not int:
        raise ModelFormatError("the header does not say its format")
    if found["format"] > FORMAT:
        needs = found.get("needs")
        known = isinstance(needs, str) and _VERSION.fullmatch(needs)
        raise ModelFormatError(
            f"the file has format {found['format']}, and {WRITER} reads up to {FORMAT}"
            + (f"; it needs mercer >= {needs}" if known else "; it needs a newer mercer")
        )
    if found["format"] != FORMAT:
        raise ModelFormatError(f"there is no format {found['format']}")
    if found.keys() != _KEYS:
        raise ModelFormatError(f"the header must have the keys {', '.join(sorted(_KEYS))}")
    if not isinstance(found["needs"], str) or not isinstance(found["writer"], str):
        raise ModelFormatError("the header must say which mercer it needs, and what wrote it")
