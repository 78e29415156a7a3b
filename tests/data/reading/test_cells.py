"""Every way to read delimited text gives the same table: pyarrow, NumPy, field by field."""

import io

import numpy as np
import pytest

from mercer.data import DataError, Limits, read, read_blocks
from mercer.data.reading.records import _quotes_whole_fields


def outcome(data, schema, parser):
    try:
        blocks = read_blocks(io.BytesIO(data), schema, parser=parser, limits=Limits(field=50))
        return [block.digest for block in blocks]
    except DataError as error:
        return str(error)


def ways_of(texts, schema, monkeypatch):
    """Read each text in three ways, require the same outcome, and count how many were read."""
    read_ok = 0
    for text in texts:
        found = outcome(text.encode(), schema, "mercer")
        assert outcome(text.encode(), schema, "auto") == found
        with monkeypatch.context() as patched:
            patched.setattr("mercer.data.reading.delimited.numbers_at_once", lambda *_, **__: None)
            assert outcome(text.encode(), schema, "mercer") == found
        read_ok += isinstance(found, list)
    return read_ok


def damaged(rng, text, alphabet):
    for _ in range(rng.integers(3)):
        at = int(rng.integers(6, len(text)))
        text = text[:at] + rng.choice(alphabet) + text[at + int(rng.integers(2)) :]
    return text


def test_numbers_are_the_same_by_every_way(monkeypatch):
    rng = np.random.default_rng(1)
    alphabet = np.array([*"0123456789.-\n,e ?x\r", "7" * 9])
    schema = read(io.BytesIO(b"a,b,c\n1,2,3\n4.5,6,7\n-1,0,8\n")).schema
    texts = []
    for _ in range(300):
        rows = [[f"{v:.{rng.integers(5)}f}" for v in rng.normal(size=3)] for _ in range(6)]
        texts.append(damaged(rng, "a,b,c\n" + "\n".join(map(",".join, rows)) + "\n", alphabet))
    assert 30 < ways_of(texts, schema, monkeypatch) < 270


def test_quoted_fields_are_the_same_by_every_way(monkeypatch):
    rng = np.random.default_rng(2)
    alphabet = np.array([*'"",\n ?x\r', '""', '","', '"\n"'])
    schema = read(
        io.BytesIO(b'a,b,c\n1,"x, y",2020-01-01\n2,z,2020-01-02\n3,z,2020-01-03\n')
    ).schema
    words = ["x, y", "z", "", "?", " x", "long " * 3]
    texts = []
    for _ in range(300):
        rows = [
            f'"{rng.integers(9)}","{rng.choice(words)}",2020-01-0{rng.integers(1, 9)}'
            for _ in range(6)
        ]
        texts.append(damaged(rng, 'a,"b",c\n' + "\n".join(rows) + "\n", alphabet))
    assert 30 < ways_of(texts, schema, monkeypatch) < 290


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('a,"b, c",d\n"e",f,"g"\n', True),
        ('"a"\r\n"b"', True),
        ('a,"b""c"\n', False),
        ('a,"b\nc"\n', False),
        ('a, "b"\n', False),
        ('a,b"c"\n', False),
        ('a,"b\n', False),
    ],
)
def test_quotes_around_whole_fields(text, whole):
    assert _quotes_whole_fields(text.encode(), ",") is whole
