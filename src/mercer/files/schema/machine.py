"""Machines: records that a file may hold as a whole."""

from __future__ import annotations

from inspect import signature
from typing import Any

from mercer.files.schema.record import record

_COLUMNS = """
    n_features_in_?: int=d
    feature_names_in_?: words[d]
"""
JUDGED = """
    solution_: Solution
    _judgement: Certificate
"""
_APPROXIMATED = """
    approximation?: param
    approximation_error_?, approximation_error_x_?, approximation_error_y_?: StatedError
"""
FITTED = JUDGED + "kernel_: kernel\n"


def machine(kind: type, text: str, *, name: str = "", **options: Any) -> None:
    """Let files hold a machine; its columns are described here, its parameters need no words.

    Parameters
    ----------
    kind : type
        The class.
    text : str
        What its fit leaves: lines of "name, name: type".
    name : str
        Its name in files, if that is not the name of the class.
    **options : object
        See `mercer.files.schema.record.Record`.
    """
    if "approximation" in signature(kind).parameters:
        text += _APPROXIMATED
    record(kind, _COLUMNS + text, name=name, group="machine", whole=True, **options)
