"""The ASGI application: what is asked at which path, and how it is answered."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Collection
from functools import partial
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mercer.array_types import Array
from mercer.fitting import TableModel
from mercer.serve.guard import Guard, RefusedError
from mercer.serve.limits import ServeLimits
from mercer.serve.metrics import Metrics
from mercer.serve.page import page
from mercer.serve.rows import TooManyRowsError, tables_of

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LIMITS = ServeLimits()


def application(
    model: TableModel,
    *,
    token: str | None,
    hosts: Collection[str] = LOOPBACK,
    limits: ServeLimits = _LIMITS,
) -> Any:
    """Make an ASGI application that answers with a model; any ASGI server runs or mounts it.

    `GET /` is a page for people, `/schema` the columns, `/health` whether the server is there,
    `/metrics` counters in Prometheus' format. `POST /predict` takes rows as JSON, JSON lines or CSV
    and answers in JSON, or in CSV where that was sent.

    Parameters
    ----------
    model : TableModel
        Made by `mercer.fit`, or loaded.
    token : str or None
        What requests must bring in the header ``Authorization: Bearer``; None asks for none, which
        leaves the model to everybody who reaches the server.
    hosts : collection of str
        Host headers that are answered, with the port where it is not the usual one.
    limits : ServeLimits
        How much is taken from clients.

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
    answering = Answering(model, limits, metrics)
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


class Answering:
    """What is answered at each path."""

    def __init__(self, model: TableModel, limits: ServeLimits, metrics: Metrics) -> None:
        self.model, self.limits, self.metrics = model, limits, metrics
        self.columns = model.schema.drop(model.target).without_identifiers()

    def described(self) -> dict[str, Any]:
        """Return what the model predicts, and from what."""
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
        """Say what the model predicts, and from what."""
        return JSONResponse(self.described())

    async def health(self, request: Request) -> Response:
        """Say that the server is there."""
        return JSONResponse({"status": "ok"})

    async def counters(self, request: Request) -> Response:
        """Say what was done so far."""
        return PlainTextResponse(self.metrics.text())

    async def predict(self, request: Request) -> Response:
        """Predict the rows of a request."""
        kind = request.headers["content-type"].partition(";")[0].strip().lower()
        proba = _flag(request)
        work = partial(self.answers, await request.body(), kind, proba)
        try:
            predictions, probabilities = await run_in_threadpool(work)
        except TooManyRowsError as error:
            raise RefusedError(413, str(error)) from error
        except (ValueError, TypeError, AttributeError) as error:
            raise RefusedError(422, str(error)) from error
        if kind == "text/csv":
            return self._csv(predictions, probabilities)
        found: dict[str, Any] = {
            "target": self.model.target,
            "predictions": [_plain(one) for one in predictions.tolist()],
        }
        if probabilities is not None:
            found["classes"] = [_plain(label) for label in self.model.classes]
            found["probabilities"] = probabilities.tolist()
        return JSONResponse(found)

    def answers(self, body: bytes, kind: str, proba: bool) -> tuple[Array, Array | None]:
        """Return predictions, and probabilities where they are asked for."""
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
