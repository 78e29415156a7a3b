"""Write a machine to a file."""

from __future__ import annotations

import os
import sys
from typing import Any

from mercer.files.atomic import write_file
from mercer.files.container import describe, parts_of
from mercer.files.decode import Decoder
from mercer.files.encode import Encoder
from mercer.files.errors import ModelFormatError
from mercer.files.schema.record import record_name
from mercer.files.schema.table import RECORDS
from mercer.files.strict_json import write_json

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
