"""Read a machine from a file."""

from __future__ import annotations

import os
import re
from typing import Any

from mercer.files.container import check_digests, read_container
from mercer.files.decode import Decoder
from mercer.files.errors import ModelFormatError
from mercer.files.save import FORMAT, WRITER
from mercer.files.schema.record import record_name
from mercer.files.schema.table import RECORDS
from mercer.files.strict_json import read_json

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
