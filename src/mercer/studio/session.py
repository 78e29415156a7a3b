"""Sessions of the studio: worker processes and request queues."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from mercer.studio.frames import text_of
from mercer.studio.jobs import LONG, QUICK
from mercer.studio.limits import StudioLimits
from mercer.studio.tables import Tables

# --- workers -------------------------------------------------------------------------------------
#
# Processes that do the fits, seen from the server.

_WORKERS_PATIENCE = 5.0  # seconds for a process that was ended to be gone
_STOCK = 2  # processes that wait for the next page, which needs two
_LINE = 64 << 20  # bytes of the longest line that a process may tell
_GRACE = 5.0  # seconds beyond the time limit that the fit observes
_ENDS = ("answer", "refused", "cancelled")  # kinds of messages that end a request

Heard = Callable[[int, str, str], None]
"""Called with the number of a request, the kind of a message, and its text."""


class Worker:
    """One process, which does one request after the other.

    Parameters
    ----------
    limits : StudioLimits
        Resource limits.
    """

    def __init__(self, limits: StudioLimits) -> None:
        self.limits = limits
        self.tables: set[str] = set()
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> Worker:
        """Start the process; it imports its modules in advance."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mercer.studio.jobs", limit=_LINE,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.send({"limits": asdict(self.limits)})
        return self

    async def ready(self) -> Worker:
        """Wait until the process has imported its modules, or ended."""
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
        """Forward the messages of the process until it ends."""
        assert self.process is not None and self.process.stdout is not None
        while line := await self.process.stdout.readline():
            number, kind, text = line.decode("ascii").rstrip("\n").split(" ", 2)
            heard(int(number), kind, text)

    async def answer(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for its end.

        Raises ValueError with the error message, TimeoutError if the process must be ended.
        """
        assert self.process is not None and self.process.stdout is not None
        self.send(request)
        line = b""
        with contextlib.suppress(TimeoutError, ValueError):  # too late, or too long a line
            async with asyncio.timeout(seconds):
                line = await self.process.stdout.readline()
        kind, _, text = line.decode("ascii").partition(" ")[2].partition(" ")
        if kind not in _ENDS:
            raise TimeoutError("this takes too much time or memory; use fewer rows")
        found: dict[str, Any] = json.loads(text)
        if kind != "answer":
            raise ValueError(found.get("words", "it was broken off"))
        return found

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
            async with asyncio.timeout(_WORKERS_PATIENCE):
                await self.process.wait()
                if not self.process.stdin.transport.is_closing():  # two may wait for its end
                    self.process.stdin.transport.abort()  # pending messages have no reader
                await self.process.stdin.wait_closed()


class Workers:
    """A pool of processes: one is always ready, so that imports cause no delay.

    Those of a page that was closed are kept for the next one: a reload need not wait, either.

    Parameters
    ----------
    limits : StudioLimits
        Resource limits.
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
        if not found.alive:  # it ended while idle
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

    async def read(self, content: bytes) -> dict[str, Any]:
        """Read a file in a process; return its columns and a scene to begin with."""
        worker = await self.take()
        request = {"id": 0, "do": "table", "base64": base64.b64encode(content).decode("ascii")}
        try:
            found = await worker.answer(request, self.limits.seconds + _GRACE)
        except ValueError:
            self.give_back(worker)
            raise
        except TimeoutError as error:
            self.give_up(worker)
            raise ValueError(str(error)) from error
        except BaseException:
            self.give_up(worker)
            raise
        self.give_back(worker)
        return found

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


# --- queue ---------------------------------------------------------------------------------------
#
# A queue of a page: requests that one process handles in turn.
#
# The newest request of a kind wins: an older one of the same kind that waits is dropped, one that
# runs is broken off. A process that does not stop, or goes past its time, is ended and replaced.

_LANE_PATIENCE = 1.5  # seconds between asking a process to stop and ending it

Send = Callable[[str], Awaitable[None]]


@dataclass(eq=False)
class PageRequest:
    """A request, and why it is broken off if it is."""

    request: dict[str, Any]
    seconds: float
    why: str = ""

    @property
    def id(self) -> int:
        """Number of the request."""
        return int(self.request["id"])

    @property
    def do(self) -> str:
        """The request."""
        return str(self.request["do"])


def _to_nobody(text: str) -> None:
    """Say something to a page that is gone."""


class Lane:
    """Requests that one process does.

    Parameters
    ----------
    workers : Workers
        Source of processes.
    tables : Tables
        Uploaded tables.
    say : callable
        Puts a message on the way to the page.
    """

    def __init__(self, workers: Workers, tables: Tables, say: Callable[[str], None]) -> None:
        self.workers, self.tables, self.say = workers, tables, say
        self.waiting: list[PageRequest] = []
        self.current: PageRequest | None = None
        self.worker: Worker | None = None
        self.listening: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.starting = self.closed = False

    def ask(self, request: dict[str, Any], seconds: float) -> None:
        """Take a request; older ones of the same kind are broken off."""
        for old in [one for one in self.waiting if one.do == request["do"]]:
            self.waiting.remove(old)
            self._ended(old, "newer")
        if self.current is not None and self.current.do == request["do"]:
            self._break_off(self.current, "newer")
        self.waiting.append(PageRequest(request, seconds))
        self._next()

    def cancel(self, number: int) -> bool:
        """Break a request off; return whether it was here."""
        for old in [one for one in self.waiting if one.id == number]:
            self.waiting.remove(old)
            self._ended(old, "asked")
            return True
        if self.current is not None and self.current.id == number:
            self._break_off(self.current, "asked")
            return True
        return False

    def close(self) -> None:
        """Drop everything; the process is for the next page, once it has stopped."""
        self.waiting.clear()
        self.say = _to_nobody
        self.closed = True
        if self.current is None:
            self._leave()
        else:
            self._break_off(self.current, "asked")

    def _leave(self) -> None:
        """Hear no more of the process, and give it back."""
        listening, worker, self.listening = self.listening, self.worker, None
        if listening is None:
            return
        listening.cancel()
        if worker is not None:  # two must not read its pipe
            listening.add_done_callback(lambda _: self.workers.give_back(worker))

    def _next(self) -> None:
        if self.current is not None or not self.waiting or self.starting:
            return
        if self.worker is None:
            self.starting = True
            self.listening = asyncio.ensure_future(self._live())
            return
        self.current = self.waiting.pop(0)
        self.worker.send_tables(self.tables.contents())
        self.worker.send(self.current.request)
        self._set_timer(self.current.seconds + _GRACE, "time")

    async def _live(self) -> None:
        """Acquire a process and forward its messages; release it when it has ended."""
        try:
            worker = self.worker = await self.workers.take()
        except OSError:  # no process can be started: out of memory, or of numbers
            for asked in self.waiting:
                self._ended(asked, "ended")
            self.waiting.clear()
            return
        finally:
            self.starting = False
        self._next()
        with contextlib.suppress(ValueError):  # a line that is too long to be read
            await worker.listen(self._heard)
        self.workers.give_up(worker)
        self.worker = None
        if self.current is not None:
            self._ended(self.current, self.current.why or "ended")
        self._next()

    def _heard(self, number: int, kind: str, text: str) -> None:
        asked = self.current
        if asked is None or asked.id != number:
            return
        if kind == "cancelled":
            self._ended(asked, asked.why or "asked")
        else:
            self.say(text)
        if kind in _ENDS:
            self.current = None
            self._stop_timer()
            self._next()
            if self.closed:
                self._leave()

    def _break_off(self, asked: PageRequest, why: str) -> None:
        if asked.why:  # it is on the way already
            return
        asked.why = why
        if self.worker is not None:
            self.worker.send({"cancel": asked.id})
        self._set_timer(_LANE_PATIENCE, why)

    def _ended(self, asked: PageRequest, why: str) -> None:
        fields = {"id": asked.id, "kind": "cancelled", "do": asked.do, "why": why}
        self.say(text_of(fields))
        if asked is self.current:
            self.current = None
            self._stop_timer()

    def _set_timer(self, seconds: float, why: str) -> None:
        self._stop_timer()
        self.timer = asyncio.get_running_loop().call_later(seconds, self._kill, why)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _kill(self, why: str) -> None:
        if self.current is not None and self.worker is not None:
            self.current.why = self.current.why or why
            self.worker.end()  # `_live` hears of it


# --- session -------------------------------------------------------------------------------------
#
# An open page: its requests, its messages, and two queues of work.

_BEHIND = 200  # messages that wait for a page: one that reads none is closed
_TOO_SLOW = 1013  # code of WebSockets: try again later


class Session:
    """A page that is open.

    Parameters
    ----------
    socket : WebSocket
        The way to it, accepted.
    workers : Workers
        Source of processes.
    tables : Tables
        Uploaded tables.
    limits : StudioLimits
        Resource limits.
    """

    def __init__(
        self, socket: WebSocket, workers: Workers, tables: Tables, limits: StudioLimits
    ) -> None:
        self.socket, self.limits = socket, limits
        self.outward: asyncio.Queue[str] = asyncio.Queue(_BEHIND)
        self.behind = asyncio.Event()
        quick, long = (Lane(workers, tables, self.say) for _ in range(2))
        self.lanes = {**dict.fromkeys(QUICK, quick), **dict.fromkeys(LONG, long)}
        self.seconds = {
            **dict.fromkeys(QUICK, limits.seconds),
            **dict.fromkeys(LONG, limits.long_seconds),
        }

    async def run(self, greeting: dict[str, Any]) -> None:
        """Respond until the page is closed."""
        self.say(text_of(greeting))
        works = [self._read(), self._write(), self.behind.wait()]
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for lane in set(self.lanes.values()):
                lane.close()
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it may be closed already
            await self.socket.close(_TOO_SLOW)

    def say(self, text: str) -> None:
        """Put a message on the way; a page that reads none is given up."""
        try:
            self.outward.put_nowait(text)
        except asyncio.QueueFull:
            self.behind.set()

    def take(self, text: str) -> None:
        """Take one message of the page."""
        request = _message(text, self.limits.frame)
        number = request.get("id") if request is not None else None
        if request is None or isinstance(number, bool) or not isinstance(number, int):
            self._refuse(0, "", "a message must be an object with an integer as id")
        elif request.get("do") == "cancel":
            self._cancel(number, request.get("of"))
        elif str(request.get("do")) not in self.lanes:  # a list cannot be a key
            self._refuse(number, "", f"there is nothing to do that is called {_short(request)}")
        else:
            do = request["do"]
            self.lanes[do].ask(request, self.seconds[do])

    def _cancel(self, number: int, of: Any) -> None:
        if isinstance(of, int):
            for lane in set(self.lanes.values()):
                lane.cancel(of)
        self.say(text_of({"id": number, "kind": "answer", "do": "cancel"}))

    def _refuse(self, number: int, do: str, words: str) -> None:
        fields = {"id": number, "kind": "refused", "do": do, "words": words, "parameter": None}
        self.say(text_of(fields))

    async def _read(self) -> None:
        with contextlib.suppress(WebSocketDisconnect, KeyError):  # gone, or no text
            while True:
                self.take(await self.socket.receive_text())

    async def _write(self) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            while True:
                await self.socket.send_text(await self.outward.get())


def _message(text: str, longest: int) -> dict[str, Any] | None:
    if len(text) > longest:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _short(request: dict[str, Any]) -> str:
    return repr(str(request.get("do"))[:40])
