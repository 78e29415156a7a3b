"""From a page to HTML: one file that loads nothing, runs nothing and escapes everything."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from mercer.report.page import Page

# what stands before a note: colour alone does not speak to everybody
_WORDS = {"good": "Good", "info": "Note", "warning": "Warning", "error": "Error"}


def to_html(page: Page) -> str:
    """Write a page as HTML.

    Names out of the data reach it as text of elements only, escaped by the template; drawings have
    been escaped where they were made.
    """
    template, style = _template()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return str(template.render(page=page, style=style, style_hash=f"sha256-{digest}", words=_WORDS))


@cache
def _template() -> tuple[Any, str]:
    """Read the template and the style, once."""
    try:
        from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  an optional package
        from markupsafe import Markup  # noqa: PLC0415
    except ImportError as missing:
        raise ImportError(
            'reports are written with jinja2; install it with pip install "mercer[report]"'
        ) from missing
    folder = files("mercer.report") / "templates"
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = (folder / "page.html").read_text(encoding="utf-8")
    return environment.from_string(text), Markup((folder / "style.css").read_text("utf-8"))
