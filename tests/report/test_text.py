"""Words and numbers as pages show them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.report.text import clean, clean_lines, count, duration, figure, listed, share, size


@given(st.text(), st.integers(2, 50))
def test_clean_text_is_visible_and_short(text, most):
    found = clean(text, most)
    assert len(found) <= most + 2  # marks around what is written from right to left
    assert all(one.isprintable() or one in "\u2068\u2069" for one in found)
    assert found.count("\u2068") == found.count("\u2069")
    assert clean(found, most + 2) == found


def test_what_is_written_leftwards_stays_among_itself():
    assert clean("שלום") == "\u2068שלום\u2069"
    assert clean(f"{clean('שלום')} (38 %)") == "\u2068שלום\u2069 (38 %)"
    assert clean("\u2069 a \u2068") == "� a �"


def test_control_characters_get_their_signs():
    assert clean("a\x00b\nc\x7f") == "a␀b␊c␡"
    assert clean("\u202egnp.exe") == "�gnp.exe"
    assert clean("\ud800") == "�"
    assert clean("a\u00a0b\u3000c") == "a b c"
    assert clean(b"\xff\xfe") == "��"


def test_lines_stay_lines():
    assert clean_lines("a\n\tb\r\u202e") == "a\n    b␍�"
    assert clean_lines("x" * 100, 10) == "x" * 10 + "\n…"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), (-0.25, "−0.25"), (1234.5, "1,234"), (3e-7, "3e-07"), (np.float64(2), "2"),
     (float("nan"), "not a number"), (-np.inf, "−∞"), (False, "no"), (10**6, "1,000,000")],
)  # fmt: skip
def test_figures(value, text):
    assert figure(value) == text


def test_units():
    assert (size(0), size(1500), size(3e9), size(5e13)) == ("0 bytes", "1.5 kB", "3 GB", "5e+04 GB")
    assert (duration(2e-6), duration(0.25), duration(600)) == ("2 µs", "250 ms", "10 min")
    assert (share(0.123), share(float("nan"))) == ("12.3 %", "–")
    assert (count(1, "row"), count(2, "class", "classes")) == ("1 row", "2 classes")
    assert (listed([]), listed(["a"]), listed(["a", "b"])) == ("none", "a", "a and b")
