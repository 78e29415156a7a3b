"""Processes that do the fits, seen from the server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from mercer.studio.limits import StudioLimits

_PATIENCE = 5.0  # seconds for a process that was ended to be gone
_STOCK = 2  # processes that wait for the next page, which needs two
_LINE = 64 << 20  # bytes of the longest line that a process may tell

Heard = Callable[[int, str, str], None]
"""Called with the number of a request, the kind of a message, and its text."""


class Worker:
    """One process, which does one request after the other.

    Parameters
    ----------
    limits : StudioLimits
        How much it takes.
    """

    def __init__(self, limits: StudioLimits) -> None:
        self.limits = limits
        self.tables: set[str] = set()
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> Worker:
        """Start the process; it imports what it needs while nobody waits."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mercer.studio.jobs", limit=_LINE,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.send({"limits": asdict(self.limits)})
        return self

    async def ready(self) -> Worker:
        """Wait until the process has imported what it needs, or ended."""
        assert self.process is not None and self.process.stdout is not None
        await self.process.stdout.readline()
        return self

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; one to a process that has ended is lost, as the process is."""
        assert self.process is not None and self.process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def send_tables(self, tables: Mapping[str, tuple[str, bytes]]) -> None:
        """Send the tables that the process does not have yet; let it forget those that are gone."""
        for name in self.tables - tables.keys():
            self.tables.remove(name)
            self.send({"forget": name})
        for name in tables.keys() - self.tables:
            self.tables.add(name)
            file, content = tables[name]
            text = base64.b64encode(content).decode("ascii")
            self.send({"table": name, "file": file, "base64": text})

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self.process is not None and self.process.returncode is None

    async def listen(self, heard: Heard) -> None:
        """Hand on what the process tells, until it ends."""
        assert self.process is not None and self.process.stdout is not None
        while line := await self.process.stdout.readline():
            number, kind, text = line.decode("ascii").rstrip("\n").split(" ", 2)
            heard(int(number), kind, text)

    def end(self) -> None:
        """End the process at once."""
        if self.process is not None and self.alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    async def gone(self) -> None:
        """Wait until the process has ended, and its pipes are closed."""
        if self.process is None or self.process.stdin is None:
            return
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self.process.wait()
                if not self.process.stdin.transport.is_closing():  # two may wait for its end
                    self.process.stdin.transport.abort()  # nobody reads what is on the way
                await self.process.stdin.wait_closed()


class Workers:
    """Processes in stock: one is always warm, so that nobody waits for imports.

    Those of a page that was closed are kept for the next one: a reload need not wait, either.

    Parameters
    ----------
    limits : StudioLimits
        What they take.
    """

    def __init__(self, limits: StudioLimits) -> None:
        self.limits = limits
        self.stock: list[asyncio.Future[Worker]] = []
        self.all: set[Worker] = set()
        self.ending: set[Worker] = set()
        self.closed = False

    async def take(self) -> Worker:
        """Return a process, and start the next one."""
        coming = self.stock.pop() if self.stock else asyncio.ensure_future(self._new())
        try:
            found = await asyncio.shield(coming)
        except asyncio.CancelledError:  # its page is gone
            self.stock.append(coming)
            raise
        if not found.alive:  # it ended while nobody looked
            self.give_up(found)
            return await self.take()
        self.warm()
        return found

    def warm(self) -> None:
        """Start a process if none is in stock."""
        if not self.stock and self.limits.spare and not self.closed:
            self.stock.append(asyncio.ensure_future(self._new()))

    def give_back(self, worker: Worker) -> None:
        """Keep a process that has nothing to do for the next page, unless there are enough."""
        if self.closed or not self.limits.spare or len(self.stock) >= _STOCK:
            self.give_up(worker)
            return
        worker.send({"begin": True})
        there: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        there.set_result(worker)
        self.stock.append(there)

    async def _new(self) -> Worker:
        worker = await Worker(self.limits).start()
        self.all.add(worker)
        return await worker.ready()

    def give_up(self, worker: Worker) -> None:
        """End a process."""
        worker.end()
        if worker in self.all:
            self.all.discard(worker)
            self.ending.add(worker)
            done = asyncio.ensure_future(worker.gone())
            done.add_done_callback(lambda _: self.ending.discard(worker))

    async def close(self) -> None:
        """End all processes, and wait until they are gone."""
        self.closed = True
        for worker in list(self.all):
            self.give_up(worker)
        for one in self.stock:  # some may have been about to start
            with contextlib.suppress(OSError):
                self.give_up(await one)
        await asyncio.gather(*(worker.gone() for worker in list(self.ending)))
