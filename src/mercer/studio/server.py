"""Local server of the studio: page files, greeting, and ASGI application."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from mercer.kernels import parse
from mercer.serve.guard import HEADERS, Guard, Metrics, RefusedError, Rules, ServeLimits
from mercer.serve.server import LOOPBACK, is_loopback, new_token
from mercer.studio.catalog import MACHINES, OFFERS, OPERATORS, TASKS, numbers_of
from mercer.studio.frames import text_of
from mercer.studio.limits import StudioLimits
from mercer.studio.presets import PRESETS
from mercer.studio.session import Session, Workers
from mercer.studio.tables import Tables
from mercer.studio.tours import TOURS

# --- page files ----------------------------------------------------------------------------------
#
# The files of the page, read once. Requests look them up and never open a file.

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"


def page_files() -> dict[str, tuple[bytes, str]]:
    """Return contents and types of all files of the page, by their names below it.

    Examples
    --------
    >>> all("/.." not in name for name in page_files())
    True
    """
    return dict(_below(files("mercer.studio") / "page", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, tuple[bytes, str]]]:
    found = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _below(one, f"{prefix}{one.name}/")
        elif (kind := _TYPES.get(one.name.rpartition(".")[2])) is not None:
            found.append((prefix + one.name, (one.read_bytes(), kind)))
    return found


# --- greeting ------------------------------------------------------------------------------------
#
# The first message to a page: all choices.


def greeting(limits: StudioLimits, table: dict[str, Any] | None) -> dict[str, Any]:
    """Return the first message of a socket.

    Examples
    --------
    >>> greeting(StudioLimits(), None)["tasks"][0]
    {'name': 'classes', 'words': 'points of several classes'}
    """
    return {
        "id": 0,
        "kind": "hello",
        "version": sys.modules["mercer"].__version__,  # subpackages do not import mercer
        "limits": {
            "points": limits.points, "upload": limits.upload, "seconds": limits.seconds,
        },
        "tasks": [{"name": name, "words": words} for name, words in TASKS.items()],
        "machines": [entry.described() for entry in MACHINES.values()],
        "kernels": [
            {
                "name": offer.name,
                "text": offer.text,
                "words": offer.words,
                "parameters": numbers_of(parse(offer.text)),
            }
            for offer in OFFERS
        ],
        "operators": [{"text": text, "words": words} for text, words in OPERATORS],
        "presets": [preset.described() for preset in PRESETS.values()],
        "tours": [tour.described() for tour in TOURS.values()],
        "table": table,
    }  # fmt: skip


# --- asgi ----------------------------------------------------------------------------------------
#
# The ASGI application of the studio: the page, its socket, uploads.

_ASGI_LIMITS = StudioLimits()
_SOCKET = "/socket"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
)
_NOBODY = "'none'"
_UPLOADS = 2  # at the same time
_SIGNS = 1000  # brackets in an upload: base64 has none, the name of a file may
_FULL = 1013  # code of WebSockets: try again later


def application(
    *,
    token: str,
    hosts: Collection[str] = LOOPBACK,
    limits: StudioLimits = _ASGI_LIMITS,
    table: tuple[str, bytes] | None = None,
    frames: str = _NOBODY,
) -> Any:
    """Make the ASGI application of the studio.

    `GET /?token=...` is the page, `/page/...` its files, `/socket` its WebSocket; `POST /table`
    takes a file in JSON. Nothing takes a path or code, and nothing is loaded from elsewhere.

    Parameters
    ----------
    token : str
        Token required of the page, its socket and uploads.
    hosts : collection of str
        Accepted Host headers, with the port unless it is the default.
    limits : StudioLimits
        Resource limits.
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
    answering = StudioApp(limits, table)
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


class StudioApp:
    """The response for each path.

    Parameters
    ----------
    limits : StudioLimits
        Resource limits.
    table : tuple of str and bytes or None
        A file to begin with.
    """

    def __init__(self, limits: StudioLimits, table: tuple[str, bytes] | None) -> None:
        self.limits, self.files = limits, page_files()
        self.tables = Tables(limits)
        self.workers = Workers(limits)
        self.table = None if table is None else self.tables.add(*table, _read(table[1], limits))
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
            raise RefusedError(404, "file not found")
        content, kind = self.files[name]
        return Response(content, headers={"content-type": kind})

    async def upload(self, request: Request) -> Response:
        """Take a table."""
        name, content = _uploaded(await request.body(), self.limits.upload)
        try:
            found = self.tables.add(name, content, await self.workers.read(content))
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


def _read(content: bytes, limits: StudioLimits) -> dict[str, Any]:
    """Read a file in a process of its own, before there is a server."""

    async def read() -> dict[str, Any]:
        workers = Workers(replace(limits, spare=False))
        try:
            return await workers.read(content)
        finally:
            await workers.close()

    with ThreadPoolExecutor(1) as thread:  # a notebook's own thread has a loop already
        return thread.submit(asyncio.run, read()).result()


def _uploaded(body: bytes, most: int) -> tuple[str, bytes]:
    """Return the name and content of an upload."""
    found = None
    if body.count(b"[") + body.count(b"{") <= _SIGNS:  # else its parts would take much memory
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(body)
    if not isinstance(found, dict) or not isinstance(found.get("base64"), str):
        raise RefusedError(400, 'an upload must be {"name": "...", "base64": "..."}')
    try:
        content = base64.b64decode(found["base64"], validate=True)
    except binascii.Error as error:
        raise RefusedError(400, f"the content is not base64: {error}") from error
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


# --- running -------------------------------------------------------------------------------------
#
# Run the studio locally.

_RUNNING_LIMITS = StudioLimits()
_IDLE = 5  # seconds that a connection is kept after a response
_SOON = 0.7  # seconds until the browser is sent to the page: the server listens by then


def run(
    data: Any = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8800,
    token: str | None = None,
    browser: bool = True,
    limits: StudioLimits = _RUNNING_LIMITS,
) -> None:
    """Show the studio until Ctrl-C.

    Parameters
    ----------
    data : path, optional
        A table to begin with.
    host : str
        Address to listen on. Clients that reach an address other than loopback and know the token
        can use the processors of this computer and see the tables in the studio.
    port : int
        Port to listen on.
    token : str or None
        Token required in the address of the page; None creates one.
    browser : bool
        Whether a browser is opened.
    limits : StudioLimits
        Resource limits.
    """
    import uvicorn  # noqa: PLC0415  an extra

    token = token or new_token()
    address = address_of(host, port, token)
    config = configuration(
        host, port, token, limits, table=None if data is None else read_file(data, limits)
    )
    print(f"Mercer studio: {address}", file=sys.stderr, flush=True)
    if not is_loopback(host):
        print("Other computers can reach the studio; only the token protects it.", file=sys.stderr)
    if browser:
        timer = threading.Timer(_SOON, webbrowser.open, [address])
        timer.daemon = True
        timer.start()
    uvicorn.Server(config).run()


def configuration(
    host: str, port: int, token: str, limits: StudioLimits = _RUNNING_LIMITS, **options: Any
) -> Any:
    """Return uvicorn's configuration of a studio.

    Parameters
    ----------
    host, port, token
        As `run` takes them.
    limits : StudioLimits
        Resource limits.
    **options
        Of `application`: a table, pages that may show it in a frame.
    """
    import uvicorn  # noqa: PLC0415  an extra

    from mercer.serve.connections import PromptProtocol  # noqa: PLC0415  of the same extra

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
        timeout_graceful_shutdown=1,  # an open page does not delay the end
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
    """Return the names under which others reach this computer at an address."""
    if host not in ("0.0.0.0", "::"):
        return [bracketed(host)]
    name = socket.gethostname()
    with contextlib.suppress(OSError):
        return [name, *map(bracketed, socket.gethostbyname_ex(name)[2])]
    return [name]


def bracketed(host: str) -> str:
    """Return a host as addresses write it."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
