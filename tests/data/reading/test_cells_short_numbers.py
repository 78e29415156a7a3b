"""Short numbers read many at a time are those that Python reads one by one, to the last bit."""

import io
import itertools

import numpy as np
import pytest

from mercer.data import DataError, Limits, read, read_blocks
from mercer.data.kinds import MISSING, number_of
from mercer.data.reading import cells as quick
from mercer.data.reading.cells import Cells
from mercer.data.reading.records import Chunk

CELLS = Cells(frozenset(MISSING), ".")


def columns(text, width, places=None, longest=1000, delimiter=","):
    chunk = Chunk(text.encode(), 1, '"' in text)
    places = list(range(width)) if places is None else places
    return quick.short_numbers(chunk, width, places, delimiter, CELLS, longest)


def same(found, words):
    expected = np.array([np.nan if w.strip() in MISSING else number_of(w) for w in words])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))  # -0


def test_all_short_texts_of_these_signs():
    words = ["".join(p) for size in range(1, 6) for p in itertools.product("019.-", repeat=size)]
    good = [word for word in words if number_of(word) is not None]
    assert len(good) > 1000
    same(columns("\n".join(good), 1)[:, 0], good)
    plain = "\n".join(["7"] * 50) + "\n"
    for word in words:
        if word in MISSING or number_of(word) is not None:
            continue
        assert columns(plain + word, 1) is None


def test_random_numbers_of_all_lengths(monkeypatch):
    monkeypatch.setattr(quick, "_ENOUGH", 0.0)
    rng = np.random.default_rng(0)
    words = []
    for _ in range(20_000):
        digits = "".join(map(str, rng.integers(0, 10, rng.integers(1, 12))))
        cut = int(rng.integers(len(digits) + 1))
        point = "." if rng.random() < 0.7 else ""
        sign = ("", "", "-", "+")[rng.integers(4)]
        rest = ("", "", "", "e3", "E-7")[rng.integers(5)]
        words.append(sign + digits[:cut] + point + digits[cut:] + rest)
    words += ["", "?", " 3", "4 ", "NA", "nan"] * 20
    words = words[: len(words) // 6 * 6]
    lines = [",".join(words[k : k + 6]) for k in range(0, len(words), 6)]
    for end in ("\n", "\r\n"):
        same(columns(end.join(lines), 6).ravel(), words)
    some = columns("\n".join(lines), 6, [4, 1])
    same(some[:, 0], words[4::6])
    same(some[:, 1], words[1::6])


@pytest.mark.parametrize("text", [
    "1,2\n3\n", "1,2\n3,4,5\n", "1,2\n\n3,4\n", "1,2\n3,x\n", "1,2\n3,1e400\n", "1,2\n3,inf\n",
    "1,2\n3,1_0\n", "1,2\n3,0x1\n", "1,2\n3,1.2.3\n", "1,2\n3,--1\n", '1,2\n3,"4"\n', "1,2\r3,4\r",
    "1,2\n3,\u0663\n", "1,2\n3,1:2\n", "1,2\n3,1/2\n", "1,2\n3," + "0" * 2000 + "\n", "\n\n",
])  # fmt: skip
def test_other_texts_go_another_way(text):
    assert columns(text, 2) is None


def test_numbers_as_programs_write_them(monkeypatch):
    monkeypatch.setattr(quick, "_ENOUGH", 0.0)
    rng = np.random.default_rng(0)
    values = np.ldexp(rng.normal(size=30_000), rng.integers(-30, 30, 30_000))
    words = [repr(one) for one in values.tolist()]
    words += [f"{one:.{k % 20}f}" for k, one in enumerate(values[:9000].tolist())]
    # as near as digits come to the middle between two numbers, where rounding twice is wrong
    for middle in rng.integers(2**52, 2**53, 2000).tolist():
        below = (2 * middle + 1) * 10**18 // 2**53
        words += [f"{one // 10**18}.{one % 10**18:018d}" for one in (below, below + 1)]
    words = [word for word in words if "e" not in word] + ["-0.00000000000", "00000.0000000000001"]
    same(columns("\n".join(words), 1)[:, 0], words)
    for word in (".", "-.", "1.2.3456789", "1.23456789x", "12345678.1.1", "1.-2345678901"):
        found = columns("\n".join([*words[:50], word]), 1)
        assert (found is None) == (word != ".") and (found is None or np.isnan(found[-1, 0]))


def test_most_other_entries_go_another_way():
    assert columns("\n".join(["1e5,2e-7,3"] * 9), 3) is None
    assert columns("1\n\n2\n", 1) is None  # a blank line is none of a column of one


def outcome(data, schema, parser):
    try:
        blocks = read_blocks(io.BytesIO(data), schema, parser=parser, limits=Limits(field=50))
        return [block.digest for block in blocks]
    except DataError as error:
        return str(error)


def test_files_are_the_same_by_every_way(monkeypatch):
    rng = np.random.default_rng(1)
    alphabet = np.array([*"0123456789.-\n,e ?x\r", "7" * 9])
    schema = read(io.BytesIO(b"a,b,c\n1,2,3\n4.5,6,7\n-1,0,8\n")).schema
    ways = {"none": 0, "all": 0}
    for _ in range(300):
        rows = [[f"{v:.{rng.integers(5)}f}" for v in rng.normal(size=3)] for _ in range(6)]
        text = "a,b,c\n" + "\n".join(map(",".join, rows)) + "\n"
        for _ in range(rng.integers(3)):
            at = int(rng.integers(6, len(text)))
            text = text[:at] + rng.choice(alphabet) + text[at + int(rng.integers(2)) :]
        quickly = outcome(text.encode(), schema, "mercer")
        with monkeypatch.context() as patched:
            patched.setattr("mercer.data.reading.delimited.short_numbers", lambda *_: None)
            patched.setattr("mercer.data.reading.delimited.numbers_at_once", lambda *_, **__: None)
            assert outcome(text.encode(), schema, "mercer") == quickly
        ways["all" if isinstance(quickly, list) else "none"] += 1
    assert min(ways.values()) > 30
