"""Prediction server: request parsing, page, ASGI application, and `run`."""

from __future__ import annotations

import asyncio
import csv
import io
import ipaddress
import json
import math
import re
import secrets
import time
from collections.abc import Collection, Iterator
from functools import partial
from html import escape
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mercer.array_types import Array
from mercer.data import DataError, Limits, Schema, Table, read_blocks
from mercer.data.reading.json_lines import json_row, row_blocks
from mercer.data.reading.source import MAGIC
from mercer.fitting import TableModel
from mercer.serve.guard import Guard, Metrics, RefusedError, ServeLimits

# --- rows ----------------------------------------------------------------------------------------
#
# Rows of a request: JSON, JSON lines or CSV, read by the schema of the training table.

_FORMATS = {"application/x-ndjson": "jsonl", "text/csv": "csv"}
_BLOCK = 1 << 14  # rows that are held at a time
_COLUMNS = 10_000  # of a request: more than the model has are left out
_FORM = 'the request must be JSON of the form {"rows": [{"column": value, ...}, ...]}'
_BLANK = rb"[ \t\r\n]*+"
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SIGNS = rb'[^{}\[\]"]*+'
_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?+%b(\{%b\"rows\"%b:%b)?+\[" % ((_BLANK,) * 4))
_ROW = re.compile(
    rb"%b(\{%b(?:%b%b)*+\})%b([,\]])" % (_BLANK, _SIGNS, _STRING, _SIGNS, _BLANK), re.DOTALL
)
_END_OF_LIST, _END_OF_OBJECT = re.compile(_BLANK + rb"\]"), re.compile(_BLANK + rb"\}" + _BLANK)
_END = re.compile(_BLANK)


class TooManyRowsError(ValueError):
    """More rows than a request may have."""


def tables_of(body: bytes, kind: str, schema: Schema, limits: ServeLimits) -> Iterator[Table]:
    """Yield the rows of a request, block by block.

    Parameters
    ----------
    body : bytes
        The body of the request.
    kind : str
        Its type: "application/json", "application/x-ndjson" or "text/csv".
    schema : Schema
        Of the training table, without the target.
    limits : ServeLimits
        Limits on the number of rows.

    Yields
    ------
    Table
        Rows with the columns of the schema.
    """
    if body.startswith(tuple(MAGIC)):
        raise DataError("compressed requests are not taken")
    columns = max(_COLUMNS, 4 * len(schema.names))
    read = Limits(bytes=len(body) + 1, rows=limits.rows, columns=columns, line=len(body) + 1)
    if kind == "application/json":
        blocks = row_blocks(_rows(body, read), schema, _BLOCK, "")
    else:
        blocks = read_blocks(io.BytesIO(body), schema, _BLOCK, format=_FORMATS[kind], limits=read)
    count = 0
    for table in blocks:
        count += len(table)
        if count > limits.rows:
            raise _too_many(limits.rows)
        yield table


def _rows(body: bytes, limits: Limits) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of ``{"rows": [{...}, ...]}``, or of the list alone, one by one.

    Each row is found before it is parsed: lists within lists would take a hundred times their size,
    and other requests would wait for the parser.
    """
    begin = _BEGIN.match(body)
    if begin is None:
        raise DataError(_FORM)
    at, number, more = begin.end(), 0, True
    if _END_OF_LIST.match(body, at):
        raise DataError("the request has no rows")
    while more:
        number += 1
        found = _ROW.match(body, at)
        if found is None:
            raise DataError(
                f"row {number}, from byte {at} on, must be an object whose values are numbers, "
                "words, true, false or null"
            )
        if limits.rows is not None and number > limits.rows:
            raise _too_many(limits.rows)
        try:
            text = found[1].decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"row {number} is not UTF-8") from error
        yield number, json_row(text, "", number, limits, _refuse_constant)
        at, more = found.end(), found[2] == b","
    if not (_END if begin[1] is None else _END_OF_OBJECT).fullmatch(body, at):
        raise DataError(_FORM)


def _too_many(most: int) -> TooManyRowsError:
    return TooManyRowsError(f"a request may have {most} rows at most")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number; write null if a value is missing")


# --- page ----------------------------------------------------------------------------------------
#
# The page of a server: the predictions of the model, its inputs, and an example request.

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884; }
td { overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8884; border-radius: .4rem; }
"""
_MOST = 200  # columns that are listed
_LONG = 80  # characters of a name
_SHOWN = 3  # columns of the example


def page(described: dict[str, Any], host: str) -> str:
    """Write the page.

    Parameters
    ----------
    described : dict
        The response of `/schema`.
    host : str
        Name and port of the server, and its mount path, for the example.
    """
    columns = described["columns"]
    rows = "".join(
        f"<tr><td>{_text(one['name'])}</td><td>{_text(one['kind'])}</td></tr>"
        for one in columns[:_MOST]
    )
    rest = len(columns) - _MOST
    more = f"<p>and {rest} more columns, all of them at /schema</p>" if rest > 0 else ""
    classes = ", ".join(map(str, described.get("classes", [])))
    told = f"<p>Classes: {_text(classes, 400)}</p>" if classes else ""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{_text(described['target'])}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{_text(described['target'])}</h1>"
        f"<p>{_text(described['task'])} by {_text(described['machine'])}, "
        f"{'certified' if described['certified'] else 'NOT certified'}.</p>{told}"
        f"<h2>Ask</h2><pre>{escape(_example(columns, host))}</pre>"
        "<p>CSV with a header (<code>text/csv</code>) and JSON lines "
        "(<code>application/x-ndjson</code>) are read as well; <code>?proba=1</code> adds "
        "probabilities. <a href='schema'>/schema</a>, <a href='health'>/health</a> and "
        "<a href='metrics'>/metrics</a> are for programs, and ask for the token in a header."
        f"</p><h2>Columns</h2><table><tr><th>name</th><th>kind</th></tr>{rows}</table>{more}"
        "</body></html>"
    )


def _example(columns: list[dict[str, Any]], host: str) -> str:
    row = {one["name"]: _VALUES.get(one["kind"], "...") for one in columns[:_SHOWN]}
    body = json.dumps({"rows": [row]})
    if len(columns) > _SHOWN:
        body = body.replace("}]", ", ...}]")
    quoted = body.replace("'", "'\\''")
    return (
        f"curl http://{host}/predict -H 'Authorization: Bearer TOKEN' \\\n"
        f"  -H 'Content-Type: application/json' -d '{quoted}'"
    )


_VALUES: dict[str, Any] = {"number": 1.5, "date": "2026-01-31"}


def _text(value: Any, most: int = _LONG) -> str:
    words = str(value)
    return escape(words if len(words) <= most else f"{words[: most - 3]}...")


# --- application ---------------------------------------------------------------------------------
#
# The ASGI application: requests and responses for each path.

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_APPLICATION_LIMITS = ServeLimits()
_WORKING = 4  # requests that are read and predicted at the same time; others wait


def application(
    model: TableModel,
    *,
    token: str | None,
    hosts: Collection[str] = LOOPBACK,
    limits: ServeLimits = _APPLICATION_LIMITS,
) -> Any:
    """Make an ASGI application that serves predictions; any ASGI server runs or mounts it.

    `GET /` is a page for people, `/schema` the columns, `/health` whether the server is there,
    `/metrics` counters in Prometheus' format. `POST /predict` takes rows as JSON, JSON lines or CSV
    and responds in JSON, or in CSV to CSV.

    Parameters
    ----------
    model : TableModel
        Made by `mercer.fit`, or loaded.
    token : str or None
        What requests must bring in the header ``Authorization: Bearer``; None asks for none, which
        leaves the model to everybody who reaches the server.
    hosts : collection of str
        Accepted Host headers, with the port unless it is the default.
    limits : ServeLimits
        Limits for clients.

    Returns
    -------
    ASGI application
        The guard around a Starlette application.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> from mercer.serve import application
    >>> x = np.random.default_rng(0).normal(size=100)
    >>> model = mercer.fit({"x": x, "y": np.where(x > 0, "up", "down")}, "y", kernels=["linear"])
    >>> app = application(model, token="secret", hosts=["models.example"])  # for uvicorn, mounts
    """
    if not isinstance(model, TableModel):
        raise TypeError(
            f"serve: model is a {type(model).__name__}; a model of a table, as mercer.fit makes "
            "it, is needed: it knows its columns"
        )
    if token is not None and len(token) < 1:
        raise ValueError("serve: token='' must not be empty; pass None to ask for none")
    metrics = Metrics()
    answering = PredictionApp(model, limits, metrics)
    routes = [
        Route("/", answering.page, methods=["GET"]),
        Route("/schema", answering.schema, methods=["GET"]),
        Route("/health", answering.health, methods=["GET"]),
        Route("/metrics", answering.counters, methods=["GET"]),
        Route("/predict", answering.predict, methods=["POST"]),
    ]
    errors: Any = {
        404: _not_found,
        405: _not_allowed,
        RefusedError: _refused,
        Exception: _failed,
    }
    return Guard(Starlette(routes=routes, exception_handlers=errors), hosts, token, limits, metrics)


class PredictionApp:
    """The response for each path."""

    def __init__(self, model: TableModel, limits: ServeLimits, metrics: Metrics) -> None:
        self.model, self.limits, self.metrics = model, limits, metrics
        self.columns = model.schema.drop(model.target).without_identifiers()
        self.working = asyncio.Semaphore(_WORKING)

    def described(self) -> dict[str, Any]:
        """Return the description of the outputs and inputs of the model."""
        kinds = self.columns.kinds.items()
        found = {
            "target": self.model.target,
            "task": self.model.task,
            "machine": type(self.model.machine).__name__,
            "certified": bool(self.model.certificate.ok),
            "columns": [{"name": name, "kind": kind.value} for name, kind in kinds],
        }
        if self.model.task == "classification":
            found["classes"] = [_plain(label) for label in self.model.classes]
        return found

    async def page(self, request: Request) -> Response:
        """Show the page for people."""
        return HTMLResponse(
            page(self.described(), request.headers["host"] + request.scope.get("root_path", ""))
        )

    async def schema(self, request: Request) -> Response:
        """Respond with the description of the model."""
        return JSONResponse(self.described())

    async def health(self, request: Request) -> Response:
        """Say that the server is there."""
        return JSONResponse({"status": "ok"})

    async def counters(self, request: Request) -> Response:
        """Respond with the counters."""
        return PlainTextResponse(self.metrics.text())

    async def predict(self, request: Request) -> Response:
        """Predict the rows of a request."""
        kind = request.headers["content-type"].partition(";")[0].strip().lower()
        work = partial(self._response, await request.body(), kind, _flag(request))
        try:
            async with self.working:
                return await run_in_threadpool(work)
        except TooManyRowsError as error:
            raise RefusedError(413, str(error)) from error
        except (ValueError, TypeError, AttributeError) as error:
            raise RefusedError(422, str(error)) from error

    def _response(self, body: bytes, kind: str, proba: bool) -> Response:
        predictions, probabilities = self.answers(body, kind, proba)
        if kind == "text/csv":
            return self._csv(predictions, probabilities)
        found: dict[str, Any] = {
            "target": self.model.target,
            "predictions": [_plain(one) for one in predictions.tolist()],
        }
        if probabilities is None:
            return JSONResponse(found)
        found["classes"] = [_plain(label) for label in self.model.classes]
        # row by row: one call for all would hold up other requests
        rows = ",".join(json.dumps(row, allow_nan=False) for row in probabilities.tolist())
        text = f'{json.dumps(found)[:-1]}, "probabilities": [{rows}]}}'
        return Response(text, media_type="application/json")

    def answers(self, body: bytes, kind: str, proba: bool) -> tuple[Array, Array | None]:
        """Return predictions, and probabilities on request."""
        begun = time.perf_counter()
        predictions, probabilities = [], []
        for table in tables_of(body, kind, self.columns, self.limits):
            predictions.append(self.model.predict(table))
            if proba:
                probabilities.append(self.model.predict_proba(table))
        if not predictions:
            raise ValueError("the request has no rows")
        found = np.concatenate(predictions)
        self.metrics.predicted(len(found), time.perf_counter() - begun)
        return found, np.concatenate(probabilities) if proba else None

    def _csv(self, predictions: Array, probabilities: Array | None) -> Response:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        names = [self.model.target]
        columns = [predictions.tolist()]
        if probabilities is not None:
            names += [f"p({label})" for label in self.model.classes]
            columns += probabilities.T.tolist()
        writer.writerow(names)
        writer.writerows(zip(*columns, strict=True))
        return Response(text.getvalue(), media_type="text/csv")


def _flag(request: Request) -> bool:
    unknown = set(request.query_params) - {"proba"}
    word = request.query_params.get("proba", "0")
    if unknown or word not in ("0", "1"):
        raise RefusedError(400, "the only option is ?proba=1")
    return word == "1"


def _plain(value: Any) -> Any:
    """Return a value that JSON has: NumPy's numbers as Python's, others by their words."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


async def _refused(request: Request, error: Any) -> Response:
    return JSONResponse({"error": error.reason}, error.status)


async def _not_found(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "there is nothing at this path; see /"}, 404)


async def _not_allowed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "this path is asked in another way; see /"}, 405)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "the request could not be answered"}, 500)


# --- run -----------------------------------------------------------------------------------------
#
# Run a server locally.

_RUN_LIMITS = ServeLimits()
_HEADER = 16 << 10  # bytes of the head of a request
_IDLE = 2  # seconds that a connection is kept after a response
_CONNECTIONS = 512  # open ones; `ServeLimits` limits their simultaneous requests


def new_token() -> str:
    """Make a random token that cannot be guessed."""
    return secrets.token_urlsafe(24)


def run(
    model: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: ServeLimits = _RUN_LIMITS,
) -> None:
    """Serve predictions until Ctrl-C, on loopback only.

    Parameters
    ----------
    model : TableModel
        Made by `mercer.fit`, or loaded.
    host : str
        A loopback address of this computer: 127.0.0.1, ::1 or localhost. To serve
        others, run `mercer.serve.application` behind a server that authenticates them.
    port : int
        Port to listen on.
    token : str or None
        Required token; None creates one.
    limits : ServeLimits
        Limits for clients.
    """
    if not is_loopback(host):
        raise ValueError(
            f"serve: host={host!r} can be reached from other computers; use 127.0.0.1, and in "
            "front of it a server that authenticates clients"
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
    """Return whether an address is a loopback address.

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
