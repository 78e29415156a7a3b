"""The certificate on the front page is what its ten lines print, as far as machines agree.

Figures that the optimum decides agree to few digits wherever they are computed. How far within its
tolerance a solver stops depends on the order of its steps: of those figures only the size can be
compared, and the words.
"""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1].parent / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
DECIDED = ["primal", "dual", "squared norm", "margin", "support fraction", "bound fraction"]
DECIDED += ["radius", "indefiniteness"]


def figures(text):
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    return {line[2:].rsplit(None, 1)[0].strip(): float(line.split()[-1]) for line in lines}


@pytest.fixture(scope="module")
def said():
    block = re.search(r"^## What a certificate says\n+```\n(.*?)^```", README, re.M | re.S)
    return block[1]


@pytest.fixture(scope="module")
def printed():
    code = re.search(r"^```python\n(.*?^print\(machine.certificate_\)\n)", README, re.M | re.S)
    scope = {"__name__": "readme", "print": lambda *_: None}
    exec(compile(code[1], "README.md", "exec"), scope)  # the code under test is our own page
    return str(scope["machine"].certificate_)


def test_the_words_are_those_of_the_page(said, printed):
    first, second = (NUMBER.sub("#", text.splitlines()[0]) for text in (said, printed))
    assert first == second
    assert list(figures(said)) == list(figures(printed))


def test_the_figures_are_those_of_the_page(said, printed):
    page, here = figures(said), figures(printed)
    for name in DECIDED:
        assert page[name] == pytest.approx(here[name], rel=2e-3), name
    for found in (page, here):
        assert found["primal"] - found["dual"] == pytest.approx(found["gap"], abs=2e-3)
        assert 0 <= found["gap"] <= 1e-3 * found["dual"]
        assert all(found[name] <= 1e-3 for name in found if name.startswith("violation"))
        assert found["infeasibility"] <= 1e-9


def test_the_page_agrees_with_itself(said):
    sentence, found = said.splitlines()[0], figures(said)
    assert f"more than {found['violation']:.1e}" in sentence
    assert f"within {100 * found['relative gap']:.2g} %" in sentence
