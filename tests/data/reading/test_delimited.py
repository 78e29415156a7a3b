"""Delimited text: how it is written, what is missing, what is refused; with pyarrow the same."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mercer
from mercer import MemoryBudgetError
from mercer.data import DataError, Kind, Limits, read, read_blocks
from mercer.data.reading import cells

TEXT = (
    b"age,town,born,size\n31,Ulm,2020-01-01,1.5\n?, Bern,,2\n"
    b"12,Riga,2021-01-01,\n3,Oslo,2020-01-01,4\n"
)


def table(text, **options):
    text = text.encode() if isinstance(text, str) else text
    return read(io.BytesIO(text), **options)


def refused(text, **options):
    with pytest.raises(DataError) as caught:
        table(text, **options)
    return caught.value


def test_kinds_gaps_and_blanks_around_words():
    found = table(TEXT)
    assert [k.value for k in found.kinds.values()] == ["number", "category", "date", "number"]
    np.testing.assert_array_equal(found["age"], [31, np.nan, 12, 3])
    assert found["town"].tolist() == ["Ulm", "Bern", "Riga", "Oslo"]
    np.testing.assert_array_equal(found["size"], [1.5, 2, np.nan, 4])
    assert np.isnat(found["born"][1])


@pytest.mark.parametrize(
    "word", ["?", "", "NA", "N/A", "nan", "NaN", "null", "NULL", ".", " ? ", '"NA"']
)
def test_words_for_missing_entries(word):
    found = table(f"a,b\n1,x\n{word},y\n2.5,z\n")
    np.testing.assert_array_equal(found["a"], [1, np.nan, 2.5])
    assert found.kinds["a"] is Kind.NUMBER


def test_missing_words_can_be_named():
    found = table("a,b\n1,x\n-999, -999\n3,z\n4,\n", missing=["-999"])
    np.testing.assert_array_equal(found["a"], [1, np.nan, 3, 4])
    assert found["b"].tolist() == ["x", None, "z", ""]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks(ending, final, mark):
    text = ending.join(["a,b", "1,x", "", "2,y", "3,z"]) + (ending if final else "")
    found = table(mark + text.encode())
    assert found.columns == ["a", "b"] and found["a"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(delimiter):
    found = table(TEXT.replace(b",", delimiter.encode()))
    assert found.digest == table(TEXT).digest
    assert table(TEXT, delimiter=",").digest == table(TEXT).digest


def test_blanks_as_delimiters():
    found = table("  1.0   2\n 3 4  \n5   6\n")
    np.testing.assert_array_equal(np.asarray(found), [[1, 2], [3, 4], [5, 6]])
    assert found.columns == ["x0", "x1"]


def test_headers_are_told_from_rows():
    assert table("1,2\n3,4\n5,6\n").shape == (3, 2)
    assert table("e,x,s\np,x,y\ne,b,s\n").columns == ["e", "x", "s"]
    assert table("e,x,e\np,x,y\ne,b,s\n").shape == (3, 3)  # equal fields, no numbers: no names
    assert table("2020-01-01,a\n2020-01-02,b\n").shape == (2, 2)
    assert table("a,b\nc,d\ne,f\n", header=False).columns == ["x0", "x1"]
    assert table("1,2\n3,4\n5,7\n", header=True).columns == ["1", "2"]
    assert table("1,2\n3,4\n5,7\n", names=["u", "v"]).columns == ["u", "v"]
    assert "names for 2 columns" in str(refused("1,2\n3,4\n", names=["u"]))


def test_row_names_of_r():
    ours = table('"","a","b"\n"1",2,x\n"2",3,y\n"3",3,y\n')
    assert ours.kinds["rownames"] is Kind.IDENTIFIER and ours.columns == ["rownames", "a", "b"]
    assert table("a b\nr1 2 3\nr2 4 5\nr3 6 7\n").columns == ["rownames", "a", "b"]


def test_quotes():
    found = table('a,b\n1,"x, ""y"""\n2,"two\nlines"\n3, "blank before"\n4,5" pipe\n')
    assert found["b"].tolist() == ['x, "y"', "two\nlines", "blank before", '5" pipe']
    assert found["a"].tolist() == [1, 2, 3, 4]
    assert table('"a","b"\n"1","2.5"\n"3","4"\n"5","6"\n')["b"].tolist() == [2.5, 4, 6]


@pytest.mark.parametrize("parser", ["mercer", "auto"])
@pytest.mark.parametrize(
    ("text", "line", "column", "match"),
    [
        ("a,b\n1,2\n3\n", 3, 1, "1 fields, but there are 2 columns"),
        ("a,b\n1,2\n\n3,4,5\n", 4, 3, "3 fields, but there are 2 columns"),
        ('a,b\n1,"2\n3,4\n', 3, None, "is not closed at the end of the file"),
        ('a,b\n1,"2"3\n', 2, None, "expected after"),
        ("a,b\n1,2\n3,1e400\n", 3, "b", "'1e400' is out of range of float64"),
        ("a,a\n1,2\n", 1, "a", "both named 'a'"),
        (b"a,b\n1,\xff\n", 2, None, "0xff is not UTF-8"),
        (b"a,b\n1,x\0y\n", 2, None, "NUL"),
        ("x;y\n1,5;2\n3,25;4\n", None, "x", "decimal comma, such as '1,5'; pass decimal=','"),
        ("", None, None, "empty"),
        ("a,b\n", None, None, "no rows"),
        ("a,b\n1," + "x" * 140_000 + "\n", 2, None, "more than 131072 characters in one entry"),
        ('a,b\n1,"' + "x" * 140_000 + '"\n', 2, None, "characters in one entry"),
    ],
)
def test_errors_name_the_place(text, line, column, match, parser):
    error = refused(text, parser=parser)
    assert match in str(error) and (error.line, error.column) == (line, column)


def test_decimal_commas_and_encodings():
    found = table("x;y\n1,5;2\n-3,25;4\n7;1\n", decimal=",")
    assert found["x"].tolist() == [1.5, -3.25, 7.0]
    block = next(read_blocks(io.BytesIO(b"y;x\n2;0,5\n"), found.schema))
    assert block["x"].tolist() == [0.5] and block.columns == ["x", "y"]
    assert (
        table("x,y\n1,Zürich\n2,b\n3,c\n".encode("latin-1"), encoding="latin-1")["y"][0] == "Zürich"
    )
    assert (
        table("x,y\n1,Zürich\n2,b\n3,c\n".encode("utf-16"), encoding="utf-16")["y"][0] == "Zürich"
    )
    assert "encoding='utf-16'" in str(refused("x,y\n1,2\n".encode("utf-16")))
    with pytest.raises(ValueError, match="delimiter=','"):
        table(TEXT, delimiter=",", decimal=",")


def test_hexadecimal_and_underscores_are_words():
    found = table("a,b\n0x10,1_000\n0x11,1_001\n0x12,1_002\n")
    assert found.kinds["a"] is Kind.CATEGORY and found["b"][0] == "1_000"
    error = refused("a,b\n1,2\n0x10,3\n", kinds={"a": "number"})
    assert (error.line, error.column) == (3, "a") and "not a number" in str(error)


def test_kinds_and_columns_can_be_asked_for():
    text = "zip,n,x\n00501,1,2\n10001,2,3\n00501,3,4\n"
    found = table(text, kinds={"zip": "category"}, columns=["x", "zip"])
    assert found.columns == ["x", "zip"] and found["zip"].tolist() == ["00501", "10001", "00501"]
    block = next(read_blocks(io.BytesIO(text.encode()), found.schema))
    assert block["zip"].tolist() == found["zip"].tolist()
    coded = table(text).with_kinds({"zip": "category"})  # read as numbers, then as now
    assert next(read_blocks(io.BytesIO(text.encode()), coded.schema))["zip"][0] == "501"
    with pytest.raises(KeyError, match="no column 'Zip'"):
        table(text, kinds={"Zip": "category"})


def test_a_column_that_turns_out_to_be_words_late(monkeypatch):
    monkeypatch.setattr("mercer.data.reading.delimited.CHUNK", 200)
    text = "a,b\n" + "".join(f"{k},{k}\n" for k in range(300)) + "x300,7\n"
    for parser in ("mercer", "auto"):
        found = table(text, parser=parser)
        assert found["a"][0] == "0" and found["a"][-1] == "x300" and found["b"].sum() == 44857


def test_limits():
    assert "more than 2 rows" in str(refused(TEXT, limits=Limits(rows=2)))
    assert "more than 3 columns" in str(refused(TEXT, limits=Limits(columns=3)))
    assert "more than 50 bytes" in str(refused(TEXT, limits=Limits(bytes=50)))
    assert "bytes in one line" in str(refused(b"a" * 5_000_000, limits=Limits(line=1_000_000)))
    limits = Limits(columns=1000, field=1000)
    for wide in ("," * 3_000_000, "a,b\n" + "," * 3_000_000, 'a,b\n"x\ny"' + "," * 3_000_000):
        assert "more than 1000 columns" in str(refused(wide, limits=limits))
    bomb = gzip.compress(b"1,2\n" * 2_000_000)
    assert "more than 1000000 bytes" in str(refused(bomb, limits=Limits(bytes=1_000_000)))
    assert "characters in one entry" in str(
        refused('a,b\n1,"' + "x" * 50 + '"\n', limits=Limits(field=20))
    )
    assert (
        len(table("a,b\n1,x\n2,y\n3," + "z" * 200_000, limits=Limits(field=10**6))["b"][2])
        == 200_000
    )


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files(pack, tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(pack(TEXT))  # known by its bytes, not by its name
    found = read(tmp_path / "x.csv.gz")
    assert found.digest == table(TEXT).digest and found.source.endswith("x.csv.gz")
    assert "corrupt or truncated" in str(refused(pack(TEXT * 500)[:-20]))


def test_zstd_where_pyarrow_is():
    pa = pytest.importorskip("pyarrow")
    assert table(pa.compress(TEXT, codec="zstd", asbytes=True)).digest == table(TEXT).digest


def test_pipes():
    code = "from mercer.data import read; print(read('-').digest)"
    done = subprocess.run([sys.executable, "-c", code], input=TEXT, capture_output=True, check=True)
    assert done.stdout.decode().strip() == table(TEXT).digest

    class Pipe:  # no seeking, a few bytes at a time
        def __init__(self, data):
            self.data = io.BytesIO(data)

        def read(self, size):
            return self.data.read(min(size, 1))

    assert read(Pipe(TEXT)).digest == read(Pipe(gzip.compress(TEXT))).digest == table(TEXT).digest


def test_memory_is_asked_for():
    with mercer.config(memory=2_000_000), pytest.raises(MemoryBudgetError, match="block by block"):
        table(b"a,b\n" + b"1,2\n" * 200_000)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "no.csv")
    with pytest.raises(TypeError, match="must be a path"):
        read(3)
    with pytest.raises(ValueError, match="format='xls' must be one of csv"):
        table(TEXT, format="xls")


def test_blocks_are_the_columns_of_the_schema(monkeypatch):
    monkeypatch.setattr("mercer.data.reading.delimited.CHUNK", 64)
    schema = table(TEXT).drop("size").schema
    new = b"born,more,town,age\n" + b"2022-05-05,x,Rom,4\n,y,?,\n" * 10
    blocks = list(read_blocks(io.BytesIO(new), schema, rows=3))
    assert max(map(len, blocks)) <= 3 and sum(map(len, blocks)) == 20
    assert (
        blocks[0].columns == ["age", "town", "born"]
        and blocks[0].kinds == table(TEXT).drop("size").kinds
    )
    assert blocks[0]["town"].tolist()[:2] == ["Rom", None]
    for wrong, match in [
        (b"age,town\n1,x\n", "no column 'born'"),
        (b"age,town,born\n1,x,31/12/2020\n", "line 2, column 'born': '31/12/2020' in row 0 is not"),
        (
            b"age,town,born\nx,x,\n",
            "line 2, column 'age': 'x' is not a number; the training table has",
        ),
    ]:
        with pytest.raises(DataError, match=match):
            list(read_blocks(io.BytesIO(wrong), schema))
    binary = table("a,b\nyes,1\nno,2\nyes,3\n").schema
    assert next(read_blocks(io.BytesIO(b"a,b\nmaybe,1\n"), binary))["a"][0] == "maybe"
    with pytest.raises(ValueError, match="rows=0"):
        next(read_blocks(io.BytesIO(TEXT), schema, rows=0))


FIELDS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=True).map(repr),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.3g}"),
    st.sampled_from(["", "?", " NA", "nan", "-nan", "inf", "1e400", "+1", "1_0", "0x1", ".5", "5.",
                     "1e5 ", "2020-01-01", "a b", "ü", "٣", "nan(1)", "1 2", "'", "\ufeff",
                     "\u2028", "\u00a0"]),
    st.text(st.characters(exclude_characters='"\r\n,\0', exclude_categories=["Cs"]), max_size=6),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@example([["0", "0", "1.7e308"], ["0", "0", "1.7e308"]], False)  # whose sum is infinite
@given(st.lists(st.lists(FIELDS, min_size=3, max_size=3), min_size=1, max_size=8), st.booleans())
def test_pyarrow_and_our_own_reader_agree(rows, windows):
    if cells.pyarrow() is None:
        pytest.skip("pyarrow is not installed")
    text = "\n".join(["a,b,c", *(",".join(row) for row in rows)])
    text = text.replace("\n", "\r\n") if windows else text
    outcomes = []
    for parser in ("mercer", "pyarrow"):
        try:
            outcomes.append(table(text, parser=parser, header=True).digest)
        except DataError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_without_pyarrow_the_table_is_the_same(monkeypatch):
    digest = table(TEXT).digest
    monkeypatch.setattr("mercer.data.reading.delimited.pyarrow", lambda: None)
    assert table(TEXT).digest == digest
    with pytest.raises(ImportError, match=r'pip install "mercer\[tables\]"'):
        table(TEXT, parser="pyarrow")
    with pytest.raises(ValueError, match="parser='c'"):
        table(TEXT, parser="c")


@pytest.mark.parametrize("parser", ["mercer", "pyarrow"])
def test_long_digits_take_no_longer_than_their_length(parser):
    word = "1" * 130_000
    found = read(io.BytesIO(f"a,b\n{word}x,1\n{word}.{word[:9]}e,2\n".encode()), parser=parser)
    assert found["a"].tolist() == [f"{word}x", f"{word}.{word[:9]}e"]
