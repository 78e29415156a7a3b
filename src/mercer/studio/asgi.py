"""The ASGI application of the studio: the page, its socket, uploads."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import AsyncIterator, Collection
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from mercer.serve.application import LOOPBACK
from mercer.serve.guard import HEADERS, Guard, RefusedError, Rules
from mercer.serve.limits import ServeLimits
from mercer.serve.metrics import Metrics
from mercer.studio.frames import text_of
from mercer.studio.greeting import greeting
from mercer.studio.limits import StudioLimits
from mercer.studio.page_files import INDEX, page_files
from mercer.studio.session import Session
from mercer.studio.tables import Tables
from mercer.studio.workers import Workers

_LIMITS = StudioLimits()
_SOCKET = "/socket"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
)
_NOBODY = "'none'"
_UPLOADS = 2  # at the same time
_FULL = 1013  # code of WebSockets: try again later


def application(
    *,
    token: str,
    hosts: Collection[str] = LOOPBACK,
    limits: StudioLimits = _LIMITS,
    table: tuple[str, bytes] | None = None,
    frames: str = _NOBODY,
) -> Any:
    """Make the ASGI application of the studio.

    `GET /?token=...` is the page, `/page/...` its files, `/socket` its WebSocket; `POST /table`
    takes a file in JSON. Nothing takes a path or code, and nothing is loaded from elsewhere.

    Parameters
    ----------
    token : str
        What the page, its socket and uploads must bring.
    hosts : collection of str
        Host headers that are answered, with the port where it is not the usual one.
    limits : StudioLimits
        How much is taken.
    table : tuple of str and bytes, optional
        A file to begin with: its name and content.
    frames : str
        Pages that may show the studio in a frame, as Content-Security-Policy writes them.

    Returns
    -------
    ASGI application
        The guard around a Starlette application.

    Examples
    --------
    >>> from mercer.studio import application
    >>> app = application(token="secret", hosts=["127.0.0.1:8800"])  # for uvicorn
    """
    if not token:
        raise ValueError("studio: token='' must not be empty")
    answering = Answering(limits, table)
    routes = [
        Route("/", answering.page, methods=["GET"]),
        Route("/page/{name:path}", answering.file, methods=["GET"]),
        Route("/table", answering.upload, methods=["POST"]),
        WebSocketRoute(_SOCKET, answering.socket),
    ]
    errors: Any = {404: _not_found, 405: _not_allowed, RefusedError: _refused, Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=errors, lifespan=answering.lifespan)
    rules = Rules(
        headers={**HEADERS, "content-security-policy": _POLICY + frames},
        body_types=("application/json",),
        open={f"/page/{name}" for name in answering.files},
        linked=("/",),
        sockets=(_SOCKET,),
    )
    taken = ServeLimits(body=limits.upload * 4 // 3 + 4096, at_once=_UPLOADS)
    return Guard(app, hosts, token, taken, Metrics(), rules)


class Answering:
    """What is answered at each path.

    Parameters
    ----------
    limits : StudioLimits
        How much is taken.
    table : tuple of str and bytes or None
        A file to begin with.
    """

    def __init__(self, limits: StudioLimits, table: tuple[str, bytes] | None) -> None:
        self.limits, self.files = limits, page_files()
        self.tables = Tables(limits)
        self.table = None if table is None else self.tables.add(*table)
        self.workers = Workers(limits)
        self.open = 0

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Warm a process up at the start, end all of them in the end."""
        self.workers.warm()
        try:
            yield
        finally:
            await self.workers.close()

    async def page(self, request: Request) -> Response:
        """Show the page."""
        return self._file(INDEX)

    async def file(self, request: Request) -> Response:
        """Hand out a file of the page."""
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        if name not in self.files:
            raise RefusedError(404, "there is no such file")
        content, kind = self.files[name]
        return Response(content, headers={"content-type": kind})

    async def upload(self, request: Request) -> Response:
        """Take a table."""
        name, content = _uploaded(await request.body(), self.limits.upload)
        try:
            found = await run_in_threadpool(self.tables.add, name, content)
            return Response(text_of(found), media_type="application/json")
        except (ValueError, TypeError) as error:
            raise RefusedError(422, str(error)) from error

    async def socket(self, socket: WebSocket) -> None:
        """Serve one open page."""
        await socket.accept()
        if self.open >= self.limits.pages:
            await socket.close(_FULL, "too many pages are open: close one of them")
            return
        self.open += 1
        try:
            session = Session(socket, self.workers, self.tables, self.limits)
            await session.run(greeting(self.limits, self.table))
        finally:
            self.open -= 1


def _uploaded(body: bytes, most: int) -> tuple[str, bytes]:
    """Return the name and content of an upload."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("base64"), str):
        raise RefusedError(400, 'an upload must be {"name": "...", "base64": "..."}')
    try:
        content = base64.b64decode(found["base64"], validate=True)
    except binascii.Error as error:
        raise RefusedError(400, f"the content is no base64: {error}") from error
    if len(content) > most:
        raise RefusedError(413, f"a file may have {most} bytes at most")
    return str(found.get("name", "table")), content


async def _refused(request: Request, error: Any) -> Response:
    return JSONResponse({"error": error.reason}, error.status)


async def _not_found(request: Request, error: Exception) -> Response:
    return PlainTextResponse("there is nothing at this path", 404)


async def _not_allowed(request: Request, error: Exception) -> Response:
    return PlainTextResponse("this path is asked in another way", 405)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "the request could not be answered"}, 500)
