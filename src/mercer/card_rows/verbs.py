"""What NumPy's words for arrays are on a card."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from mercer.card_rows.transport import torch_library

_SAME = (
    "add subtract multiply negative absolute maximum minimum less less_equal greater greater_equal "
    "not_equal logical_and logical_or logical_not bitwise_and bitwise_or square sqrt "
    "isfinite isinf isnan exp expm1 log log1p hypot tanh"
).split()
_OTHERS = {
    "divide": "true_divide",
    "invert": "bitwise_not",
    "power": "pow",
    "equal": "eq",
    "expit": "sigmoid",  # SciPy's
    "xlogy": "xlogy",
    "xlog1py": "special.xlog1py",
}


def ndim(value: Any) -> int:
    """Count the axes; NumPy's own word would ask an array of a card for its numbers."""
    return int(value.ndim if hasattr(value, "ndim") else np.ndim(value))


def _named(name: str) -> Callable[..., Any]:
    def verb(*operands: Any) -> Any:
        return attrgetter(name)(torch_library())(*operands)

    return verb


def _sign(x: Any) -> Any:
    found = x.sign()
    return torch_library().where(x.isnan(), x, found) if x.is_floating_point() else found


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: _named(name) for name in _SAME},
    **{name: _named(there) for name, there in _OTHERS.items()},
    "sign": _sign,
}

# --- functions: each gets the array that was met first, and then what NumPy's gets ---------------


def _where(self: Any, condition: Any, *both: Any) -> Any:
    if len(both) != 2 or not all(map(self._fits, (condition, *both))):
        return NotImplemented
    torch = torch_library()
    return type(self)(torch.where(*map(self._operand, (condition, *both))))


def _flatnonzero(self: Any, a: Any) -> Any:
    if a.ndim != 1:
        return NotImplemented
    return type(self)(a.tensor.nonzero()[:, 0])


def _count_nonzero(self: Any, a: Any) -> Any:
    return int(a.tensor.count_nonzero().item())


def _clip(self: Any, a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    bounds = [bound for bound in (a_min, a_max) if bound is not None]
    if not all(map(self._fits, (a, *bounds))):
        return NotImplemented
    found = self._operand(a)
    if a_min is not None:
        found = torch_library().maximum(found, self._operand(a_min))
    if a_max is not None:
        found = torch_library().minimum(found, self._operand(a_max))
    return type(self)(found) if found.ndim else found.item()


def _nan_to_num(self: Any, x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    return type(self)(x.tensor.nan_to_num(nan=nan, posinf=posinf, neginf=neginf))


def _zeros_like(self: Any, a: Any, dtype: Any = None) -> Any:
    return _full_like(self, a, 0, dtype)


def _ones_like(self: Any, a: Any, dtype: Any = None) -> Any:
    return _full_like(self, a, 1, dtype)


def _full_like(self: Any, a: Any, fill_value: float, dtype: Any = None) -> Any:
    kind = a.tensor.dtype if dtype is None else type(self)(a.tensor[:0]).astype(dtype).tensor.dtype
    return type(self)(torch_library().full_like(a.tensor, fill_value, dtype=kind))


def _arange(self: Any, count: int) -> Any:
    return type(self)(torch_library().arange(count, device=self.tensor.device))


def _concatenate(self: Any, parts: Any, axis: int = 0) -> Any:
    if any(ndim(part) != 1 for part in parts):
        return NotImplemented
    there = [type(self).beside(self.tensor, part).tensor for part in parts]
    return type(self)(torch_library().cat(there))


def _append(self: Any, arr: Any, values: Any, axis: Any = None) -> Any:
    return _concatenate(self, [arr, np.atleast_1d(values) if ndim(values) == 0 else values])


def _einsum(self: Any, text: str, *operands: Any, **options: Any) -> Any:
    if text not in ("i,i", "i,i->") or options:
        return NotImplemented
    return self._product(*map(self._operand, operands))


def _bincount(self: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Add up in one order, whatever else runs: not by atomic additions."""
    if weights is None or minlength > _BINS or int(x.max(initial=-1)) >= minlength:
        return NotImplemented
    torch, cls = torch_library(), type(self)
    numbers, w = cls.beside(self.tensor, x).tensor, cls.beside(self.tensor, weights).tensor
    bins = torch.arange(minlength, device=numbers.device)
    return ((numbers[None, :] == bins[:, None]).to(w.dtype) @ w).cpu().numpy()


def _by_method(name: str) -> Callable[..., Any]:
    def function(self: Any, a: Any, **options: Any) -> Any:
        known = {"initial", "axis", "keepdims"} >= set(options)
        return getattr(a, name)(**options) if known and hasattr(a, name) else NotImplemented

    return function


_BINS = 8  # a matrix of so many rows is written
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "flatnonzero": _flatnonzero,
    "count_nonzero": _count_nonzero,
    "clip": _clip,
    "nan_to_num": _nan_to_num,
    "zeros_like": _zeros_like,
    "full_like": _full_like,
    "arange": _arange,
    "ones_like": _ones_like,
    "concatenate": _concatenate,
    "append": _append,
    "einsum": _einsum,
    "bincount": _bincount,
    **{name: _by_method(name) for name in "any all sum mean std copy argmax".split()},
    **{f"a{name}": _by_method(name) for name in ("max", "min")},
    **{name: _by_method(name) for name in ("max", "min")},
}
