"""A lane of a page: requests that one process does, one after the other.

The newest request of a kind wins: an older one of the same kind that waits is dropped, one that
runs is broken off. A process that does not stop, or goes past its time, is ended and replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mercer.studio.frames import text_of
from mercer.studio.tables import Tables
from mercer.studio.workers import Worker, Workers

_PATIENCE = 1.5  # seconds between asking a process to stop and ending it
_GRACE = 5.0  # seconds past the time limit, which the fit keeps by itself
_ENDS = ("answer", "refused", "cancelled")  # kinds of messages that end a request

Send = Callable[[str], Awaitable[None]]


@dataclass(eq=False)
class Asked:
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
        """What is asked."""
        return str(self.request["do"])


def _to_nobody(text: str) -> None:
    """Say something to a page that is gone."""


class Lane:
    """Requests that one process does.

    Parameters
    ----------
    workers : Workers
        Where processes come from.
    tables : Tables
        What was uploaded.
    say : callable
        Puts a message on the way to the page.
    """

    def __init__(self, workers: Workers, tables: Tables, say: Callable[[str], None]) -> None:
        self.workers, self.tables, self.say = workers, tables, say
        self.waiting: list[Asked] = []
        self.current: Asked | None = None
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
        self.waiting.append(Asked(request, seconds))
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
        """Take a process, hand on what it tells, and do without it when it has ended."""
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

    def _break_off(self, asked: Asked, why: str) -> None:
        if asked.why:  # it is on the way already
            return
        asked.why = why
        if self.worker is not None:
            self.worker.send({"cancel": asked.id})
        self._set_timer(_PATIENCE, why)

    def _ended(self, asked: Asked, why: str) -> None:
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
