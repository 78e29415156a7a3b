"""What the front page prints is what its lines print now, as far as machines agree.

Scores are shares of few rows, and one row near a border may fall on either side: scores, and what
follows from them, may differ by two rows. Seconds may differ as they like.
"""

import re
from pathlib import Path

import matplotlib as mpl
import pytest
from snippets import carried_output, run_page

README = Path(__file__).parents[2] / "README.md"
REMEDY = "run: python docs/extensions/snippets.py --write README.md"
SCORE = re.compile(r"^[ *] (.+?) +([\d.]+) \+- [\d.]+ +[\d.]+ \+- [\d.]+ +(\d+) +[\d.]+$", re.M)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@pytest.fixture(scope="module")
def pages():
    text = README.read_text(encoding="utf-8")
    with mpl.rc_context({"backend": "agg"}):
        ran = [(printed, len(figures)) for printed, figures in run_page(text, "README.md")]
        mpl.pyplot.close("all")
    assert [count for _, count in ran] == [1]
    return carried_output(text)[0], ran[0][0]


def test_the_table_of_kernels(pages):
    said, printed = (SCORE.findall(page) for page in pages)
    assert len(printed) >= 4
    assert [(name, points) for name, _, points in said] == [(n, p) for n, _, p in printed], REMEDY
    scores = [[float(score) for _, score, _ in page] for page in (said, printed)]
    assert scores[0] == pytest.approx(scores[1], abs=0.006), REMEDY


def test_one_kernel_is_taken_and_the_reason_is_told(pages):
    for page in pages:
        starred = re.search(r"^\* (\w+)", page, re.M)[1]
        assert f"Selected: {starred}." in page


def test_the_share_of_new_rows(pages):
    said, printed = (float(re.search(r"([\d.]+)% of 143 new", page)[1]) for page in pages)
    assert said == pytest.approx(printed, abs=1.5), REMEDY


def test_the_words_of_the_certificate(pages):
    said, printed = (NUMBER.sub("#", page.splitlines()[-1]) for page in pages)
    assert said == printed, REMEDY
    assert said.startswith("certified: ")
    for page in pages:
        violation, _ = map(float, NUMBER.findall(page.splitlines()[-1]))
        assert violation <= 1e-3


def test_pictures_and_pages_that_are_linked_exist():
    text = README.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (README.parent / link).exists(), link
