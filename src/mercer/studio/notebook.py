"""The studio in a notebook: the same page in a frame."""

from __future__ import annotations

import contextlib
import html
import socket
import threading
import time
from pathlib import Path
from typing import Any

from mercer.serve.server import new_token
from mercer.studio.limits import StudioLimits
from mercer.studio.server import address_of, configuration, read_file

_HOST = "127.0.0.1"
_FRAMES = "'self' http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
_PATIENCE = 10.0  # seconds for the server to begin
_LIMITS = StudioLimits()


class Shown:
    """A studio that runs next to a notebook, until `close`.

    Attributes
    ----------
    url : str
        Its address.
    height : int
        Of the frame, in pixels.
    """

    def __init__(self, server: Any, url: str, height: int) -> None:
        self.server, self.url, self.height = server, url, height
        self.thread = threading.Thread(target=server.run, daemon=True)
        self.thread.start()
        ends = time.monotonic() + _PATIENCE
        while not server.started and self.thread.is_alive() and time.monotonic() < ends:
            time.sleep(0.01)
        if not server.started:
            raise RuntimeError("studio: the server did not start")

    def close(self) -> None:
        """End the server and the processes behind it."""
        self.server.should_exit = True
        self.thread.join(_PATIENCE)

    def __repr__(self) -> str:
        return f"<Mercer studio at {self.url}; .close() ends it>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{html.escape(self.url)}" title="Mercer studio" width="100%" '
            f'height="{self.height}" style="border: 0"></iframe>'
        )


def show(
    data: Any = None, *, port: int = 0, height: int = 720, limits: StudioLimits = _LIMITS
) -> Shown:
    """Show the studio in a notebook.

    Parameters
    ----------
    data : path, optional
        A table to begin with.
    port : int
        Port on loopback; 0 selects a free port.
    height : int
        Of the frame, in pixels.
    limits : StudioLimits
        Resource limits.

    Returns
    -------
    Shown
        Drawn as a frame by notebooks; `close` ends the server.

    Examples
    --------
    >>> from mercer.studio import show
    >>> shown = show()  # doctest: +SKIP
    >>> shown.close()  # doctest: +SKIP
    """
    import uvicorn  # noqa: PLC0415  an extra

    token = new_token()
    with contextlib.closing(socket.create_server((_HOST, port))) as free:
        port = int(free.getsockname()[1])
    table = None if data is None else read_file(Path(data), limits)
    config = configuration(_HOST, port, token, limits, table=table, frames=_FRAMES)
    return Shown(uvicorn.Server(config), address_of(_HOST, port, token), height)
