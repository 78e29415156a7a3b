"""Names and entries of the data reach the page as text, whatever they are (E8)."""

import dataclasses

import numpy as np
import pytest
from report.hostile_names import HOSTILE
from report.page_reader import read

from mercer import SVC
from mercer.data import Table
from mercer.report import model_card, render
from mercer.report.write import plain


def test_hostile_names_are_text(hostile):
    page = render(hostile)
    found = read(page)
    text = "".join(found.text)
    assert "<script>alert(1)</script>" in text
    assert '"><img src=x onerror=alert(1)>' in text
    assert "{{ 7 * 7 }}" in text
    assert "😀" in text
    for letter in "\u202e\u202c\u2066\x00\x07\x1b\u2028":
        assert letter not in page
    assert len(page) < 2_000_000
    assert "x" * 1000 not in page


def test_hostile_words_of_the_fit_are_text(hostile):
    nasty = "".join(HOSTILE[:8])
    settings = dataclasses.replace(
        hostile.settings,
        source=nasty,
        versions={nasty: nasty},
        options={nasty: nasty},
        seconds={nasty: 1.0},
        digest=nasty,
    )
    findings = [
        dataclasses.replace(one, message=nasty, code=nasty) for one in list(hostile.findings)[:2]
    ]
    model = dataclasses.replace(
        hostile, settings=settings, notes=(nasty,), python=nasty, findings=findings
    )
    read(render(model, command=nasty))


def test_lone_halves_of_pairs_can_be_written(classifier):
    model = dataclasses.replace(classifier, notes=("\ud800 alone",))
    assert render(model).encode("utf-8")


def test_ten_million_letters_and_five_thousand_columns():
    rng = np.random.default_rng(0)
    names = ["x" * 10_000_000, *(f"<i>{k}</i>" for k in range(4999))]
    X = rng.normal(size=(30, 5000))
    table = Table.of(X, names=names)
    machine = SVC(kernel="linear").fit(X, X[:, 0] > 0)
    page = render(machine, X=table)
    found = read(page)
    assert len(page) < 2_000_000
    assert "4,960 more columns" in "".join(found.text)


def test_a_card_is_markdown_without_surprises(hostile):
    card = model_card(hostile)
    assert "<" not in card
    assert "&lt;script&gt;" in card
    for letter in "\u202e\x00":
        assert letter not in card
    lines = [line for line in card.splitlines() if line.startswith("|")]
    assert lines


@pytest.mark.parametrize("name", HOSTILE[:6])
def test_targets_may_be_called_anything(classifier, name):
    found = read(render(dataclasses.replace(classifier, table=None, target=name)))
    assert name[:20] in "".join(found.text)


def test_a_card_links_to_nothing():
    said = plain("https://evil.example www.evil.example a@b.example [x](y)")
    assert said == r"https\://evil.example www\.evil.example a\@b.example \[x\]\(y\)"
