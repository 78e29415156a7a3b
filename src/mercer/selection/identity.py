"""Digests of values: 32 characters that are equal for equal values, in every process.

For tables of results in memory and in journals. Numbers, text, arrays, tables, kernels, estimators
and functions are read by content; of anything else only the bytes of its pickle are looked at. No
code of what is read is run when it is compared.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.kernels import Kernel
from mercer.rows.points import is_sparse

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))


def digest(value: Any) -> str:
    """Return 32 letters and digits that stand for a value.

    Examples
    --------
    >>> digest({"C": 1.0}) == digest({"C": 1.0}), digest({"C": 1.0}) == digest({"C": 1})
    (True, False)
    """
    found = hashlib.blake2b(digest_size=16)
    for piece in _pieces(value):
        found.update(len(piece).to_bytes(8, "little"))
        found.update(piece)
    return found.hexdigest()


def _pieces(value: Any) -> Iterator[bytes | memoryview]:
    yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
    if isinstance(value, _PLAIN):
        yield repr(value).encode("utf-8", "surrogatepass")
    elif isinstance(value, np.generic | np.ndarray):
        yield from _array(np.asarray(value))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _pieces(key)
            yield from _pieces(inner)
    elif isinstance(value, list | tuple):
        yield str(len(value)).encode()
        for inner in value:
            yield from _pieces(inner)
    elif isinstance(value, set | frozenset):
        yield "".join(sorted(map(digest, value))).encode()
    elif isinstance(value, type | BuiltinFunctionType | np.ufunc):
        yield f"{getattr(value, '__module__', '')}.{value.__name__}".encode()
    else:
        yield from _contents(value)


def _contents(value: Any) -> Iterator[bytes | memoryview]:
    if isinstance(value, FunctionType):
        yield from _function(value)
    elif isinstance(value, functools.partial):
        yield from _pieces((value.func, value.args, dict(value.keywords)))
    elif is_sparse(value):
        rows = value.tocsr()
        yield from _pieces((rows.shape, rows.data, rows.indices, rows.indptr))
    elif isinstance(value, Kernel) or _is_its_parameters(value):
        yield from _pieces(_parameters(value))
    elif hasattr(value, "columns") and hasattr(value, "__getitem__"):  # a table
        for name in value.columns:
            yield from _pieces(name)
            yield from _array(np.asarray(value[name]))
    elif hasattr(value, "__array__"):
        yield from _array(np.asarray(value))
    else:
        yield _pickled(value)


def _is_its_parameters(value: Any) -> bool:
    """Return whether an estimator is what its parameters say; some copies keep what is fitted."""
    if not isinstance(value, BaseEstimator):
        return False
    return type(value).__sklearn_clone__ is BaseEstimator.__sklearn_clone__


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except pickle.PicklingError as error:
        raise TypeError(str(error)) from error


def _parameters(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseEstimator):
        return dict(value.get_params(deep=False))
    return dict(value.get_params())


def _array(array: Any) -> Iterator[bytes | memoryview]:
    yield f"{array.dtype.str} {array.shape}".encode()
    if array.dtype.hasobject:
        for inner in array.ravel().tolist():
            yield from _pieces(inner)
    else:
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _function(function: FunctionType) -> Iterator[bytes | memoryview]:
    yield f"{function.__module__}.{function.__qualname__}".encode()
    yield from _code(function.__code__)
    yield from _pieces((function.__defaults__, function.__kwdefaults__))
    for cell in function.__closure__ or ():
        yield from _pieces(cell.cell_contents)


def _code(code: CodeType) -> Iterator[bytes | memoryview]:
    yield code.co_code
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield from _pieces(constant)
