"""`mercer serve`: serve predictions over HTTP on this computer."""

from __future__ import annotations

import os
import sys

import click

from mercer.command.models import MODEL, table_model
from mercer.command.work import CommandSession, Work, python

_TOKEN = "MERCER_TOKEN"  # a variable, because all users of a computer can read its command lines


@click.command(
    cls=Work,
    examples=["serve income.mercer", "serve income.mercer --port 9000 --max-rows 1000"],
    help="Serve predictions over HTTP on this computer until Ctrl-C.\n\nPOST /predict accepts "
    "rows as JSON, JSON lines or CSV. GET / shows the columns and an example. Requests need a "
    f"token: the value of the variable {_TOKEN}, or one that is printed at the start.",
)
@MODEL
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Loopback address to listen on."
)
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Port to listen on.",
)
@click.option(
    "--max-rows",
    default=200_000,
    show_default=True,
    type=click.IntRange(1),
    help="Maximum number of rows per request.",
)
@click.option(
    "--max-bytes",
    default=64 << 20,
    show_default=True,
    type=click.IntRange(1),
    help="Maximum size of a request in bytes.",
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
            'mercer serve needs starlette and uvicorn: pip install "mercer[serve]"'
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
