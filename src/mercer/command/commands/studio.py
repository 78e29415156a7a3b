"""`mercer studio`: a local page that shows kernel machines at work."""

from __future__ import annotations

import click

from mercer.command.work import CommandSession, Work, python


@click.command(
    cls=Work,
    examples=["studio", "studio iris.csv", "studio --port 9000 --no-browser"],
    help="Open a local page to see machines at work.\n\nPaint points, choose a machine and a "
    "kernel. DATA is a table to begin with; others can be dropped on the page. Nothing leaves "
    "this machine. The address holds a token, which is made anew at every start. Ctrl-C ends it.",
)
@click.argument("data", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen; other addresses than loopback can be reached from other machines.",
)
@click.option(
    "--port",
    default=8800,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Where to listen.",
)
@click.option("--browser/--no-browser", default=True, help="Whether a browser is opened.")
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
            'studio needs starlette, uvicorn and wsproto: pip install "mercer[studio]"'
        ) from missing
    run(data, host=host, port=port, browser=browser)
