"""`mercer studio`: open an interactive page to explore estimators."""

from __future__ import annotations

import click

from mercer.command.work import CommandSession, Work, python


@click.command(
    cls=Work,
    examples=["studio", "studio iris.csv", "studio --port 9000 --no-browser"],
    help="Open an interactive page to explore estimators.\n\nPaint samples and choose an estimator "
    "and a kernel. The page starts with the table DATA; you can drop other tables on it. No data "
    "leave this computer. The address contains a token that changes at every start. Press Ctrl-C "
    "to stop.",
)
@click.argument("data", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; only loopback is private to this computer.",
)
@click.option(
    "--port",
    default=8800,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Port to listen on.",
)
@click.option(
    "--browser/--no-browser", default=True, help="Open a browser, or only print the address."
)
@python
@click.pass_obj
def studio(
    session: CommandSession, /, data: str | None, host: str, port: int, browser: bool, python: bool
) -> None:
    """Run the studio."""
    if python:
        given = "" if data is None else f"{data!r}, "
        session.program(
            [
                "from mercer.studio import run",
                "",
                f"run({given}host={host!r}, port={port}, browser={browser})",
            ]
        )
        return
    try:
        import wsproto  # noqa: F401, PLC0415  of the extra: uvicorn looks for it when asked

        from mercer.studio import run  # noqa: PLC0415  an extra
    except ImportError as missing:
        raise ImportError(
            'mercer studio needs starlette, uvicorn and wsproto: pip install "mercer[studio]"'
        ) from missing
    run(data, host=host, port=port, browser=browser)
