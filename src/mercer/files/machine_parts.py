"""What a machine is made of: fields that files may hold, parts within parts, names of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.files.schema.record import RECORDS, Fields, record_name


def state_of(value: Any) -> Fields:
    """Return the fields of an object that files may hold; a certificate is made first."""
    described = RECORDS[str(record_name(value))]
    if "_judgement" in vars_of(value) or "_asked" in vars_of(value):
        # a certificate that waits is made now; a stream has none to make
        _ = getattr(value, "certificate_", None)
    return described.fields_of(value)


def vars_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, if it has any."""
    return getattr(value, "__dict__", {})


def parts_of_machine(machine: Any) -> Iterator[Any]:
    """Return everything inside a machine that is no array."""
    return _parts(machine, set())


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    if id(value) in seen or isinstance(value, np.ndarray | np.generic | str | int | float):
        return
    seen.add(id(value))
    yield value
    if isinstance(value, list | tuple):
        inner: Any = value
    elif isinstance(value, dict):
        inner = value.values()
    elif record_name(value) is not None:
        inner = state_of(value).values()
    else:
        return
    for part in inner:
        yield from _parts(part, seen)


def column_names(found: list[Any]) -> Iterator[list[str]]:
    """Return the names of columns that parts of a machine know."""
    for part in found:
        for name in ("feature_names_in_", "names"):
            names = vars_of(part).get(name)
            if isinstance(names, np.ndarray | list | tuple) and len(names):
                yield [str(each) for each in names]
