"""Request limits, access rules, and metrics of the server."""

from __future__ import annotations

import asyncio
import hmac
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import JSONResponse

# --- limits --------------------------------------------------------------------------------------
#
# How much a server takes from its clients.


@dataclass(frozen=True)
class ServeLimits:
    """Limits of a server; requests beyond them get the status in brackets.

    Attributes
    ----------
    body : int
        Bytes of a request (413).
    bodies : int
        Bytes of all requests that are computed or read at the same time (429).
    rows : int
        Rows of a request (413).
    at_once : int
        Requests that are computed or read at the same time (429).
    body_seconds : float
        Seconds for a request to arrive (408).

    Examples
    --------
    >>> from mercer.serve import ServeLimits
    >>> ServeLimits(rows=1000).rows
    1000
    """

    body: int = 64 << 20
    bodies: int = 256 << 20
    rows: int = 200_000
    at_once: int = 16
    body_seconds: float = 30.0


# --- metrics -------------------------------------------------------------------------------------
#
# Counters of a server in the text format of Prometheus.


class Metrics:
    """Counters of a server.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.answered(200)
    >>> metrics.predicted(10, 0.5)
    >>> metrics.text().splitlines()[-2:]
    ['mercer_rows_total 10', 'mercer_predict_seconds_total 0.5']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._statuses: Counter[int] = Counter()
        self._rows, self._seconds = 0, 0.0

    def answered(self, status: int) -> None:
        """Count a response."""
        with self._lock:
            self._statuses[status] += 1

    def predicted(self, rows: int, seconds: float) -> None:
        """Count rows that were predicted."""
        with self._lock:
            self._rows += rows
            self._seconds += seconds

    def text(self) -> str:
        """Write all counters."""
        with self._lock:
            responses = [
                f'mercer_responses_total{{status="{status}"}} {count}'
                for status, count in sorted(self._statuses.items())
            ]
            return "\n".join(
                [
                    f"mercer_up_seconds {time.monotonic() - self._started:.1f}",
                    *responses,
                    f"mercer_rows_total {self._rows}",
                    f"mercer_predict_seconds_total {self._seconds:.6g}",
                    "",
                ]
            )


# --- guard ---------------------------------------------------------------------------------------
#
# Who may ask: every request is looked at before anything else sees it.
#
# A page of another site, open in a local browser, can send requests to a local server: directly, or
# by giving its own name the local address (DNS rebinding). So the Host header must name this
# server,
# an Origin header must be this server's own, and clients must send the token. Bodies need a content
# type, which browsers do not let other sites set without a preflight request; the server rejects
# preflight requests.

BODY_TYPES = ("application/json", "application/x-ndjson", "text/csv")
HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_ALONE = {
    **HEADERS,
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True)
class Rules:
    """The requirements of a guard on requests, and the headers it adds to responses.

    Attributes
    ----------
    headers : mapping
        Headers of every response.
    body_types : tuple of str
        Types that bodies may have.
    open : collection of str
        Paths that need no token: they reveal no data.
    linked : collection of str
        Paths that links of other pages may lead to, if they bring the token.
    sockets : collection of str
        Paths of WebSockets, which bring the token in the query.
    """

    headers: Mapping[str, str] = field(default_factory=lambda: _ALONE)
    body_types: tuple[str, ...] = BODY_TYPES
    open: Collection[str] = ("/health",)  # reveals only that the server is running
    linked: Collection[str] = ()
    sockets: Collection[str] = ()


class RefusedError(Exception):
    """A rejected request: its status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Guard:
    """An ASGI application in front of another one.

    Parameters
    ----------
    app : ASGI application
        The protected application.
    hosts : collection of str
        Host headers that are this server, with their ports.
    token : str or None
        Required token; None requires none.
    limits : ServeLimits
        Resource limits.
    metrics : Metrics
        Counts responses.
    rules : Rules
        Further requirements.
    """

    def __init__(
        self,
        app: Any,
        hosts: Collection[str],
        token: str | None,
        limits: ServeLimits,
        metrics: Metrics,
        rules: Rules = Rules(),
    ) -> None:
        self.app, self.hosts, self.token = app, frozenset(map(str.lower, hosts)), token
        self.limits, self.metrics, self.rules = limits, metrics, rules
        self.busy = self.held = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to a request, or reject it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._socket(scope, receive, send)
            return
        send = self._sending(send)
        try:
            self._check(scope)
            if (
                scope["method"] != "POST"
            ):  # no body and no computation, so it does not count as active
                await self.app(scope, _handed(b"", receive), send)
                return
            if self.busy >= self.limits.at_once:
                raise RefusedError(429, "too many requests at the same time; try again later")
            self.busy += 1
            try:
                body = await self._body(scope, receive)
                try:
                    await self.app(scope, _handed(body, receive), send)
                finally:
                    self.held -= len(body)
            finally:
                self.busy -= 1
        except RefusedError as refused:
            rest = {"retry-after": "1"} if refused.status == 429 else {}
            answer = JSONResponse({"error": refused.reason}, refused.status, rest)
            await answer(scope, receive, send)

    async def _socket(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand a WebSocket of this server's own page on, and close all others."""
        try:
            if not self.rules.sockets or _path(scope) not in self.rules.sockets:
                raise RefusedError(404, "no socket at this path")
            if len(_values(scope, b"origin")) != 1:
                raise RefusedError(403, "sockets are for the page of this server")
            self._check_sender(scope)
            self._check_token(scope)
        except RefusedError:
            await send({"type": "websocket.close", "code": 1008})
            return
        await self.app(scope, receive, send)

    def _sending(self, send: Any) -> Any:
        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.metrics.answered(message["status"])
                own = [
                    (name.encode(), value.encode()) for name, value in self.rules.headers.items()
                ]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        return counted

    def _check_sender(self, scope: Any) -> None:
        """Raise unless a request names this server, and comes from a page of it or none."""
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise RefusedError(403, "the Host header does not name this server")
        for origin in _values(scope, b"origin"):
            scheme, _, host = origin.lower().partition("://")
            if scheme not in ("http", "https") or host not in self.hosts:
                raise RefusedError(403, "requests from other sites are not allowed")
        sites = _values(scope, b"sec-fetch-site")
        own = all(site in ("same-origin", "none") for site in sites)
        if not own and _path(scope) not in self.rules.linked:
            raise RefusedError(403, "requests from other sites are not allowed")

    def _check(self, scope: Any) -> None:
        """Raise unless the request names this server, comes from it, and brings the token."""
        self._check_sender(scope)
        asks = scope["method"] in ("GET", "HEAD")
        if self.token is not None and not (asks and _path(scope) in self.rules.open):
            self._check_token(scope)
        if scope["method"] == "POST":
            types = _values(scope, b"content-type")
            kind = types[0].partition(";")[0].strip().lower() if len(types) == 1 else ""
            known = self.rules.body_types
            if kind not in known:
                one_of = "one of " if len(known) > 1 else ""
                said = f"Content-Type must be {one_of}{', '.join(known)}"
                raise RefusedError(415, said)
            if any(
                one.strip().lower() != "identity" for one in _values(scope, b"content-encoding")
            ):
                raise RefusedError(
                    415, "compressed requests are not taken; leave Content-Encoding out"
                )

    def _check_token(self, scope: Any) -> None:
        given = [
            value.removeprefix("Bearer ").strip() for value in _values(scope, b"authorization")
        ]
        page = scope["type"] == "http" and scope["method"] == "GET" and _path(scope) == "/"
        if page or scope["type"] == "websocket":  # browsers let them set no header
            given += parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        known = (self.token or "").encode()
        if not any(hmac.compare_digest(one.encode(), known) for one in given):
            raise RefusedError(
                401, "the token is missing or wrong; send the header 'Authorization: Bearer TOKEN'"
            )

    async def _body(self, scope: Any, receive: Any) -> bytes:
        """Read a request, within the limits of size and time."""
        lengths = _values(scope, b"content-length")
        if any(not one.isdecimal() or int(one[:20]) > self.limits.body for one in lengths):
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RefusedError(400, "the client has gone")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    self.held += len(parts[-1])
                    if size > self.limits.body:
                        raise self._too_large()
                    if self.held > max(self.limits.bodies, self.limits.body):
                        raise RefusedError(429, "other requests are too large; try again later")
                    more = message.get("more_body", False)
            return b"".join(parts)
        except TimeoutError:
            self.held -= size
            raise RefusedError(408, "the request did not arrive in time") from None
        except BaseException:
            self.held -= size
            raise

    def _too_large(self) -> RefusedError:
        return RefusedError(413, f"a request may have {self.limits.body} bytes at most")


def _values(scope: Any, name: bytes) -> list[str]:
    """Return all headers of a name."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _path(scope: Any) -> str:
    """Return the path below the place where the application is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def _handed(body: bytes, receive: Any) -> Any:
    """Hand a body on that was read already; after it, whatever the client sends."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def handed() -> Any:
        return left.pop() if left else await receive()

    return handed
