"""Arrays on a GPU with NumPy's operators, functions and methods, and copies to the host."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import EllipsisType
from typing import Any

import numpy as np

from mercer.array_types import Array

# --- arrays --------------------------------------------------------------------------------------
#
# Arrays with one long side that lie on a card, in the words of NumPy.
#
# Solvers ask for sums, comparisons and rows that meet a condition. Of numbers on a card these are
# made there, so that one text of a solver serves both places: half a million numbers take a card
# microseconds, and the host, which finds new memory for each result, milliseconds. What a card
# has no word for is asked of the host, and what has lost its long side comes there.

LONG = 1 << 15  # rows from which a card is sooner done than the host, launches included
_TYPES = {"float64": np.float64, "float32": np.float32, "int64": np.int64, "bool": np.bool_}
_KINDS = {np.dtype(kind): name for name, kind in _TYPES.items()}


class CardArray(np.lib.mixins.NDArrayOperatorsMixin):
    """Numbers on a card: one for each row, or a few.

    Parameters
    ----------
    tensor : (n,) or (n, k) tensor
        float64, int64 or bool.
    """

    __array_priority__ = 1000.0

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.shape = tensor, tuple(tensor.shape)

    @classmethod
    def beside(cls, tensor: Any, array: Any) -> CardArray:
        """Put an array where a tensor lies."""
        return cls(_sent(array, tensor))

    def __len__(self) -> int:
        return int(self.shape[0])

    @property
    def ndim(self) -> int:
        """Count the axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Count the numbers."""
        return int(self.tensor.numel())

    @property
    def dtype(self) -> Any:
        """The type of the numbers, in NumPy's words."""
        return np.dtype(_TYPES[str(self.tensor.dtype).removeprefix("torch.")])

    @property
    def T(self) -> CardArray:
        """The transpose."""
        return self if self.ndim == 1 else CardArray(self.tensor.T)

    def __bool__(self) -> bool:
        return bool(self.on_host())  # of one number; several are refused, in NumPy's words

    def on_host(self) -> Array:
        """Return the numbers in the memory of the processor."""
        return bring_numbers(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.on_host(), dtype=dtype)

    # --- NumPy's protocols ---------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        verb = OPERATIONS.get(ufunc.__name__)
        out = options.pop("out", ())
        found: Any = NotImplemented
        known = verb is not None and method == "__call__" and not options
        if known and not _are_arrays(out) and all(map(self._fits, inputs)):
            found = verb(*map(self._operand, inputs))  # type: ignore[misc]
        if found is NotImplemented:
            return _arrays_by_host(getattr(ufunc, method), inputs, out, options)
        if out:
            return _written(found, *out)
        return CardArray(found) if found.ndim else found.item()

    def __array_function__(self, verb: Any, types: Any, given: Any, options: Any) -> Any:
        own = FUNCTIONS.get(verb.__name__)
        found = NotImplemented if own is None else own(self, *given, **options)
        if found is not NotImplemented:
            return found
        hosts = {name: _deep(value) for name, value in options.items()}
        return verb(*map(_deep, given), **hosts)

    def _fits(self, value: Any) -> bool:
        """Return whether a value is one number, or goes beside these row by row."""
        shape = value.shape if hasattr(value, "shape") else np.shape(value)
        pairs = zip(reversed(shape), reversed(self.shape), strict=False)
        return all(1 in (a, b) or a == b for a, b in pairs)

    def _operand(self, value: Any) -> Any:
        """Return a tensor of numbers; a single one may stay where it is."""
        if ndim(value) == 0:
            one = value.item() if hasattr(value, "item") else value
            return torch_library().tensor(one, dtype=self._kind(one))
        return _sent(value, self.tensor)

    @staticmethod
    def _kind(value: Any) -> Any:
        torch = torch_library()
        if isinstance(value, bool):
            return torch.bool
        return torch.int64 if isinstance(value, int) else torch.float64

    # --- products: sums over rows come to the host -----------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        if hasattr(other, "on_host") and not isinstance(other, CardArray):
            return NotImplemented  # rows on a card know best
        return self._product(self.tensor, _sent(other, self.tensor))

    def __rmatmul__(self, other: Any) -> Any:
        return self._product(_sent(other, self.tensor), self.tensor)

    @staticmethod
    def _product(first: Any, second: Any) -> Any:
        kind = torch_library().promote_types(first.dtype, second.dtype)
        if not kind.is_floating_point:  # cards multiply no matrices of whole numbers
            return bring_numbers(first) @ bring_numbers(second)
        found = first.to(kind) @ second.to(kind)
        if not found.ndim:
            return found.item()
        keeps_rows = first.ndim == 2 and first.shape[0] > first.shape[1]
        return CardArray(found) if keeps_rows else bring_numbers(found)

    # --- entries ---------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        found = self.tensor[self._index(index)]
        return CardArray(found) if found.ndim else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        value = value if ndim(value) == 0 else _sent(value, self.tensor).to(self.tensor.dtype)
        self.tensor[self._index(index)] = value

    def _index(self, index: Any) -> Any:
        if isinstance(index, tuple):
            return tuple(map(self._index, index))
        if index is None or isinstance(index, slice | int | np.integer | EllipsisType):
            return index
        there = _sent(_listed(index) if isinstance(index, list) else index, self.tensor)
        if there.is_floating_point():
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        return there

    # --- methods of arrays -----------------------------------------------------------------------

    def copy(self) -> CardArray:
        """Return a copy on the card."""
        return CardArray(self.tensor.clone())

    def astype(self, dtype: Any, **options: Any) -> Any:
        """Return the numbers in another type."""
        kind = _KINDS.get(np.dtype(dtype), "int64" if np.dtype(dtype).kind in "iu" else None)
        if kind is None:
            return self.on_host().astype(dtype, **options)
        return CardArray(self.tensor.to(getattr(torch_library(), kind)))

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Any:
        """Add up; sums over rows on the host."""
        if axis is None and not keepdims:
            return self.tensor.sum().item()
        if axis is None:
            return self.on_host().sum(keepdims=True)
        return _along(self.tensor.sum(dim=axis, keepdim=keepdims), axis)

    def mean(self) -> float:
        """Average."""
        return float(self.tensor.to(torch_library().float64).mean().item())

    def std(self) -> float:
        """Return the standard deviation."""
        return float(self.tensor.std(correction=0).item())

    def any(self) -> bool:
        """Return whether one is not zero."""
        return bool(self.tensor.any().item())

    def all(self) -> bool:
        """Return whether none is zero."""
        return bool(self.tensor.all().item())

    def max(self, axis: int | None = None, initial: Any = None, keepdims: bool = False) -> Any:
        """Return the largest, or `initial` if that is larger."""
        if axis is None and not keepdims:
            return self._extreme("amax", np.maximum, initial)
        if axis is None or initial is not None:
            least = {} if initial is None else {"initial": initial}
            return self.on_host().max(axis=axis, keepdims=keepdims, **least)
        return _along(self.tensor.amax(dim=axis, keepdim=keepdims), axis)

    def min(self, initial: Any = None) -> Any:
        """Return the smallest, or `initial` if that is smaller."""
        return self._extreme("amin", np.minimum, initial)

    def _extreme(self, verb: str, of_two: Any, initial: Any) -> Any:
        if initial is not None and not self.size:
            return initial
        found = getattr(self.tensor, verb)().item()
        return found if initial is None else of_two(found, initial)

    def argmax(self) -> int:
        """Return where the largest is, of several the first."""
        return int(self.tensor.argmax().item())

    def __iter__(self) -> Any:
        return iter(self.on_host())

    def __reduce__(self) -> tuple[Any, ...]:
        return np.array, (self.on_host(),)  # whoever reads it may have no such device


def placed_beside(rows: Any, array: Any) -> Any:
    """Return numbers of rows where these lie: on a card, if there are many, else on the host."""
    if hasattr(rows, "image") and len(rows) >= LONG:
        return CardArray.beside(rows.tensor, array)
    return host_numbers(array)


def looked_up(table: Array, numbers: Any) -> Any:
    """Return the entries of a small table that numbers name, where these lie."""
    if isinstance(numbers, CardArray):
        return CardArray.beside(numbers.tensor, table)[numbers]
    return table[numbers]


def host_numbers(value: Any) -> Any:
    """Return numbers of a card on the host; anything else as it is."""
    return value.on_host() if isinstance(value, CardArray) else value


def _are_arrays(out: Any) -> bool:
    return any(isinstance(each, np.ndarray) for each in out)


def _arrays_by_host(verb: Any, inputs: Any, out: Any, options: Any) -> Any:
    """Ask the host; what is to be written on a card is sent there."""
    if not any(isinstance(each, CardArray) for each in out):
        return verb(*map(host_numbers, inputs), **options, **({"out": out} if out else {}))
    here = tuple(map(host_numbers, out))
    verb(*map(host_numbers, inputs), **options, out=here)
    for there, numbers in zip(out, here, strict=True):
        if isinstance(there, CardArray):
            there[...] = numbers
    return out[0] if len(out) == 1 else out


def _written(found: Any, out: CardArray) -> CardArray:
    """Write numbers into an array whose type holds them: as NumPy, none are cut off in silence."""
    if not torch_library().can_cast(found.dtype, out.tensor.dtype):
        raise TypeError(f"cannot cast output from {found.dtype} to {out.tensor.dtype}")
    out.tensor.copy_(found)
    return out


def _listed(index: list[Any]) -> Array:
    return np.asarray(index) if index else np.empty(0, dtype=np.int64)


def _along(found: Any, axis: int) -> Any:
    """Return what was found along an axis: where rows were added up, on the host."""
    return bring_numbers(found) if axis == 0 else CardArray(found)


def _deep(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_deep, value))
    return host_numbers(value)


def _sent(array: Any, beside: Any) -> Any:
    """Return numbers where a tensor lies."""
    if isinstance(array, CardArray):
        return array.tensor
    from mercer.rows.staging import send  # noqa: PLC0415  needs torch, which is there

    array = np.asarray(array)
    kind = np.float64 if array.dtype.kind == "f" else array.dtype
    kind = np.int64 if array.dtype.kind in "iu" else kind
    if array.size and not any(array.strides):  # one number, again and again: it alone travels
        one = torch_library().from_numpy(np.array(array.flat[0], dtype=kind))
        return one.to(beside.device).expand(array.shape).contiguous()
    # sent, it is another's; on the processor, and where torch may not write, a copy has to be made
    shared = beside.is_cuda and array.flags.writeable
    here = np.ascontiguousarray(array, kind) if shared else np.array(array, kind, order="C")
    return send(torch_library().from_numpy(here), str(beside.device))


# --- verbs ---------------------------------------------------------------------------------------
#
# What NumPy's words for arrays are on a card.

_SAME = (
    "add multiply negative absolute maximum minimum less less_equal greater greater_equal "
    "not_equal logical_and logical_or logical_not bitwise_and bitwise_or square "
    "isfinite isinf isnan"
).split()
_OTHERS = {"invert": "bitwise_not", "equal": "eq"}
_REAL = {  # of whole numbers, too: torch would answer in float32, or not at all
    **{name: name for name in "sqrt exp expm1 log log1p hypot tanh".split()},
    "divide": "true_divide",
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


def _real(name: str) -> Callable[..., Any]:
    def verb(*operands: Any) -> Any:
        torch = torch_library()
        floats = [x if x.is_floating_point() else x.to(torch.float64) for x in operands]
        return attrgetter(name)(torch)(*floats)

    return verb


def _subtract(x: Any, y: Any) -> Any:
    """Subtract, with truth values as numbers where there are numbers; two of them are refused."""
    kind = torch_library().promote_types(x.dtype, y.dtype)
    bare = torch_library().bool
    return (x.to(kind) if x.dtype == bare else x) - (y.to(kind) if y.dtype == bare else y)


def _power(x: Any, y: Any) -> Any:
    """Raise to a power; whole numbers by the host, which refuses one over a whole number."""
    if not (x.is_floating_point() or y.is_floating_point()):
        return NotImplemented
    return torch_library().pow(x, y)


def _sign(x: Any) -> Any:
    found = x.sign()
    return torch_library().where(x.isnan(), x, found) if x.is_floating_point() else found


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: _named(name) for name in _SAME},
    **{name: _named(there) for name, there in _OTHERS.items()},
    **{name: _real(there) for name, there in _REAL.items()},
    "subtract": _subtract,
    "power": _power,
    "sign": _sign,
}


# --- functions: each gets the array that was met first, and then what NumPy's gets ---------------


def _where(self: Any, condition: Any, *both: Any) -> Any:
    if len(both) != 2 or not all(map(self._fits, (condition, *both))):
        return NotImplemented
    torch = torch_library()
    chosen = self._operand(condition).to(torch.bool)
    return type(self)(torch.where(chosen, *map(self._operand, both)))


def _flatnonzero(self: Any, a: Any) -> Any:
    if a.ndim != 1:
        return NotImplemented
    return type(self)(a.tensor.nonzero()[:, 0])


def _count_nonzero(self: Any, a: Any, **options: Any) -> Any:
    if options:
        return NotImplemented
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
    own = torch.where(numbers[None, :] == bins[:, None], w.to(torch.float64), 0.0)
    return own.sum(dim=1).cpu().numpy()  # not a product: zero times infinity is no zero


def _by_method(name: str) -> Callable[..., Any]:
    def function(self: Any, a: Any, *more: Any, **options: Any) -> Any:
        known = not more and set(_OPTIONS.get(name, ())) >= set(options)
        return getattr(a, name)(**options) if known and hasattr(a, name) else NotImplemented

    return function


_OPTIONS = {
    "sum": ("axis", "keepdims"),
    "max": ("axis", "keepdims", "initial"),
    "min": ("initial",),
}
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


# --- transport -----------------------------------------------------------------------------------


def torch_library() -> Any:
    """Return torch, which is imported by no one who has no tensor."""
    import torch  # noqa: PLC0415  is there: the rows are a tensor

    return torch


def bring_numbers(tensor: Any) -> Array:
    """Return a tensor of a card as an array."""
    from mercer.rows.staging import bring  # noqa: PLC0415  needs torch, which is there

    return np.asarray(bring(tensor).numpy())
