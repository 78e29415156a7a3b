"""Rows of files that the workers of a cluster read themselves, each its own pieces."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.array_types import Array
from mercer.blocks.base import Block, joined
from mercer.blocks.checks import made_block
from mercer.blocks.file_pieces import FilePiece, pieces_of, quotes_in, read_piece, with_quotes
from mercer.blocks.files import SAMPLED, TableRows, listed, preparation_of, read_head
from mercer.data.schema import Schema
from mercer.data.table import Table
from mercer.distributed.client import running_client
from mercer.distributed.dask_blocks import DaskBlocks
from mercer.distributed.errors import ClusterError
from mercer.distributed.tasks import Held
from mercer.distributed.waiting import result_of

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
