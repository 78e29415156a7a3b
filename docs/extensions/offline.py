"""The site needs no network: MathJax is part of it, and nothing is loaded from elsewhere.

MathJax comes with the package sphinx-mathjax-offline, a plain wheel, so building the site needs no
Node and no download beside pip's. Of its 24 MB one file is copied: TeX in, SVG out, with all
extensions and its font inside.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

MATHJAX = "tex-svg-full.js"
LOADED = {"script", "img", "iframe", "source", "video", "audio", "embed", "object", "link"}
HARMLESS_LINKS = {"canonical", "next", "prev", "index", "search", "author", "license", "help"}
OUTSIDE = re.compile(r"^\s*(?:https?:)?//", flags=re.IGNORECASE)
TAGS = re.compile(rf"<(?:{'|'.join(sorted(LOADED))})\b[^>]*>|<[^>]+\bstyle=[^>]+>", re.IGNORECASE)
IN_STYLES = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


class OfflineError(Exception):
    """The site would need a network."""


class _Loads(HTMLParser):
    """Collect the addresses outside the site that a browser would load by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.found += IN_STYLES.findall(given.get("style", ""))
        if tag not in LOADED or (tag == "link" and given.get("rel") in HARMLESS_LINKS):
            return
        named = [given.get(name, "") for name in ("src", "href", "data", "poster")]
        named += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]
        self.found += [address for address in named if OUTSIDE.match(address)]


def loaded_from_outside(html: str) -> list[str]:
    """Return the addresses on other sites that a page loads; links to follow are no matter."""
    reader = _Loads()
    for tag in TAGS.findall(html):  # parsing whole pages of source code would take seconds
        reader.feed(tag)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", html, flags=re.DOTALL | re.IGNORECASE)
    return reader.found + [found for style in styles for found in IN_STYLES.findall(style)]


def check_site(folder: Path) -> list[str]:
    """Return 'page: address' for whatever a built site loads from outside."""
    wrong = []
    for page in sorted(folder.rglob("*.html")):
        for address in loaded_from_outside(page.read_text(encoding="utf-8")):
            wrong.append(f"{page.relative_to(folder)}: {address}")
    for sheet in sorted(folder.rglob("*.css")):
        for address in IN_STYLES.findall(sheet.read_text(encoding="utf-8")):
            wrong.append(f"{sheet.relative_to(folder)}: {address}")
    return wrong


def _finish(app: Any, problem: Exception | None) -> None:
    if problem is not None or app.builder.format != "html":
        return
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    if package is None or package.origin is None:
        raise OfflineError("install sphinx-mathjax-offline: pip install --group docs")
    source = Path(package.origin).parent / "static" / "mathjax" / MATHJAX
    shutil.copyfile(source, Path(app.outdir) / "_static" / MATHJAX)
    wrong = check_site(Path(app.outdir))
    if wrong:
        raise OfflineError("loaded from outside the site:\n  " + "\n  ".join(wrong[:20]))


def setup(app: Any) -> dict[str, Any]:
    """Copy MathJax into the finished site, and look at all its pages."""
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
