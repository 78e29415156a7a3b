"""`mercer serve`: answers of a model over HTTP, on this machine."""

from __future__ import annotations

import os
import sys

import click

from mercer.command.models import MODEL, table_model
from mercer.command.work import CommandSession, Work, python

_TOKEN = "MERCER_TOKEN"  # the variable; a command line can be read by every user of a machine


@click.command(
    cls=Work,
    examples=["serve income.mercer", "serve income.mercer --port 9000 --max-rows 1000"],
    help="Answer with a model over HTTP, on this machine, until Ctrl-C.\n\nPOST /predict takes "
    "rows as JSON, JSON lines or CSV; GET / shows the columns and an example. Requests bring a "
    f"token, which is printed at the start, or taken from the variable {_TOKEN}.",
)
@MODEL
@click.option("--host", default="127.0.0.1", show_default=True, help="An address of loopback.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Where to listen.",
)
@click.option(
    "--max-rows", default=200_000, show_default=True, type=click.IntRange(1), help="Of one request."
)
@click.option(
    "--max-bytes", default=64 << 20, show_default=True, type=click.IntRange(1), help="Of a request."
)
@python
@click.pass_obj
def serve(
    session: CommandSession, /, model: str, host: str, port: int, max_rows: int, max_bytes: int,
    python: bool,
) -> None:  # fmt: skip
    """Run the server."""
    if python:
        session.program(
            [
                "import mercer",
                "from mercer.serve import ServeLimits, run",
                "",
                f"limits = ServeLimits(rows={max_rows}, body={max_bytes})",
                f"run(mercer.load({model!r}), host={host!r}, port={port}, limits=limits)",
            ]
        )
        return
    opened = table_model(model)
    try:
        from mercer.serve import ServeLimits, run  # noqa: PLC0415  an extra
        from mercer.serve.server import is_loopback, new_token  # noqa: PLC0415
    except ImportError as missing:
        raise ImportError(
            'serve needs starlette and uvicorn: pip install "mercer[serve]"'
        ) from missing
    token = os.environ.get(_TOKEN) or new_token()
    if is_loopback(host):
        shown = f"[{host}]" if ":" in host else host
        told = "" if os.environ.get(_TOKEN) else f"?token={token}"
        print(
            f"Serving {opened.target!r} at http://{shown}:{port}/{told}",
            file=sys.stderr,
            flush=True,
        )
    limits = ServeLimits(rows=max_rows, body=max_bytes)
    run(opened, host=host, port=port, token=token, limits=limits)
