"""Kernels of sequences, against counting by hand and enumeration of all places."""

from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.backends import available_backends
from mercer.kernels import Gaussian, Spectrum, Subsequence
from mercer.resources import config
from mercer.testing import check_kernel

WORDS = ["banana", "bandana", "", "b", "an", "nab", "ananas", "cab"]
TOKENS = [w.split() for w in ("the cat sat", "the cat sat on the mat", "a mat", "cat")]


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


def grams(s, k):
    return Counter(tuple(s[i : i + k]) for i in range(len(s) - k + 1))


def spectrum(s, t, k):
    mine, other = grams(s, k), grams(t, k)
    return sum(count * other[u] for u, count in mine.items())


def places(s, k, decay):
    weights = defaultdict(float)
    for i in combinations(range(len(s)), k):
        weights[tuple(s[j] for j in i)] += decay ** (i[-1] - i[0] + 1)
    return weights


def subsequence(s, t, k, decay):
    mine, other = places(s, k, decay), places(t, k, decay)
    return sum(w * other[u] for u, w in mine.items() if u in other)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("rows", [WORDS, TOKENS])
def test_spectrum_counts_common_pieces(k, rows):
    wanted = [[spectrum(s, t, k) for t in rows] for s in rows]
    np.testing.assert_array_equal(Spectrum(k)(rows), wanted)
    np.testing.assert_array_equal(Spectrum(k)(rows, rows[:2]), np.array(wanted)[:, :2])


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("decay", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("rows", [WORDS, TOKENS])
def test_subsequence_against_enumeration(k, decay, rows):
    wanted = [[subsequence(s, t, k, decay) for t in rows] for s in rows]
    np.testing.assert_allclose(Subsequence(k, decay)(rows), wanted, rtol=1e-13, atol=1e-300)


def test_subsequence_of_the_paper():
    # Lodhi et al.: K(cat, car) = decay^4, K(cat, cat) = 2 decay^4 + decay^6
    K = Subsequence(2, 0.5)(["cat", "car"])
    assert K[0, 1] == 0.5**4
    assert K[0, 0] == 2 * 0.5**4 + 0.5**6
    normal = Subsequence(2, 0.5).normalized()(["cat", "car"])
    np.testing.assert_allclose(normal[0, 1], 1 / (2 + 0.5**2), rtol=1e-14)


sequences = st.lists(st.text("abc", max_size=7), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(sequences, sequences, st.integers(1, 4), st.floats(0.05, 1.0))
def test_both_on_random_words(rows, columns, k, decay):
    wanted = [[spectrum(s, t, k) for t in columns] for s in rows]
    np.testing.assert_array_equal(Spectrum(k)(rows, columns), wanted)
    wanted = [[subsequence(s, t, k, decay) for t in columns] for s in rows]
    np.testing.assert_allclose(
        Subsequence(k, decay)(rows, columns), wanted, rtol=1e-12, atol=1e-300
    )


def test_blocks_give_the_same(monkeypatch):
    whole = Subsequence(2)(WORDS)
    monkeypatch.setattr("mercer.kernels.sequences._BLOCK", 3)
    np.testing.assert_allclose(Subsequence(2)(WORDS), whole, rtol=1e-14)


@pytest.mark.parametrize("rows", [WORDS[:2] + WORDS[3:], TOKENS])
@pytest.mark.parametrize(
    "kernel",
    [Spectrum(1), Spectrum(2).normalized(), Subsequence(2), Subsequence(1, 0.9) + 2 * Spectrum(1)],
)
def test_kit(kernel, rows):
    check_kernel(kernel, rows)


def test_an_empty_word_resembles_nothing():
    assert Spectrum(1).normalized()(["", "a"]).tolist() == [[0, 0], [0, 1]]


def test_rows_of_numbers_and_words_are_told_apart():
    with pytest.raises(TypeError, match="Spectrum compares strings"):
        Spectrum()([[1.0, 2.0]])
    with pytest.raises(TypeError, match="another kernel of strings"):
        Gaussian()(WORDS)
    with pytest.raises(TypeError, match="one of X and Y"):
        Spectrum()(WORDS, [[1.0]])


@pytest.mark.parametrize("decay", [0.0, 1.1, -0.5, np.nan])
def test_decay_is_a_fraction(decay):
    with pytest.raises(ValueError, match="Subsequence: decay"):
        Subsequence(decay=decay)


def test_k_counts():
    with pytest.raises(ValueError, match="Spectrum: k=0"):
        Spectrum(0)


def test_subsequences_longer_than_every_row():
    assert not Subsequence(k=10**6)(["cat", "car"]).any()
