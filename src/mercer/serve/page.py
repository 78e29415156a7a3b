"""The page of a server: what the model predicts, from what, and how to ask."""

from __future__ import annotations

import json
from html import escape
from typing import Any

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
        What `/schema` answers.
    host : str
        Name and port of the server, and where it is mounted, for the example.
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
