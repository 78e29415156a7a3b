"""Strands: groups of programmes whose rounds run beside those of other groups.

In a round, all programmes of a strand wait for one another twice: for the steps of their sets, made
by one warp each while the memory is idle, and for the rows of K, read while most threads wait. So
rounds of several strands on streams of their own fill one another's gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer.array_types import Array
from mercer.backends.torch.boxes.rounds import Look, Rounds

Tensor: TypeAlias = torch.Tensor
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

    def __init__(self, rounds: Rounds, numbers: Array, stream: Any) -> None:
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


def split(rounds: Rounds, going: Array, streams: Streams) -> list[Strand]:
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
