"""The code on the page about autoencoders runs, and prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="make test-torch")
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "autoencoders.md"
BLOCK = re.compile(r"^```py\n(.*?)^```\n\n```text\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore:.*iteration limit")
def test_the_page_prints_what_it_shows():
    scope, found = {}, BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(found) == 3
    for code, shown in found:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, PAGE.name, "exec"), scope)
        first = printed.getvalue().splitlines()[0]
        # numbers are those of one machine: what is said about them is the same on all
        assert re.sub(r"[\d.]+e-\d+", "x", first) == re.sub(r"[\d.]+e-\d+", "x", shown.strip())
