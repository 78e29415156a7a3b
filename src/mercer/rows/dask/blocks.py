"""Blocks of rows on Dask workers, from collections and from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from mercer.array_types import Array
from mercer.data.table import Schema, Table
from mercer.rows.blocks import Block, Kept, RowBlocks, joined, made_block
from mercer.rows.dask import tasks
from mercer.rows.dask.chunks import Chunks, aligned, row_chunks
from mercer.rows.dask.cluster import (
    GONE,
    ClusterError,
    LostError,
    evened,
    grouped,
    holders_of,
    placed_on,
    refuse_closed,
    result_of,
    running_client,
)
from mercer.rows.dask.tasks import Held, Sending, block_size, placed_at, read_block, with_targets
from mercer.rows.file_blocks import (
    SAMPLED,
    FilePiece,
    TableRows,
    listed,
    pieces_of,
    preparation_of,
    quotes_in,
    read_head,
    read_piece,
    with_quotes,
)

# --- dask blocks ---------------------------------------------------------------------------------
#
# Rows on the workers of a Dask cluster, as blocks.

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
            results = self.at_blocks(tasks.held_result, pairs, key="mercer-result")
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


# --- file blocks ---------------------------------------------------------------------------------
#
# Rows of files that the workers of a cluster read themselves, each its own pieces.

_PIECE = 1 << 25  # bytes: some hundred thousand rows, which a worker holds several times over
_EACH = 4  # pieces for each thread of a worker, where the files are large enough for that
_LEAST = 1 << 16  # bytes: smaller pieces take longer to ask for than to read
_ROWS = 1 << 16  # of a table, while a piece is read
_SURE = 6.0  # standard deviations: more rows than are asked for, so that there are enough


class FilesThere:
    """Files on a disk that all workers share, cut into pieces.

    The client reads the beginning of each file, and the end of a Parquet file.

    Parameters
    ----------
    files : sequence of paths
        As the workers find them.
    schema : Schema
        Names and kinds of the columns.
    client : distributed.Client
        The cluster.
    **reader
        Arguments of `mercer.data.read_blocks`.
    """

    def __init__(self, files: Sequence[Any], schema: Schema, client: Any, **reader: Any) -> None:
        self.client, self.schema = client, schema
        total = sum(os.path.getsize(file) for file in files)
        threads = max(1, sum(client.nthreads().values()))
        size = min(_PIECE, max(_LEAST, total // (_EACH * threads)))
        self.pieces: list[FilePiece] = []
        for file in files:
            pieces = pieces_of(os.path.abspath(file), size, **reader)
            self.pieces += with_quotes(pieces, self.asked(quotes_there, pieces))

    def asked(self, task: Callable[..., Any], *columns: Any, **shared: Any) -> list[Any]:
        """Let workers run a task for each piece, and bring the results here, in order."""
        key = f"mercer-{task.__name__}"
        futures = self.client.map(task, *columns, pure=False, key=key, **shared)
        together = self.client.submit(list, futures, pure=False)
        found: list[Any] = result_of(self.client, together, futures, [])
        return found

    def sample(self, count: int, random_state: int) -> Table:
        """Return the rows that `sampled_table` draws from all files: the same draws, by workers."""
        sizes = self.asked(rows_there, self.pieces, schema=self.schema)
        total = sum(sizes)
        if not total:
            raise ValueError("the files have no rows")
        share = min(1.0, (count + _SURE * np.sqrt(count)) / total)
        firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int).tolist()
        drawn = {"schema": self.schema, "share": share, "seed": random_state}
        parts = self.asked(drawn_there, self.pieces, firsts, **drawn)
        parts = [part for part in parts if part is not None]
        numbers = np.concatenate([part[1] for part in parts])
        table: Table = parts[0][0]
        for part, _ in parts[1:]:
            table = table.below(part)
        if len(numbers) <= count:
            return table
        return table.rows(np.sort(np.argpartition(numbers, count)[:count]))


class WorkerFileBlocks(DaskBlocks):
    r"""Rows of files that the workers read themselves, from a disk that all of them share.

    The client reads the beginning of the first file, to know what the columns are; workers read
    byte ranges of texts and row groups of Parquet files, and hold the rows as numbers. Packed
    texts, npz and ARFF files have no pieces: each is read by one worker.

    Parameters
    ----------
    files : path or list of paths
        The same path on the client and on all workers.
    target, weights, prepare, kinds, columns, format, random_state
        As in `mercer.blocks.FileBlocks`; rows for `prepare` are drawn by the workers.
    client : distributed.Client, optional
        The cluster; by default the client that is running.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from distributed import Client
    >>> from mercer.distributed import WorkerFileBlocks
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "towns.csv"
    >>> _ = path.write_text("age,town,y\n31,Ulm,1.5\n40,Bern,2.5\n52,Ulm,3.5\n")
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     WorkerFileBlocks(path, target="y", prepare=True).total(len)
    3
    """

    def __init__(
        self,
        files: Any,
        *,
        target: str | None = None,
        weights: str | None = None,
        prepare: Any = None,
        kinds: Mapping[str, Any] | None = None,
        columns: list[str] | None = None,
        format: str | None = None,
        random_state: int = 0,
        client: Any = None,
    ) -> None:
        client, paths = running_client(client), listed(files)
        beside = [name for name in (target, weights) if name is not None]
        kept = None if columns is None else [*columns, *beside]
        head = read_head(paths[0], format, kinds, kept)
        for name in beside:
            if name not in head:
                raise KeyError(f"{paths[0]} has no column {name!r}")
        there = FilesThere(paths, head.schema, client, format=format)
        made = preparation_of(prepare)
        if made is not None and not hasattr(made, "plan_"):
            made = clone(made).fit(there.sample(SAMPLED, random_state).drop(*beside))
        some = TableRows(made, target, weights)
        names = tuple(head.drop(*beside).columns) if made is None else None
        self.of(there, some, some(head.rows(slice(0, 100)))[0].shape[1], names)
        self.prepare, self.schema = made, head.schema

    @classmethod
    def made_by(cls, there: FilesThere, make: Any, n_columns: int) -> WorkerFileBlocks:
        """Return rows made of tables by a function that gives rows, targets and weights."""
        blocks = object.__new__(cls)
        blocks.of(there, make, n_columns, None)
        return blocks

    def of(
        self, there: FilesThere, make: Any, n_columns: int, names: tuple[str, ...] | None
    ) -> None:
        """Have the workers read."""
        self.client, self.there, self.make = there.client, there, make
        self.n_columns, self.dtype, self.names = int(n_columns), np.dtype(np.float64), names
        self.begin()

    @property
    def has_sizes(self) -> bool:
        """Whether rows of blocks are counted already."""
        return False

    def started(self) -> list[Any]:
        """Start reading, one piece after the other on each worker."""
        pieces = self.there.pieces
        shared = {"schema": self.there.schema, "make": self.make, "n_columns": self.n_columns}
        numbers = list(range(len(pieces)))
        made: list[Any] = self.client.map(
            block_there, pieces, numbers, pure=False, key="mercer-read", **shared
        )
        return made


# --- on the workers ------------------------------------------------------------------------------


def found_there(piece: FilePiece, work: Callable[[], Any]) -> Any:
    """Run what reads a file, and say in words where it is not."""
    try:
        return work()
    except OSError as error:
        from distributed import get_worker  # noqa: PLC0415  answers inside a task only

        raise ClusterError(
            f"the worker at {get_worker().address} cannot read {piece.path} "
            f"({error.strerror or error}): workers read files themselves, so put it on a disk that "
            "all of them share, under the same path; or leave the cluster out, and it is read "
            "block by block here"
        ) from None


def quotes_there(piece: FilePiece) -> int:
    """Count quotes."""
    return int(found_there(piece, lambda: quotes_in(piece)))


def rows_there(piece: FilePiece, schema: Schema) -> int:
    """Count rows."""
    return int(found_there(piece, lambda: sum(map(len, read_piece(piece, schema, _ROWS)))))


def drawn_there(
    piece: FilePiece, first: int, schema: Schema, share: float, seed: int
) -> tuple[Table, Array] | None:
    """Return the rows of a piece whose draws are below a share, and the draws.

    The draw of a row is the number of its place in one stream, whoever reads it.
    """
    source = np.random.PCG64(seed)
    source.advance(first)
    rng = np.random.Generator(source)

    def work() -> tuple[Table, Array] | None:
        kept: Table | None = None
        numbers = []
        for table in read_piece(piece, schema, _ROWS):
            drawn = rng.random(len(table))
            near = drawn < share
            if near.any():
                part = table.rows(near)
                kept = part if kept is None else kept.below(part)
                numbers.append(drawn[near])
        return None if kept is None else (kept, np.concatenate(numbers))

    found: tuple[Table, Array] | None = found_there(piece, work)
    return found


def block_there(piece: FilePiece, number: int, schema: Schema, make: Any, n_columns: int) -> Held:
    """Return the rows of a piece as a checked block."""
    read = found_there(piece, lambda: [make(table) for table in read_piece(piece, schema, _ROWS)])
    parts = [made_block(X, y, w, 0, number) for X, y, w in read if X.shape[0]]
    return Held(joined(parts) if parts else Block(np.empty((0, n_columns)), None, None, 0))
