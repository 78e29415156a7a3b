"""Rounds of working sets for many box QPs: state, streams, and batches that fit the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.box_programs import Form
from mercer.backends.torch.device import Device
from mercer.backends.torch.nvrtc import begin, kernel
from mercer.backends.torch.svm.cuda import FOLLOW, GROUPS, SOLVE, follow_text, solve_text
from mercer.backends.torch.svm.programs import DeviceQPs, prepared
from mercer.resources import MemoryBudgetError, format_bytes

# --- rounds --------------------------------------------------------------------------------------
#
# Rounds of sets: where all programmes stand on the card, and the two kernels that move them.

Tensor: TypeAlias = torch.Tensor

_SETS = (192, 128, 64)  # variables of a set: the first that the card has room for
_FIXED = 34 << 10  # bytes of shared memory beside K between the variables of a set
# What of the present violation a set is solved to, and its pair steps at most. For 500 programmes
# of 8000 variables these are faster than (0.3, 128), (0.2, 192), (0.15, 256) and (0.1, 384): fewer
# rounds of more steps, but all programmes of a round wait for the last one's.
_SHARE, _INNER = 0.15, 192
_THREADS = 512  # of a block that solves a set; one warp makes the steps, all gather K
_NARROWEST = 32  # variables of a group at least: a warp


class DeviceRounds:
    """Where all programmes stand on the card, and the two kernels that move them.

    Parameters
    ----------
    matrices : sequence of (n, n) float32 tensors
        What the programmes read.
    programmes : Programmes
        What is moved.
    tol : float or array
        Largest violation at the end, of all or of each.
    limit : int
        Pair steps of each programme.
    """

    def __init__(
        self,
        matrices: Sequence[Tensor],
        programmes: DeviceQPs,
        tol: float | Array,
        limit: int,
    ) -> None:
        K = self._K = matrices[0]
        self._programmes, self._limit = programmes, limit
        number, largest = len(programmes.sizes), max(programmes.sizes)
        own = np.zeros(number, dtype=int) if programmes.matrix is None else programmes.matrix
        addresses = np.array([one.data_ptr() for one in matrices], dtype=np.uint64)[own]
        self._addresses = torch.from_numpy(addresses.view(np.int64)).to(K.device)
        strides = np.array([one.stride(0) for one in matrices], dtype=np.int32)[own]
        self._strides = torch.from_numpy(strides).to(K.device)
        self._tols = torch.from_numpy(np.broadcast_to(tol, number).astype(float)).to(K.device)
        self._width = _width_of(largest)
        self._groups = -(-largest // self._width)
        size = _size_of_sets(K.device)
        tube, shifted = programmes.epsilon is not None, programmes.shift is not None
        sums = 1 if programmes.sums is None else 2
        self._threads = _threads_of(self._width)
        if K.is_cuda:
            begin_kernels(K.device, Form(largest, sums, tube, shifted))
        self._follow = _follow_kernel(self._threads, size, sums, tube, K.device.index)
        self._solve = _solve_kernel(size, sums, tube, shifted, K.device.index)
        self._all = torch.arange(number, dtype=torch.int32, device=K.device)
        self._finished, self._counts, self._sizes, self._steps = (
            self._ints(number) for _ in "1234"
        )
        self._members, self._moved = (self._ints(number * size) for _ in "12")
        self._moves = self._doubles(number * size)
        places = 2 * sums * number * GROUPS
        self._numbers, self._values = self._ints(places), self._doubles(places)
        self._violations, self._none = self._doubles(number), self._doubles(1)
        self._shared = _shared_by(size)

    def _ints(self, count: int) -> Tensor:
        return torch.zeros(count, dtype=torch.int32, device=self._K.device)

    def _doubles(self, count: int) -> Tensor:
        return torch.zeros(count, dtype=torch.float64, device=self._K.device)

    def chosen(self, going: Array) -> Tensor:
        """Send the numbers of some programmes."""
        numbers = torch.from_numpy(going.astype(np.int32))
        pinned = numbers.pin_memory() if self._K.is_cuda else numbers
        return pinned.to(self._K.device, non_blocking=True)

    def launch(self, rounds: int, some: Tensor, limit: int | None = None) -> None:
        """Start so many rounds of some programmes, one after another."""
        p, active = self._programmes, len(some)
        given = (p.epsilon, p.sums, p.shift)
        epsilon, sums, shift = (self._none if one is None else one for one in given)
        head = [self._addresses, self._strides, some, p.begin, p.rows, p.lower, p.upper]
        moves = [self._finished, self._counts, self._moved, self._moves]
        found = [self._values, self._numbers]
        follow = [*head, epsilon, sums, p.b, p.F, *moves, *found, self._width]
        ends = [self._members, self._sizes, self._steps, self._violations, self._width]
        solve = [*head, epsilon, sums, shift, p.b, p.F, *moves, *found, *ends, self._tols]
        solve += [_SHARE, _INNER, self._limit if limit is None else limit]
        with _at(self._K):
            start_follow = prepared(self._follow, follow, self._threads)
            start_solve = prepared(self._solve, solve, _THREADS, self._shared)
            for _ in range(rounds):
                start_follow((self._groups, active, 1))
                start_solve((active, 1, 1))

    def close(self) -> None:
        """Let F of all programmes follow their last steps, and measure the violations."""
        self.launch(1, self._all, limit=0)

    def look(self) -> Look:
        """Ask where all programmes stand, without waiting for the answer."""
        ended = [self._finished.double(), self._steps.double(), self._violations]
        return Look(torch.stack(ended))


class Look:
    """Numbers on their way to the host."""

    def __init__(self, numbers: Tensor) -> None:
        self._host = torch.empty(
            numbers.shape, dtype=numbers.dtype, device="cpu", pin_memory=numbers.is_cuda
        )
        self._host.copy_(numbers, non_blocking=True)
        self._event = torch.cuda.Event() if numbers.is_cuda else None
        if self._event is not None:
            self._event.record(torch.cuda.current_stream(numbers.device))

    def read(self) -> Look:
        """Wait for them."""
        if self._event is not None:
            self._event.synchronize()
        return self

    @property
    def finished(self) -> Array:
        """Which programmes are at their end."""
        return np.asarray(self._host[0].numpy())

    @property
    def steps(self) -> Array:
        """Pair steps of each programme."""
        return np.asarray(self._host[1].numpy(), dtype=np.int64)

    @property
    def violations(self) -> Array:
        """The violation of each programme."""
        return np.asarray(self._host[2].numpy())


def _at(K: Tensor) -> Any:
    return torch.cuda.device(K.device if K.is_cuda else -1)


def _size_of_sets(device: Any) -> int:
    """Return the variables of a set: as many as a multiprocessor has room for.

    Smaller sets, two programmes on each, move as many rows in all, in more rounds.
    """
    room = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
    return next((s for s in _SETS if 4 * s * (s + 1) + _FIXED <= room), _SETS[-1])


@cache
def _follow_kernel(threads: int, size: int, sums: int, tube: bool, card: int) -> Any:
    return kernel(follow_text(threads, size=size, sums=sums, tube=tube), FOLLOW, card)


@cache
def _solve_kernel(size: int, sums: int, tube: bool, shifted: bool, card: int) -> Any:
    text = solve_text(_THREADS, size=size, sums=sums, tube=tube, shifted=shifted)
    return kernel(text, SOLVE, card, _shared_by(size))


def begin_kernels(device: Any, form: Form) -> None:
    """Compile the kernels of programmes that will be moved, without waiting for them.

    Parameters
    ----------
    device : torch.device
        The card.
    form : Form
        What the programmes have.
    """
    size, (_, sums, tube, shifted) = _size_of_sets(device), form
    threads = _threads_of(_width_of(form.largest))
    begin(follow_text(threads, size=size, sums=sums, tube=tube), FOLLOW, device.index)
    text = solve_text(_THREADS, size=size, sums=sums, tube=tube, shifted=shifted)
    begin(text, SOLVE, device.index, _shared_by(size))


def _width_of(largest: int) -> int:
    """Return the variables of a group, for so many of the largest programme."""
    return max(_NARROWEST, 1 << int(np.ceil(np.log2(max(1.0, largest / GROUPS)))))


def _threads_of(width: int) -> int:
    return min(width, 1024)


def _shared_by(size: int) -> int:
    """Return the bytes of K between the variables of a set."""
    return 4 * size * (size + 1)


# --- strands -------------------------------------------------------------------------------------
#
# Strands: groups of programmes whose rounds run beside those of other groups.
#
# In a round, all programmes of a strand wait for one another twice: for the steps of their sets,
# made by one warp each while the memory is idle, and for the rows of K, read while most threads
# wait. So rounds of several strands on streams of their own fill one another's gaps.

Streams: TypeAlias = Sequence[Any]

_STRANDS = 4  # at once, and ...
_LEAST = 16  # ... programmes of each at least: fewer leave most of a card idle in any case


class Strand:
    """Some programmes whose rounds follow one another.

    Parameters
    ----------
    rounds : Rounds
        Where all programmes stand.
    numbers : int array
        Which of them are in this strand.
    stream : torch.cuda.Stream or None
        Where its rounds are started; None where there is no card.
    """

    def __init__(self, rounds: DeviceRounds, numbers: Array, stream: Any) -> None:
        self.numbers, self._rounds, self._stream = numbers, rounds, stream
        self._seen: Look | None = None
        with torch.cuda.stream(stream):
            self._active = rounds.chosen(numbers)

    def advance(self, rounds: int) -> Look | None:
        """Start some more rounds; return what was a moment ago, unless these are the first.

        The card has work to do while the host reads.
        """
        with torch.cuda.stream(self._stream):
            self._rounds.launch(rounds, self._active)
            before, self._seen = self._seen, self._rounds.look()
        return None if before is None else before.read()

    def only(self, going: Array) -> None:
        """Go on with some of its programmes."""
        if len(going) < len(self.numbers):
            self.numbers = going
            with torch.cuda.stream(self._stream):
                self._active = self._rounds.chosen(going)


def split(rounds: DeviceRounds, going: Array, streams: Streams) -> list[Strand]:
    """Deal programmes to strands, after all that was started on any stream.

    Parameters
    ----------
    rounds : Rounds
        Where all programmes stand.
    going : int array
        Which of them go on; neighbours are in one strand.
    streams : sequence of torch.cuda.Stream
        Where they may run.
    """
    wait_for_all(streams)
    count = max(1, min(len(streams), len(going) // _LEAST))
    shares = np.array_split(going, count)
    return [Strand(rounds, some, on) for some, on in zip(shares, streams, strict=False)]


def wait_for_all(streams: Streams) -> None:
    """Let what is started later on any stream come after what was started so far on all."""
    if len(streams) > 1:
        for one in streams[1:]:
            streams[0].wait_stream(one)
        for one in streams[1:]:
            one.wait_stream(streams[0])


@contextmanager
def own_streams(K: Tensor) -> Iterator[Streams]:
    """Let what several threads ask for (folds of a search) run side by side on a card."""
    if not K.is_cuda:
        yield [None]
        return
    own = [torch.cuda.Stream(K.device) for _ in range(_STRANDS)]
    for one in own:
        one.wait_stream(torch.cuda.current_stream(K.device))
    try:
        with torch.cuda.stream(own[0]):
            yield own
    finally:  # nothing is let go of that a round still writes to
        for one in own:
            one.synchronize()


# --- turns ---------------------------------------------------------------------------------------
#
# As many programmes at a time as a card has room for.

S = TypeVar("S")
T = TypeVar("T")

_MORE = 4  # times as many turns, where a card that seemed to have room has none


def in_turns(
    work: Sequence[S],
    solve: Callable[[Sequence[S]], list[T]],
    needed: float,
    device: Device,
    what: str,
) -> list[T]:
    """Solve all at once, or some after others where they do not fit.

    Parameters
    ----------
    work : sequence
        What is to be solved.
    solve : callable
        Solves some of it, from the beginning; returns an answer for each.
    needed : float
        Bytes that all of it takes.
    device : Device
        Where.
    what : str
        What one of them is, for the message if nothing helps.

    Raises
    ------
    MemoryBudgetError
        If not even one fits. The process goes on.
    """
    free = float(device.free()) if device.is_card else needed
    turns = min(len(work), max(1, int(-(-needed // max(1.0, free)))))
    while True:
        each = -(-len(work) // max(1, turns))
        try:
            found: list[T] = []
            for first in range(0, len(work), max(1, each)):
                found += solve(work[first : first + each])
            return found
        except torch.cuda.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            if turns >= len(work):
                raise MemoryBudgetError(
                    f"{what} needs {format_bytes(needed / max(1, len(work)))} on the device "
                    f"{device.name!r} beside its kernel matrix, where "
                    f"{format_bytes(device.free())} are free. Let go of tensors that are held "
                    "there, or use backend='native'."
                ) from error
        turns = min(len(work), _MORE * turns)
