"""Run the studio on this machine."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Any

from mercer.serve.application import LOOPBACK
from mercer.serve.run import is_loopback, new_token
from mercer.studio.limits import StudioLimits

_LIMITS = StudioLimits()
_IDLE = 5  # seconds that a connection is kept after an answer
_SOON = 0.7  # seconds until the browser is sent to the page: the server listens by then


def run(
    data: Any = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8800,
    token: str | None = None,
    browser: bool = True,
    limits: StudioLimits = _LIMITS,
) -> None:
    """Show the studio until Ctrl-C.

    Parameters
    ----------
    data : path, optional
        A table to begin with.
    host : str
        Where to listen. Whoever reaches another address than those of loopback, and knows the
        token, can use this machine's processors, and see the tables in the studio.
    port : int
        Where to listen.
    token : str or None
        What the address of the page must bring; None makes one.
    browser : bool
        Whether a browser is opened.
    limits : StudioLimits
        How much is taken.
    """
    import uvicorn  # noqa: PLC0415  an extra

    token = token or new_token()
    address = address_of(host, port, token)
    config = configuration(
        host, port, token, limits, table=None if data is None else read_file(data, limits)
    )
    print(f"Mercer studio: {address}", file=sys.stderr, flush=True)
    if not is_loopback(host):
        print("Other machines can reach it; the token alone keeps them out.", file=sys.stderr)
    if browser:
        timer = threading.Timer(_SOON, webbrowser.open, [address])
        timer.daemon = True
        timer.start()
    uvicorn.Server(config).run()


def configuration(
    host: str, port: int, token: str, limits: StudioLimits = _LIMITS, **options: Any
) -> Any:
    """Return uvicorn's configuration of a studio.

    Parameters
    ----------
    host, port, token
        As `run` takes them.
    limits : StudioLimits
        How much is taken.
    **options
        Of `application`: a table, pages that may show it in a frame.
    """
    import uvicorn  # noqa: PLC0415  an extra

    from mercer.serve.connections import PromptProtocol  # noqa: PLC0415  of the same extra
    from mercer.studio.asgi import application  # noqa: PLC0415

    names = [*LOOPBACK, *([] if is_loopback(host) else own_names(host))]
    hosts = [f"{name}:{port}" for name in names] + (names if port == 80 else [])
    app = application(token=token, hosts=hosts, limits=limits, **options)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=PromptProtocol,
        ws="wsproto",
        ws_max_size=limits.frame,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=1,  # an open page is no reason to stay
    )


def read_file(data: Any, limits: StudioLimits) -> tuple[str, bytes]:
    """Return the name and content of a file, if it is not too large."""
    path = Path(data)
    size = path.stat().st_size
    if size > limits.upload:
        raise ValueError(
            f"studio: {path.name} has {size} bytes; at most {limits.upload} are shown. Take a "
            "sample of its rows"
        )
    return path.name, path.read_bytes()


def address_of(host: str, port: int, token: str) -> str:
    """Return the address of the page.

    Examples
    --------
    >>> address_of("::1", 8800, "secret")
    'http://[::1]:8800/?token=secret'
    """
    return f"http://{bracketed(host)}:{port}/?token={token}"


def own_names(host: str) -> list[str]:
    """Return what this machine is called by others that reach it at an address."""
    if host not in ("0.0.0.0", "::"):
        return [bracketed(host)]
    name = socket.gethostname()
    with contextlib.suppress(OSError):
        return [name, *map(bracketed, socket.gethostbyname_ex(name)[2])]
    return [name]


def bracketed(host: str) -> str:
    """Return a host as addresses write it."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
