"""Choice of device, transfers, block sizes, and long arrays that stay on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import torch

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.contract import LongArrays
from mercer.resources import MemoryBudgetError, format_bytes, is_full_card, rows_at_once
from mercer.rows.staging import bring, send

# --- device --------------------------------------------------------------------------------------
#
# Where tensors lie, how large a block of a matrix may be there, and what follows if it was not.

T = TypeVar("T")

_CARD_ENTRIES = 1 << 28  # of a block: 2 GB in float64, enough to fill any card
_HOST_ENTRIES = 1 << 20  # of a block: stays near the caches of a processor
_LEAST_ENTRIES = 1 << 14  # a card that has no room for so few has room for nothing
_UNASKED = 1 << 23  # of all: so few are tried before a card is asked, for a millisecond
_COPIES = 6  # of a block: what a formula and the comparison of rows hold at once
_SHARE = 0.5  # of what is free on the card: what rows may take that stay there
_FLOAT64_CORES = ((8, 0), (9, 0), (10, 0))  # compute capabilities: A100, H100 and H200, B200
_INT8_CORES = (8, 0)  # the first compute capability whose libraries multiply 8-bit integers
_TYPES = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}


@dataclass(frozen=True)
class Device:
    """One place for tensors.

    Attributes
    ----------
    name : str
        As torch names it: "cpu", "cuda", "cuda:1".
    """

    name: str

    @property
    def is_card(self) -> bool:
        """Whether it is not the processor that Python runs on."""
        return not self.name.startswith("cpu")

    @property
    def has_float64_cores(self) -> bool:
        """Whether tensor cores multiply float64: ten times and more what other cards do."""
        if not self.name.startswith("cuda"):
            return False
        return torch.cuda.get_device_capability(self.name) in _FLOAT64_CORES

    @property
    def has_int8_cores(self) -> bool:
        """Whether tensor cores multiply 8-bit integers, and torch knows how to ask for it."""
        if not self.name.startswith("cuda") or not hasattr(torch, "_int_mm"):
            return False
        return bool(torch.cuda.get_device_capability(self.name) >= _INT8_CORES)

    def put(self, array: Array, dtype: Any = None) -> torch.Tensor:
        """Copy an array there."""
        array = np.ascontiguousarray(array, dtype=dtype)
        # torch warns of memory it must not write to, and knows no negative strides
        if not array.flags.writeable or min(array.strides, default=0) < 0:
            array = np.array(array, order="C")
        tensor = torch.from_numpy(array)
        return send(tensor, self.name) if self.is_card else tensor

    def empty(self, shape: tuple[int, ...], dtype: Any) -> torch.Tensor:
        """Return an uninitialised tensor there."""
        return torch.empty(shape, dtype=dtype, device=self.name)

    def free(self) -> int:
        """Return the bytes that are free, with those that torch keeps for later."""
        unused, _ = torch.cuda.mem_get_info(self.name)
        # the plain words for both, `memory_reserved` and `memory_allocated`, sort 200 numbers each
        kept = torch.cuda.memory_stats_as_nested_dict(self.name)
        both = [kept.get(f"{kind}_bytes", {}).get("all", {}) for kind in ("reserved", "allocated")]
        reserved, taken = (part.get("current", 0) for part in both)
        return int(unused + reserved - taken)

    def has_room(self, size: float) -> bool:
        """Return whether rows of so many bytes may stay there."""
        return not self.is_card or size <= _SHARE * self.free()

    def block_entries(self) -> int:
        """Return how many entries of a matrix may be evaluated at a time."""
        if self.is_card:
            return max(_LEAST_ENTRIES, min(_CARD_ENTRIES, self.free() // (8 * _COPIES)))
        return rows_at_once(1, _HOST_ENTRIES, arrays=_COPIES)

    def in_blocks(self, work: Callable[[int], T], what: str, every: float = np.inf) -> T:
        """Return work(entries) with blocks of so many entries: of half as many when they are full.

        Parameters
        ----------
        work : callable
            Gets the number of entries of a block; starts anew when it is called again.
        what : str
            What takes the memory, for the message if nothing helps.
        every : float
            Entries that there are in all, where that is known.

        Raises
        ------
        MemoryBudgetError
            If the card has no room even for small blocks. The process goes on.
        """
        few = self.is_card and every <= _UNASKED
        entries = max(_LEAST_ENTRIES, int(every)) if few else self.block_entries()
        while True:
            try:
                return work(entries)
            except RuntimeError as error:
                if not is_full_card(error):
                    raise
                if entries <= _LEAST_ENTRIES:
                    raise MemoryBudgetError(
                        f"{what} does not fit the device {self.name!r}, where "
                        f"{format_bytes(self.free())} are free, even in small blocks. Let go of "
                        "tensors that are held there, or take another device."
                    ) from error
                entries = max(_LEAST_ENTRIES, entries // 4)
            torch.cuda.empty_cache()

    def once(self, work: Callable[[], T], size: float, what: str) -> T:
        """Return work() of something that cannot be had in blocks; say so where it has no room.

        Parameters
        ----------
        work : callable
            Takes the memory; what it took is let go when it fails.
        size : float
            Bytes that it takes.
        what : str
            What they are for.

        Raises
        ------
        MemoryBudgetError
            If the card has no room. The process goes on.
        """
        try:
            return work()
        except RuntimeError as error:
            if not is_full_card(error):
                raise
            torch.cuda.empty_cache()
            raise MemoryBudgetError(
                f"{what} needs {format_bytes(size)} on the device {self.name!r}, where "
                f"{format_bytes(self.free())} are free. Let go of tensors that are held there, or "
                "take another device."
            ) from error


def to_host(tensor: torch.Tensor) -> Array:
    """Return a NumPy array."""
    return np.asarray(bring(tensor).numpy())


def tensor_type(dtype: Any) -> Any:
    """Return torch's name of a NumPy type, float32 or float64."""
    if np.dtype(dtype) not in _TYPES:
        raise TypeError(f"kernel matrices are float32 or float64, not {np.dtype(dtype)}")
    return _TYPES[np.dtype(dtype)]


def parts(count: int, height: int) -> Iterator[slice]:
    """Cover a range by parts of a height; deadlines hold between them, and Ctrl-C."""
    for start in range(0, count, max(1, height)):
        deadline.check()
        yield slice(start, min(count, start + max(1, height)))


def into_float32_range(V: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale columns by powers of two so that their largest entries are near 1; in float32."""
    largest = V.abs().amax(dim=0) if len(V) else V.new_zeros(V.shape[1])
    finite = (largest > 0) & largest.isfinite()
    scales = torch.ldexp(torch.ones_like(largest), torch.where(finite, largest, 1.0).frexp()[1])
    return (V / scales).to(torch.float32), scales


@contextmanager
def full_float32() -> Iterator[None]:
    """Multiply float32 by float32 with all its bits, whatever a user's program asks torch for.

    Products that torch makes of 10 bits (TF32) are no float32 to those who bound their rounding.
    """
    _FULL.enter()
    try:
        yield
    finally:
        _FULL.leave()


class _FullFloat32:
    """Torch's setting, which all threads share: the first changes it, the last puts it back."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, None

    def enter(self) -> None:
        settings, name, plain = self._setting()
        with self._lock:
            if not self._inside:
                self._before = getattr(settings, name)
            self._inside += 1
            setattr(settings, name, plain)

    def leave(self) -> None:
        settings, name, _ = self._setting()
        with self._lock:
            self._inside -= 1
            if not self._inside:
                setattr(settings, name, self._before)

    @staticmethod
    def _setting() -> tuple[Any, str, Any]:
        settings: Any = torch.backends.cuda.matmul
        newer = hasattr(settings, "fp32_precision")
        return (settings, "fp32_precision", "ieee") if newer else (settings, "allow_tf32", False)


_FULL = _FullFloat32()


def choose_devices(names: str | None) -> list[Device]:
    """Return the devices of names with commas between them; see `choose_device`.

    Examples
    --------
    >>> choose_devices("cpu,cpu")
    [Device(name='cpu'), Device(name='cpu')]
    """
    return [choose_device(name) for name in (names.split(",") if names else [None])]


def choose_device(name: str | None) -> Device:
    """Return the device of a name; the first card, or the CPU without one, where none is named.

    Examples
    --------
    >>> choose_device("cpu")
    Device(name='cpu')
    """
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return Device("cuda:0" if cards else "cpu")
    number = int(name.partition(":")[2] or 0)
    if name.startswith("cuda"):
        if number >= cards:
            raise RuntimeError(
                f"device={name!r} is not there: torch sees {cards} card(s). Use device='cpu', or "
                "an installation of torch that fits the card's driver."
            )
        return Device(f"cuda:{number}")
    return Device("cpu")


# --- device arrays -------------------------------------------------------------------------------
#
# Arrays with one long side that stay on a device.


@dataclass(frozen=True)
class DeviceArrays(LongArrays):
    """float64 tensors.

    Attributes
    ----------
    device : Device
        Where they lie.
    """

    device: Device

    def empty(self, rows: int, n: int) -> Any:
        """Take memory of the device."""
        return self.device.empty((rows, n), torch.float64)

    def has_room(self, size: float) -> bool:
        """Ask the device."""
        return self.device.has_room(size)

    def put(self, A: Any) -> Any:
        """Copy a tensor there, or send an array."""
        if torch.is_tensor(A):
            return A.to(torch.float64, copy=True)
        return self.device.put(np.array(A, dtype=np.float64))

    def lent(self, A: Array) -> Any:
        """Send an array."""
        return self.device.put(A, np.float64)

    def get(self, A: Any) -> Array:
        """Bring a tensor."""
        return to_host(A)

    def turned(self, A: Any) -> Any:
        """Write the transpose out."""
        return A.T.contiguous()

    def squared_lengths(self, W: Any) -> Array:
        """Add up there."""
        return to_host(W.square().sum(dim=0))

    def rounded(self, A: Any) -> Any:
        """Round there."""
        return A.to(torch.float32)

    def take_off(self, W: Any, V: Any, out: Any) -> None:
        """Multiply there, float32 with all its bits."""
        with full_float32():
            out -= W @ (W.T @ V.to(W.dtype))
