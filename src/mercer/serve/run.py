"""Run a server on this machine."""

from __future__ import annotations

import ipaddress
import secrets
from typing import Any

from mercer.serve.application import LOOPBACK, application
from mercer.serve.limits import ServeLimits

_LIMITS = ServeLimits()
_HEADER = 16 << 10  # bytes of the head of a request
_IDLE = 2  # seconds that a connection is kept after an answer
_CONNECTIONS = 512  # open ones; what they ask for at the same time is limited by `ServeLimits`


def new_token() -> str:
    """Make a token that nobody guesses."""
    return secrets.token_urlsafe(24)


def run(
    model: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: ServeLimits = _LIMITS,
) -> None:
    """Answer with a model until Ctrl-C, on loopback only.

    Parameters
    ----------
    model : TableModel
        Made by `mercer.fit`, or loaded.
    host : str
        An address of this machine that no other one reaches: 127.0.0.1, ::1 or localhost. To serve
        others, let `mercer.serve.application` run behind a server that knows who they are.
    port : int
        Where to listen.
    token : str or None
        What requests must bring; None makes one.
    limits : ServeLimits
        How much is taken from clients.
    """
    if not is_loopback(host):
        raise ValueError(
            f"serve: host={host!r} can be reached from other machines; use 127.0.0.1, and a server "
            "in front of it that checks who asks"
        )
    import uvicorn  # noqa: PLC0415  an extra

    from mercer.serve.connections import PromptProtocol  # noqa: PLC0415  of the same extra

    hosts = [f"{name}:{port}" for name in LOOPBACK] + (list(LOOPBACK) if port == 80 else [])
    asked = application(model, token=token or new_token(), hosts=hosts, limits=limits)
    uvicorn.run(
        asked,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=PromptProtocol,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_IDLE,  # Ctrl-C waits for no dawdling client
        limit_concurrency=_CONNECTIONS,
        h11_max_incomplete_event_size=_HEADER,
    )


def is_loopback(host: str) -> bool:
    """Return whether an address is of this machine alone.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
