"""Rows and long vectors on a GPU, with NumPy's operators, transposes and copies to the host."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
from types import EllipsisType
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from mercer.array_types import Array

# --- transport -----------------------------------------------------------------------------------
#
# Between a card and the host: numbers that are brought, and work for which a card has no room.


def there_or_here(there: Callable[[], Any], here: Callable[[], Any]) -> Any:
    """Return what is made on the card; of a card that is full, the same made on the host."""
    try:
        return there()
    except torch_library().cuda.OutOfMemoryError:
        return here()


def torch_library() -> Any:
    """Return torch, which is imported by no one who has no tensor."""
    import torch  # noqa: PLC0415  is there: the rows are a tensor

    return torch


def bring_numbers(tensor: Any) -> Array:
    """Return a tensor of a card as an array."""
    from mercer.rows.staging import bring  # noqa: PLC0415  needs torch, which is there

    return np.asarray(bring(tensor).numpy())


# --- operators -----------------------------------------------------------------------------------
#
# NumPy's operators for rows on a card, by the copy of them on the host.

Kind = TypeVar("Kind", bound=type)


def is_matrix(value: Any) -> bool:
    """Return whether a value is numbers of float64: a vector, or a matrix on the host."""
    if isinstance(value, CardArray):
        return True
    return isinstance(value, np.ndarray) and value.ndim in (1, 2) and value.dtype == np.float64


def host_of(value: Any) -> Any:
    """Return rows on a card, or their transpose, on the host; anything else as it is."""
    return value.on_host() if hasattr(value, "on_host") else value


def with_operators(kind: Kind) -> Kind:
    """Give a class that has `on_host` the operators of arrays."""
    for name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv"):
        setattr(kind, f"__{name}__", _operators_by_host(getattr(operator, name)))
        setattr(kind, f"__r{name}__", _operators_by_host(getattr(operator, name), reflected=True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne", "neg"):
        setattr(kind, f"__{name}__", _operators_by_host(getattr(operator, name)))
    kind.__hash__ = object.__hash__  # type: ignore[method-assign, assignment]
    return kind


def _operators_by_host(verb: Callable[..., Any], *, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        mine = [self.on_host(), *map(host_of, others)]
        return verb(*(reversed(mine) if reflected else mine))

    return method


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


# --- transpose -----------------------------------------------------------------------------------
#
# The transpose of rows on a card.


@with_operators
class TransposedRows:
    """The transpose of rows on a card: multiplied there; anything else is asked of the host.

    Parameters
    ----------
    rows : CardRows
        The rows.
    """

    __array_priority__ = 1000.0  # so that NumPy's operators leave it to those below

    def __init__(self, rows: CardRows) -> None:
        self.rows, self.shape, self.dtype = rows, rows.shape[::-1], rows.dtype

    def __abs__(self) -> Any:
        return there_or_here(  # as much once more: a card may not have it
            lambda: TransposedRows(type(self.rows)(self.rows.tensor.abs())),
            lambda: np.abs(self.on_host()),
        )

    def on_host(self) -> Array:
        """Return the transpose in the memory of the processor."""
        return self.rows.on_host().T

    def __matmul__(self, other: Any) -> Any:
        return self._product(other) if is_matrix(other) else self.on_host() @ host_of(other)

    def __rmatmul__(self, other: Any) -> Any:
        return (self.rows @ other.T).T if is_matrix(other) else host_of(other) @ self.on_host()

    def _product(self, right: Any) -> Array:
        """Multiply in float64, sums over blocks of rows that are not; brought to the host."""
        tensor, right = self.rows.tensor, self.rows.sent(right)
        if tensor.dtype == right.dtype:
            return bring_numbers(tensor.T @ right)
        total = right.new_zeros((tensor.shape[1], *right.shape[1:]))
        for part in self.rows.parts():
            total += tensor[part].to(right.dtype).T @ right[part]
        return bring_numbers(total)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self.on_host()[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.on_host(), dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"the transpose of rows on a card has no {name!r}")
        return getattr(self.on_host(), name)


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


# --- rows ----------------------------------------------------------------------------------------
#
# Rows that lie on a card: what a fit asks of all of them is answered there.
#
# A fit looks at its rows before it works with them: are they finite, how far do columns reach,
# which rows are equal. Rows on a card answer these questions in the words of NumPy, from one pass
# each, and some of them are taken there. Whatever else is asked of them is asked of a copy in the
# memory of the processor, which is made when it is first needed.

_ENTRIES = 1 << 26  # of products that are held at once: half a gigabyte
_FLOATS: dict[str, Any] = {
    "torch.float32": np.dtype(np.float32),
    "torch.float64": np.dtype(np.float64),
}


@with_operators
class CardRows:
    """Dense rows on a card.

    Parameters
    ----------
    tensor : (n, d) tensor
        float32 or float64, rows one after the other.
    host : (n, d) array, optional
        The same rows on the host, where they are known there.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> rows = CardRows(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).cuda())  # doctest: +SKIP
    >>> rows.max(axis=0)  # doctest: +SKIP
    array([3., 4.], dtype=float32)
    """

    ndim = 2
    __array_priority__ = 1000.0  # so that NumPy's operators leave it to those below

    def __init__(self, tensor: Any, host: Array | None = None) -> None:
        self.tensor, self._host = tensor, host
        self._is_given = host is not None
        self.shape: tuple[int, int] = tuple(tensor.shape)
        self.dtype = _FLOATS[str(tensor.dtype)]
        self._origin: tuple[Callable[[], CardRows | None], Array] | None = None
        self._brought: list[tuple[Array, Array]] = []

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """Count the entries."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes on the card."""
        return int(self.size * self.dtype.itemsize)

    def on_host(self) -> Array:
        """Return the rows in the memory of the processor, brought there once."""
        if self._host is None:
            self._host = self._from_origin()
        if self._host is None:
            self._host = bring_numbers(self.tensor)
            self._note()
        return self._host

    def forget_given(self) -> None:
        """Let go of an array of the caller's, who may change it from now on."""
        if self._is_given:
            self._host, self._is_given = None, False
        self._origin = None

    # --- what is known on the host of the rows that some were taken from ---------------------
    #
    # A fit brings its support vectors class by class, and then all of them. As long as the rows
    # that they were taken from are there, what is known of these is not brought again.

    def _of(self, rows: CardRows, index: Any) -> CardRows:
        """Remember which rows of others these are; not who has them, or they would stay."""
        origin, numbers = rows._origin or (ref(rows), np.arange(len(rows)))
        self._origin = origin, numbers[index]
        return self

    def _from_origin(self) -> Array | None:
        """Gather what is known on the host of the rows that these were taken from."""
        if self._origin is None:
            return self._known(np.arange(len(self))) if self._brought else None
        origin, numbers = self._origin
        whole = origin()
        return None if whole is None else whole._known(numbers)

    def _known(self, numbers: Array) -> Array | None:
        """Return some rows where all of them are known on the host."""
        if self._host is not None:
            return _rows_of(self._host, numbers)
        if len(self._brought) == 1 and len(numbers):
            part, rows = self._brought[0]
            place = np.full(len(self), -1)
            place[part] = np.arange(len(part))
            return None if (place[numbers] < 0).any() else _rows_of(rows, place[numbers])
        place, owner = np.full((2, len(self)), -1)
        for k, (part, _) in enumerate(self._brought):
            place[part], owner[part] = np.arange(len(part)), k
        if not len(numbers) or (owner[numbers] < 0).any():
            return None
        found = np.empty((len(numbers), self.shape[1]), dtype=self.dtype)
        for k, (_, rows) in enumerate(self._brought):
            mine = np.flatnonzero(owner[numbers] == k)
            found[mine] = _rows_of(rows, place[numbers[mine]])
        return found

    def _note(self) -> None:
        """Tell the rows that these were taken from what was brought."""
        whole = None if self._origin is None else self._origin[0]()
        if whole is not None and self._origin is not None and self._host is not None:
            whole._brought.append((self._origin[1], self._host))

    def copied(self) -> CardRows:
        """Return a copy on the card."""
        return CardRows(self.tensor.clone())

    def __getitem__(self, index: Any) -> Any:
        """Take rows, or columns of all rows, on the card; anything else on the host."""
        where = index if isinstance(index, tuple) else (index,)
        if isinstance(where[0], int | np.integer):  # of one row the numbers
            row = np.asarray(self.tensor[int(where[0])].cpu().numpy())
            return row[where[1:]] if len(where) > 1 else row
        if isinstance(index, CardArray):
            return there_or_here(
                lambda: CardRows(self.tensor[index.tensor]),
                lambda: self.on_host()[index.on_host()],
            )
        several = len(where) > 2 or sum(isinstance(part, np.ndarray) for part in where) > 1
        if all(map(_is_many, where)) and not several:  # two arrays would meet entry by entry
            return there_or_here(lambda: self._taken(where), lambda: self.on_host()[index])
        return self.on_host()[index]

    def _taken(self, where: tuple[Any, ...]) -> CardRows:
        rows, *columns = map(self._numbers, where)
        found = self.tensor[rows]
        if columns:
            return CardRows(found[:, columns[0]].contiguous())
        return CardRows(found.contiguous())._of(self, where[0])

    def _numbers(self, index: Any) -> Any:
        if isinstance(index, slice):
            return index
        torch = torch_library()
        if index.dtype != bool:
            index = index.astype(np.int64)
        return torch.from_numpy(np.ascontiguousarray(index)).to(self.tensor.device)

    # --- the same rows in another form, on the card ----------------------------------------------

    def astype(self, dtype: Any, copy: bool = True, **options: Any) -> Any:
        """Return the rows in float32 or float64, on the card; in other types on the host."""
        kinds = [name for name, kind in _FLOATS.items() if kind == np.dtype(dtype)]
        if options or not kinds:
            return self.on_host().astype(dtype, copy=copy, **options)
        if self.dtype == np.dtype(dtype):
            return self.copied() if copy else self
        kind = getattr(torch_library(), kinds[0].removeprefix("torch."))
        return there_or_here(
            lambda: CardRows(self.tensor.to(kind)), lambda: self.on_host().astype(dtype)
        )

    def below(self, other: CardRows) -> Any:
        """Return these rows, and others below."""
        return there_or_here(
            lambda: CardRows(torch_library().cat([self.tensor, other.tensor])),
            lambda: np.concatenate([self.on_host(), other.on_host()]),
        )

    def from_origin(self, origin: Array) -> Any:
        """Return the rows less one of them, or less a mean, in float64."""
        return there_or_here(
            lambda: CardRows(self.tensor - self.sent(origin)), lambda: self.on_host() - origin
        )

    def __abs__(self) -> Any:
        return there_or_here(lambda: CardRows(self.tensor.abs()), lambda: np.abs(self.on_host()))

    @property
    def T(self) -> TransposedRows:
        """The transpose, which can be multiplied."""
        return TransposedRows(self)

    # --- products: the rows stay, what they are multiplied by and the result travel --------------

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, TransposedRows):
            other = other.rows.tensor.T
        elif not is_matrix(other):
            return self.on_host() @ host_of(other)
        return self._product(other)

    def __rmatmul__(self, other: Any) -> Any:
        if not is_matrix(other):
            return host_of(other) @ self.on_host()
        return self.T._product(other.T).T

    def _product(self, right: Any) -> Array:
        """Multiply in float64, blocks of rows that are not; brought to the host."""
        right = self.sent(right)
        if self.tensor.dtype == right.dtype:
            return bring_numbers(self.tensor @ right)
        found = [self.tensor[part].to(right.dtype) @ right for part in self.parts()]
        return bring_numbers(
            torch_library().cat(found) if found else self.tensor.to(right.dtype) @ right
        )

    def image(self, W: Array) -> Any:
        """Return the rows times W (d,) or (d, k), in float64; of many rows it stays on the card."""
        if len(self) < LONG or self.tensor.dtype != torch_library().float64:
            return self @ W
        return CardArray(self.tensor @ self.sent(W))

    def squared_lengths(self) -> Array:
        """Return the squared length of each row, in float64."""
        torch = torch_library()
        found = torch.empty(len(self), dtype=torch.float64, device=self.tensor.device)
        for part in self.parts():
            found[part] = self.tensor[part].to(torch.float64).square().sum(dim=1)
        return bring_numbers(found)

    def parts(self) -> list[slice]:
        """Return the rows in blocks whose products a card has room for."""
        height = max(1, _ENTRIES // max(1, self.shape[1]))
        return [slice(first, first + height) for first in range(0, len(self), height)]

    def sent(self, array: Any) -> Any:
        """Return numbers of the host in float64 on the card; those that are there as they are."""
        torch = torch_library()
        if isinstance(array, torch.Tensor | CardArray):
            there = array if isinstance(array, torch.Tensor) else array.tensor
            return there.to(torch.float64)
        from mercer.rows.staging import send  # noqa: PLC0415  needs torch, which is there

        there = torch.from_numpy(np.array(array, dtype=np.float64, order="C"))
        return send(there, str(self.tensor.device))

    # --- questions about all rows ----------------------------------------------------------------

    @cached_property
    def _range(self) -> tuple[Array, Array]:
        low, high = self.tensor.aminmax(dim=0)
        return low.cpu().numpy(), high.cpu().numpy()

    def min(self, axis: int | None = None, **options: Any) -> Any:
        """Return the smallest entries of columns, or of all."""
        if options or axis not in (None, 0) or not self.size:
            return self.on_host().min(axis=axis, **options)
        return self._range[0].min() if axis is None else self._range[0].copy()

    def max(self, axis: int | None = None, **options: Any) -> Any:
        """Return the largest entries of columns, of rows, or of all."""
        if axis == 1 and not options and self.size:
            return bring_numbers(self.tensor.amax(dim=1))
        if options or axis not in (None, 0) or not self.size:
            return self.on_host().max(axis=axis, **options)
        return self._range[1].max() if axis is None else self._range[1].copy()

    @cached_property
    def _totals(self) -> Array:
        return np.asarray(self.tensor.sum(dim=0, dtype=torch_library().float64).cpu().numpy())

    def sum(self, axis: int | None = None, dtype: Any = None, **options: Any) -> Any:
        """Add up columns, or all entries; on the card where float64 is asked for."""
        if options or axis not in (None, 0) or dtype is not np.float64:
            return self.on_host().sum(axis=axis, dtype=dtype, **options)
        return self._totals.sum() if axis is None else self._totals.copy()

    def mean(self, axis: int | None = None, dtype: Any = None, **options: Any) -> Any:
        """Average columns; on the card where float64 is asked for."""
        if options or axis != 0 or dtype is not np.float64 or not self.size:
            return self.on_host().mean(axis=axis, dtype=dtype, **options)
        return self._totals / len(self)

    def projected(self, direction: Array) -> Any:
        """Return x'direction in float64, the same to the last bit for equal rows.

        Halves are added to halves, entry by entry: unlike sums, whose order depends on where a row
        begins.
        """
        return there_or_here(
            lambda: np.asarray(self._keys(direction).cpu().numpy()),
            lambda: (self.on_host() * direction).sum(axis=1),
        )

    def order_along(self, direction: Array, labels: Array) -> Any:
        """Return the order of rows by label, then by x'direction.

        None if two rows have both in common, or where there is no room.
        """

        def order() -> Array | None:
            keys = torch_library().nan_to_num(self._keys(direction)).sort()
            there = CardArray.beside(self.tensor, labels).tensor[keys.indices].sort(stable=True)
            repeated = (keys.values[there.indices].diff() == 0) & (there.values.diff() == 0)
            return None if bool(repeated.any()) else bring_numbers(keys.indices[there.indices])

        return there_or_here(order, lambda: None)

    def _keys(self, direction: Array) -> Any:
        towards, keys = torch_library().from_numpy(direction).to(self.tensor.device), []
        for part in self.parts():
            products = self.tensor[part] * towards
            while (width := products.shape[1]) > 1:
                products[:, : width // 2] += products[:, (width + 1) // 2 :]
                products = products[:, : (width + 1) // 2]
            keys.append(products.sum(dim=1))
        return torch_library().cat(keys) if keys else towards[:0]

    # --- everything else: NumPy's --------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = self.on_host() if dtype is None else self.on_host().astype(dtype, copy=False)
        return found.copy() if copy and found is self._host else found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"rows on a card have no {name!r}")
        return getattr(self.on_host(), name)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.array, (self.on_host(),)  # whoever reads it may have no such device


def _rows_of(array: Array, numbers: Array) -> Array:
    """Copy some rows, by all cores where torch can: support vectors are megabytes."""
    if not (array.flags.c_contiguous and array.flags.writeable):
        return np.asarray(array[numbers])
    torch = torch_library()
    # memory of NumPy's, which asks for large pages: they are given hundreds of times as fast
    found = np.empty((len(numbers), *array.shape[1:]), dtype=array.dtype)
    there, index, out = map(torch.from_numpy, (array, numbers, found))
    torch.index_select(there, 0, index, out=out)
    return found


def _is_many(index: Any) -> bool:
    """Return whether an index is a slice or an array of one axis, of numbers or a mask."""
    if isinstance(index, slice):
        return index.step is None or index.step > 0
    return isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind in "iub"
