"""Rows on the workers of a Dask cluster, as blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mercer.blocks.base import Kept, RowBlocks
from mercer.distributed import tasks
from mercer.distributed.chunks import Chunks, aligned, row_chunks
from mercer.distributed.client import running_client
from mercer.distributed.errors import ClusterError
from mercer.distributed.placing import evened, grouped, holders_of, placed_on
from mercer.distributed.reading import block_size, placed_at, read_block, with_targets
from mercer.distributed.sending import Sending
from mercer.distributed.tasks import Held
from mercer.distributed.waiting import GONE, LostError, refuse_closed, result_of

T = TypeVar("T")

_FAN_IN = 8  # results that one task adds: a tree over 1000 blocks has four levels
_ATTEMPTS = 3  # to send anew what was lost with every worker that held it


class KeptThere(Kept):
    """Results on the workers, one for each block, and how they were made.

    Dask makes anew what is lost with a worker, from the tasks that led to it. Arguments that were
    lost with *all* workers that had them it cannot: then the calls are made once more from here.

    Parameters
    ----------
    futures : list of Future
        One for each block.
    calls : list of tuples
        (function, shared arguments): the first one of a block, the others of a block and its state.
    round : int
        How often all had been sent anew when these were made.
    sent : list of Future
        Arguments that the tasks above need if they are run again.
    """

    def __init__(
        self, futures: list[Any], calls: list[tuple[Any, ...]], round: int, sent: list[Any]
    ) -> None:
        self.futures, self.calls, self.round, self.sent = futures, calls, round, sent


class DaskBlocks(RowBlocks):
    """Rows of a Dask array or data frame, one block for each chunk, held by the workers.

    Functions of blocks run on the worker that holds the block. Results are added in a tree: first
    those of one worker, then across workers; only the last sum comes back. Arguments of up to a
    megabyte travel with the tasks, larger ones are sent to all workers once. No block passes the
    client or the scheduler.

    Parameters
    ----------
    X : dask array (n, d) or dask data frame
        Rows; chunks must hold whole rows.
    y : dask array or series, or array, optional
        Targets.
    weights : dask array or series, or array, optional
        How often each row counts.
    client : distributed.Client, optional
        The cluster; by default the client that is running.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from mercer.distributed import DaskBlocks
    >>> X = da.ones((6, 2), chunks=(2, 2))
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     DaskBlocks(X).total(len)
    6
    """

    def __init__(self, X: Any, y: Any = None, weights: Any = None, *, client: Any = None) -> None:
        self.client = running_client(client)
        chunks = row_chunks(X, y, weights)
        self.n_columns, self.dtype, self.names = chunks.n_columns, chunks.dtype, chunks.names
        self.chunks = chunks
        self.begin()

    def begin(self) -> None:
        """Begin with nothing sent, and have the blocks made."""
        self.round, self.sending = 0, Sending(self.client)
        self.sent: list[Any] = []  # what the blocks themselves were made with
        self.read()

    # --- rows ------------------------------------------------------------------------------------

    def read(self) -> None:
        """Let the workers read the chunks, and count the rows."""
        blocks = self.started()
        counts = self.client.map(block_size, blocks, pure=False, key="mercer-rows")
        sizes = self.wait_for_all(counts, blocks, [])
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()
        there = [b for b, size in enumerate(sizes) if size]
        if not there:
            raise ValueError("X has no rows (0 sample(s)); a minimum of 1 is required")
        if not self.has_sizes:
            blocks = self.client.map(
                placed_at, blocks, starts[:-1], pure=False, key="mercer-placed"
            )
        self.n_rows = starts[-1]
        self.sizes = [sizes[b] for b in there]
        self.hold([blocks[b] for b in there])

    def started(self) -> list[Any]:
        """Start reading, where Dask finds room or has the rows already."""
        return read_chunks(self.client, self.chunks)

    @property
    def has_sizes(self) -> bool:
        """Whether rows of blocks were counted before they are read."""
        return self.chunks.sizes is not None

    def hold(self, blocks: list[Any]) -> None:
        """Keep the blocks, look where they are, and let workers with few fetch some from others."""
        before = holders_of(self.client, blocks)
        after = evened(before, self.sizes, self.client.nthreads())
        self.blocks = list(blocks)
        for b, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                # a block of its own: Dask drops second copies of one
                self.blocks[b] = self.client.submit(
                    tasks.as_it_is, blocks[b], pure=False, **placed_on(new)
                )
        self.holders, self.groups = grouped(after)

    def with_targets(self, y: Any = None, weights: Any = None) -> DerivedBlocks:
        """Return the same rows with targets and weights, one entry for each row."""
        targets = aligned(y, "y", self.blocks, self.sizes)
        counts = aligned(weights, "sample_weight", self.blocks, self.sizes)

        def made(source: DaskBlocks) -> tuple[list[Any], list[Any]]:
            compute, blocks = source.client.compute, source.blocks
            cut = [compute(v) if v[0] is not None else v for v in (targets, counts)]
            numbers = list(range(len(blocks)))
            return source.at_blocks(with_targets, blocks, *cut, numbers, key="mercer-with"), []

        return DerivedBlocks(self, made)

    def mapped(self, function: Callable[..., Any], *shared: Any) -> DerivedBlocks:
        """Let the workers make other rows of theirs, and keep them."""

        def made(source: DaskBlocks) -> tuple[list[Any], list[Any]]:
            return source.parts(tasks.mapped, function, shared)

        new = DerivedBlocks(self, made)
        new.n_columns, new.dtype = new.gather(row_form)[0]
        new.names = None
        return new

    # --- verbs -----------------------------------------------------------------------------------

    def total(self, function: Callable[..., T], *shared: Any) -> T:
        """Add up over the blocks, in a tree of tasks."""
        found: T = self.attempted(lambda: self.added(*self.parts(tasks.applied, function, shared)))
        return found

    def gather(self, function: Callable[..., T], *shared: Any) -> list[T]:
        """Bring the results here."""

        def attempt() -> list[T]:
            parts, sent = self.parts(tasks.applied, function, shared)
            return self.wait_for_all(parts, [], sent)

        return self.attempted(attempt)

    def start(self, function: Callable[..., Any], *shared: Any) -> KeptThere:
        """Leave the results on the workers."""
        made, sent = self.parts(tasks.applied, function, shared)
        return KeptThere(made, [(function, *shared)], self.round, sent)

    def step(self, kept: Kept, function: Callable[..., Any], *shared: Any) -> tuple[KeptThere, Any]:
        """Change what the workers keep."""
        assert isinstance(kept, KeptThere)

        def attempt() -> tuple[KeptThere, Any]:
            old = self.renewed(kept)
            pairs, sent = self.parts(tasks.changed, function, shared, old.futures)
            new = self.at_blocks(tasks.state_of, pairs, key="mercer-state")
            results = self.at_blocks(tasks.result_of, pairs, key="mercer-result")
            sent = [*old.sent, *sent]
            total = self.added(results, sent)
            return KeptThere(new, [*old.calls, (function, *shared)], self.round, sent), total

        return self.attempted(attempt)

    # --- how they run ----------------------------------------------------------------------------

    def parts(
        self, task: Any, function: Any, shared: tuple[Any, ...], *own: Any
    ) -> tuple[list[Any], list[Any]]:
        """Start a task for each block; return their futures, and those of what was sent."""
        refuse_closed(self.client)
        call, large = self.sending.send(function, shared)
        key = f"mercer-{getattr(function, '__name__', 'call')}"
        made = self.at_blocks(task, self.blocks, *own, key=key, call=call, large=large)
        return made, [*self.sent, *large]

    def at_blocks(self, task: Any, *columns: list[Any], key: str, **shared: Any) -> list[Any]:
        """Start a task for each block, on the worker that holds it.

        Dask by itself would count the worker that has the call as near to every block, and give it
        more than its share. Others take the tasks of a worker that is gone.
        """
        made: list[Any] = [None] * len(self.blocks)
        for holder, group in zip(self.holders, self.groups, strict=True):
            own = [[column[b] for b in group] for column in columns]
            futures = self.client.map(
                task, *own, pure=False, key=key, **shared, **placed_on(holder)
            )
            for b, future in zip(group, futures, strict=True):
                made[b] = future
        return made

    def added(self, parts: list[Any], sent: list[Any]) -> Any:
        """Add results in a tree, those of one worker first, and bring the sum here."""
        made, holders = list(parts), self.holders
        own = [[parts[b] for b in group] for group in self.groups]
        while len(own) > 1 or len(own[0]) > _FAN_IN:
            if all(len(one) == 1 for one in own):  # one sum of each worker: now across them
                own, holders = [[one for (one,) in own]], [""]
                continue
            own = [
                self.client.map(
                    tasks.sum_of, cut(one), pure=False, key="mercer-sum", **placed_on(holder)
                )
                for holder, one in zip(holders, own, strict=True)
            ]
            made += [one for some in own for one in some]
        top = self.client.submit(tasks.sum_of, own[0], pure=False, key=None)
        return result_of(self.client, top, made, sent).value

    def wait_for_all(self, futures: list[Any], others: list[Any], sent: list[Any]) -> list[Any]:
        """Bring small results here, one for each block, in order."""
        together = self.client.submit(list, futures, pure=False)
        found: list[Held] = result_of(self.client, together, [*futures, *others], sent)
        return [one.value for one in found]

    def attempted(self, attempt: Callable[[], T]) -> T:
        """Run, and run again with everything sent anew where Dask could not make it anew."""
        for _ in range(_ATTEMPTS):
            try:
                return attempt()
            except LostError as error:
                lost = error
                self.renew()
        raise ClusterError(
            f"workers were lost {_ATTEMPTS} times with all that they held; look at their logs for "
            "the reason, most often memory, and fit again"
        ) from lost

    def renew(self) -> None:
        """Forget what was sent, and read blocks that are gone."""
        self.round += 1
        self.sending = Sending(self.client)
        if any(future.status in GONE for future in [*self.blocks, *self.sent]):
            self.read()

    def renewed(self, kept: KeptThere) -> KeptThere:
        """Return what is kept, made anew from the first call on if it was lost."""
        if kept.round == self.round:
            return kept
        (function, *shared), *steps = kept.calls
        new = self.start(function, *shared)
        for function, *shared in steps:
            pairs, sent = self.parts(tasks.changed, function, tuple(shared), new.futures)
            states = self.at_blocks(tasks.state_of, pairs, key="mercer-state")
            new = KeptThere(states, kept.calls, self.round, [*new.sent, *sent])
        kept.futures, kept.round, kept.sent = new.futures, new.round, new.sent
        return kept


class DerivedBlocks(DaskBlocks):
    """Blocks made of other blocks, where these are: with targets, or with other rows.

    Parameters
    ----------
    source : DaskBlocks
        The other blocks.
    made : callable
        Starts the tasks: futures of the blocks, and of what was sent for them. It is called again
        where workers were lost with all that they held.
    """

    def __init__(self, source: DaskBlocks, made: Callable[[DaskBlocks], Any]) -> None:
        self.__dict__.update(source.__dict__)
        self.source, self.made = source, made
        self.begin()

    def read(self) -> None:
        """Have the blocks made, each where the one is that it is made of."""
        source = self.source
        if self.round or any(future.status in GONE for future in source.blocks):
            source.renew()
        self.blocks, self.sent = self.made(source)
        self.holders, self.groups = source.holders, source.groups


def row_form(block: Any) -> tuple[int, Any]:
    """Return columns and type of the rows of a block."""
    return int(block.X.shape[1]), np.dtype(block.X.dtype)


def read_chunks(client: Any, chunks: Chunks) -> list[Any]:
    """Start reading, where Dask finds room or has the rows already."""
    from dask.delayed import delayed as later  # noqa: PLC0415

    number = len(chunks.X)
    firsts = [0] * number if chunks.sizes is None else [0, *np.cumsum(chunks.sizes).tolist()]
    read = later(read_block, pure=False)
    delayed = [
        read(X, y, w, b, firsts[b], chunks.n_columns, chunks.dtype)
        for b, (X, y, w) in enumerate(zip(chunks.X, chunks.y, chunks.weights, strict=True))
    ]
    return list(client.compute(delayed))


def cut(parts: list[Any]) -> list[list[Any]]:
    """Return results in the groups that one task adds."""
    return [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
