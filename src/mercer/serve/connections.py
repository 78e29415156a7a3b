"""Close silent connections, so that they do not block other clients.

uvicorn closes a connection that is idle after a response. One that never sends a request, or sends
its head a byte at a time, it keeps open indefinitely and counts among those it serves.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 5.0  # from the connection, or the last response, to the end of a request's head


class PromptProtocol(H11Protocol):
    """HTTP with a time limit for the head of each request."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Wait no longer: a WebSocket may be silent."""
        if self._patience is not None:
            self._patience.cancel()
        super().handle_websocket_upgrade(event)

    def _wait(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self.loop.call_later(HEAD_SECONDS, self._close_silent)

    def _close_silent(self) -> None:
        asking = self.cycle is not None and not self.cycle.response_complete
        if not asking and not self.transport.is_closing():
            self.transport.close()
