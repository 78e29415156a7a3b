"""The process behind a page: what it broke off for one page is no matter of the next."""

import io
import json

from mercer.studio.jobs import __main__ as process


def test_requests_of_the_next_page_are_not_broken_off(monkeypatch):
    """Pages count their requests from one: a cancel that came too late must not meet another."""
    monkeypatch.setattr(process.os, "_exit", lambda code: None)
    monkeypatch.setattr(process, "job_of", lambda do: lambda bench, request, tell: {"done": True})
    told = io.StringIO()
    for lines in ('{"cancel": 1}', '{"cancel": 1}\n{"begin": true}'):
        works = process.Process(io.StringIO(lines), told)
        works._listen()
        works._answer({"id": 1, "do": "fit"})
    kinds = [json.loads(line.split(" ", 2)[2])["kind"] for line in told.getvalue().splitlines()]
    assert kinds == ["cancelled", "answer"]
