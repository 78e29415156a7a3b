"""The code on pages that need torch runs, and prints what the pages say it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="make test-torch")
GUIDE = Path(__file__).parents[2] / "docs" / "guide"
BLOCK = re.compile(r"^```py\n(.*?)^```\n\n```text\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore:.*iteration limit")
@pytest.mark.parametrize(("page", "blocks"), [("autoencoders.md", 3), ("gpu.md", 3)])
def test_the_page_prints_what_it_shows(page, blocks):
    scope, found = {}, BLOCK.findall((GUIDE / page).read_text(encoding="utf-8"))
    assert len(found) == blocks
    for code, shown in found:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, page, "exec"), scope)
        first = printed.getvalue().splitlines()[0]
        # numbers are those of one machine: what is said about them is the same on all
        assert re.sub(r"[\d.]+e-\d+", "x", first) == re.sub(r"[\d.]+e-\d+", "x", shown.strip())
