"""Counts of k-grams: exact, counted once, remembered by content and within bounds."""

import os
import sys
import threading
from collections import Counter

import numpy as np
import pytest

from mercer import SVC, deadline
from mercer.kernels import Spectrum, Subsequence
from mercer.kernels import sequences as kgram_counts
from mercer.kernels.sequences import (
    KgramTable,
    Numbering,
    count_kgrams,
    products,
    remembered_bytes,
)
from mercer.resources import config
from mercer.rows.points import as_points
from mercer.selection import tune

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def nothing_remembered():
    kgram_counts._TABLES.clear()
    yield
    kgram_counts._TABLES.clear()


@pytest.fixture
def counted(monkeypatch):
    """Return the sequences that were counted, in order."""
    seen = []
    count = KgramTable._count

    def counting(self, new):
        seen.extend(new)
        count(self, new)

    monkeypatch.setattr(KgramTable, "_count", counting)
    return seen


def texts(n, length, letters="abcd "):
    return ["".join(rng.choice(list(letters), size=length)) for _ in range(n)]


def by_hand(rows, columns, k):
    def grams(s):
        return Counter(tuple(s[i : i + k]) for i in range(len(s) - k + 1))

    left, right = [grams(s) for s in rows], [grams(s) for s in columns]
    return [[float(sum(c * t[u] for u, c in s.items())) for t in right] for s in left]


# --- exact -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17])
def test_the_products_are_those_of_counts_by_hand(k):
    rows, others = texts(5, 60, "ab"), [*texts(4, 45, "abc"), "", "a" * 200, "ab"]
    np.testing.assert_array_equal(Spectrum(k)(rows, others), by_hand(rows, others, k))
    np.testing.assert_array_equal(Spectrum(k)(others), by_hand(others, others, k))
    np.testing.assert_array_equal(
        [Spectrum(k)([s])[0, 0] for s in others], np.diagonal(Spectrum(k)(others))
    )


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 2.0])  # all columns dense, ..., none
@pytest.mark.parametrize("columns", [1, 7, 1024])
def test_dense_and_sparse_columns_give_the_same_bits(monkeypatch, share, columns):
    rows, others = texts(30, 40), texts(20, 25, "abcdefgh")
    monkeypatch.setattr(kgram_counts, "_FREQUENT", share)
    monkeypatch.setattr(kgram_counts, "_COLUMNS", columns)
    monkeypatch.setattr(kgram_counts, "_ROWS", 7)
    np.testing.assert_array_equal(Spectrum(3)(rows, others), by_hand(rows, others, 3))
    np.testing.assert_array_equal(Spectrum(3)(rows), by_hand(rows, rows, 3))


def test_any_letters():
    rows = ["\U0010ffff\x00é\ud800", "é\ud800\U0010ffff\x00", "\x00é", "日本語日本語"]
    np.testing.assert_array_equal(Spectrum(2)(rows), by_hand(rows, rows, 2))


def test_letters_and_tokens_of_one_letter_are_the_same():
    rows = as_points(["abab", "ba"])
    tokens = as_points([["a", "b"], ["ab", "b", "a"], [1, "b", "a"]])
    np.testing.assert_array_equal(Spectrum(2)(rows, tokens), [[2, 1, 1], [0, 1, 1]])


def test_equal_tokens_of_different_types_are_equal():
    np.testing.assert_array_equal(
        Spectrum(2)(as_points([["a", 1, 2]]), as_points([["a", 1.0, np.int64(2)]])), [[2.0]]
    )


def test_chunks_do_not_matter(monkeypatch):
    rows = [*texts(20, 30), "", "a"]
    whole = Spectrum(4)(rows)
    kgram_counts._TABLES.clear()
    monkeypatch.setattr(kgram_counts, "_CHUNK", 1)
    np.testing.assert_array_equal(Spectrum(4)(rows), whole)


def test_numbers_stay_as_codes_come():
    numbering, codes = Numbering(), rng.integers(0, 1000, size=2000)
    first = numbering(codes[:1000])
    np.testing.assert_array_equal(numbering(codes)[:1000], first)
    pairs = set(zip(codes.tolist(), numbering(codes).tolist(), strict=True))
    assert len(pairs) == len(set(codes.tolist())) == len(numbering)
    assert {number for _, number in pairs} == set(range(len(numbering)))


def test_the_diagonal_is_that_of_the_matrix():
    rows = as_points([*texts(70, 12), "", "ab"])
    for kernel in (Spectrum(3), Subsequence(3, 0.7), Subsequence(1, 0.3)):
        function = kernel.expression().function
        np.testing.assert_array_equal(function.self_values(rows), np.diagonal(function(rows, rows)))


# --- counted once ----------------------------------------------------------------------------


def test_a_fit_counts_each_sequence_once(counted):
    rows, y = texts(60, 50), np.arange(60) % 2
    machine = SVC(Spectrum(3).normalized(), C=10).fit(rows, y)
    machine.predict(rows)
    assert sorted(counted) == sorted(set(rows))


def test_folds_and_settings_count_nothing_anew(counted):
    rows, y = texts(40, 50), np.arange(40) % 2
    grid = {"kernel": [Spectrum(3), Spectrum(3).normalized()], "C": [1.0, 10.0]}
    tune(SVC(), rows, y, grid=grid, cv=4)
    assert sorted(counted) == sorted(set(rows))


def test_content_not_identity(counted):
    Spectrum(2)(["abc", "ab" + "c"])
    Spectrum(2)(["".join(["a", "bc"])])
    assert counted == ["abc"]


def test_a_list_of_tokens_that_changed_is_counted_anew():
    rows = [["the", "cat"], ["the", "dog"]]
    before = Spectrum(1)(rows)
    rows[1].append("cat")
    np.testing.assert_array_equal(before, [[2, 1], [1, 2]])
    np.testing.assert_array_equal(Spectrum(1)(rows), [[2, 2], [2, 3]])


# --- bounded ---------------------------------------------------------------------------------


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(kgram_counts, "_REMEMBERED", 200_000)
    for _ in range(10):
        rows = texts(20, 100, "abcdefghijkl")
        np.testing.assert_array_equal(Spectrum(4)(rows), by_hand(rows, rows, 4))
        assert remembered_bytes() <= 200_000
    big = texts(200, 300, "abcdefghijkl")  # more than is ever remembered
    assert Spectrum(4)(big)[0, 0] == by_hand(big[:1], big[:1], 4)[0][0]
    assert remembered_bytes() == 0


def test_the_memory_budget_counts():
    rows = texts(100, 300, "abcdefghijkl")
    Spectrum(4)(rows)
    assert remembered_bytes() > 100_000
    with config(memory=400_000):
        Spectrum(4)(rows)
    assert remembered_bytes() <= 50_000


def test_the_table_used_last_stays(monkeypatch):
    rows = texts(50, 100)
    Spectrum(2)(rows)
    Spectrum(3)(rows)
    Spectrum(2)(rows)
    monkeypatch.setattr(kgram_counts, "_REMEMBERED", remembered_bytes() - 1)
    Spectrum(2)(rows)
    assert list(kgram_counts._TABLES) == [2]


def test_bytes_are_counted_honestly():
    rows = texts(300, 500, "abcdefghijkl")
    Spectrum(4)(rows)
    (table,) = kgram_counts._TABLES.values()
    arrays = sum(sys.getsizeof(a) for row in table._rows.values() for a in row[:2])
    texts_kept = sum(map(sys.getsizeof, table._rows))
    numberings = sum(n._codes.nbytes + n._numbers.nbytes for n in table._numberings)
    assert table.nbytes >= arrays + texts_kept + numberings + sys.getsizeof(table._rows)


# --- threads, limits, interrupts ---------------------------------------------------------------


def test_threads_share_the_counts(counted):
    rows = texts(40, 200)
    wanted, wrong = np.array(by_hand(rows, rows, 3)), []

    def work(seed):
        some = np.random.default_rng(seed).permutation(40)[:25]
        chosen = [rows[i] for i in some]
        if not np.array_equal(Spectrum(3)(chosen), wanted[np.ix_(some, some)]):
            wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(counted) == len(set(counted))


@pytest.fixture
def another_thread_counts():
    """Hold the tables in another thread; yield what lets them go."""
    held, go = threading.Event(), threading.Event()

    def hold():
        with kgram_counts._turn():
            held.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def let_go():
        go.set()
        thread.join()

    yield let_go
    let_go()


def test_a_thread_that_waits_sees_its_deadline(monkeypatch, another_thread_counts):
    now = iter(range(0, 10**6, 10))
    with monkeypatch.context() as patch:
        patch.setattr(deadline, "clock", lambda: next(now))
        with pytest.raises(deadline.TimeLimitError), deadline.within(15.0, "test"):
            count_kgrams(3, ["abc"])
    another_thread_counts()
    assert count_kgrams(3, ["abc"])[1] == 1


def test_tokens_may_call_back():
    class Token:
        def __hash__(self):
            return int(Spectrum(1)(["ab"])[0, 0])

    assert Spectrum(1)(as_points([["a", Token()], ["a", "b"]])).tolist() == [[2, 1], [1, 2]]


@pytest.mark.parametrize("error", [KeyboardInterrupt, deadline.TimeLimitError])
def test_after_an_interrupt_nothing_half_counted_is_left(monkeypatch, error):
    rows = texts(10, 30)
    monkeypatch.setattr(kgram_counts, "_CHUNK", 1)
    wanted = Spectrum(3)(rows)
    for stop in range(1, 40, 3):
        kgram_counts._TABLES.clear()
        looks = iter(range(10**6))

        def check(stop=stop, looks=looks):
            if next(looks) == stop:
                raise error("stop")

        with monkeypatch.context() as patch:
            patch.setattr(deadline, "check", check)
            with pytest.raises(error):
                Spectrum(3)(rows)
        np.testing.assert_array_equal(Spectrum(3)(rows), wanted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_counts_though_its_parent_was_counting(another_thread_counts):
    child = os.fork()
    if child == 0:
        (rows, others), width = count_kgrams(1, ["ab"], ["b"])
        os._exit(0 if products(rows, others, width).tolist() == [[1.0]] else 1)
    assert os.waitpid(child, 0)[1] == 0
