"""One open page: its requests in, messages out, two lanes of work."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from mercer.studio.frames import text_of
from mercer.studio.jobs.table import LONG, QUICK
from mercer.studio.lane import Lane
from mercer.studio.limits import StudioLimits
from mercer.studio.tables import Tables
from mercer.studio.workers import Workers

_BEHIND = 200  # messages that wait for a page: one that reads none is closed
_TOO_SLOW = 1013  # code of WebSockets: try again later


class Session:
    """A page that is open.

    Parameters
    ----------
    socket : WebSocket
        The way to it, accepted.
    workers : Workers
        Where processes come from.
    tables : Tables
        What was uploaded.
    limits : StudioLimits
        How much is taken.
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
        """Answer until the page is closed."""
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
            self._refuse(0, "", "a message must be an object with a whole number as id")
        elif request.get("do") == "cancel":
            self._cancel(number, request.get("of"))
        elif str(request.get("do")) not in self.lanes:  # a list is no key
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
