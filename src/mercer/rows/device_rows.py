"""Rows on a GPU and their transpose, with NumPy's operators; other operations run on the host."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from mercer.array_types import Array
from mercer.rows.device_arrays import LONG, CardArray, bring_numbers, torch_library

# --- operators -----------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound=type)


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


def is_matrix(value: Any) -> bool:
    """Return whether a value is numbers of float64: a vector, or a matrix on the host."""
    if isinstance(value, CardArray):
        return True
    return isinstance(value, np.ndarray) and value.ndim in (1, 2) and value.dtype == np.float64


def there_or_here(there: Callable[[], Any], here: Callable[[], Any]) -> Any:
    """Return what is made on the card; of a card that is full, the same made on the host."""
    try:
        return there()
    except torch_library().cuda.OutOfMemoryError:
        return here()


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
