"""JSON lines, ARFF, LIBSVM text, npz and Parquet: right values, or an error with its place."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from mercer import MemoryBudgetError, config
from mercer.data import DataError, Kind, Limits, Table, read, read_blocks

JSON = (
    b'{"age": 31, "town": "Ulm", "sick": true}\n\n{"age": null, "town": "?", "sick": false}\n'
    b'{"age": 2.5, "town": "Bern", "more": "2020-01-01", "sick": true}\n'
)
ARFF = rb"""% a comment
@RELATION 'my data'
@attribute 'the age' real
@attribute town {Ulm, 'New York', "it's"}
@attribute born date "dd.MM.yyyy HH:mm"
@attribute note string
@attribute sick {yes,no}

@data
1, Ulm, "31.12.2020 08:30", 'a, \'b\'', yes
?, 'New York', ?, ?, no
{0 5, 2 '01.01.2021 00:00', 3 zz}
3.5,"it's",'01.01.2021 00:00',x,?
"""
LIBSVM = b"1 1:0.5 3:2 # a comment\n-1 2:1\n\n+1 qid:3 1:1 4:2\n"


def table(data, **options):
    return read(io.BytesIO(data), **options)


def refused(data, **options):
    with pytest.raises(DataError) as caught:
        table(data, **options)
    return caught.value


# --- JSON lines ------------------------------------------------------------------------------


def test_json_lines():
    found = table(JSON)
    assert [kind.value for kind in found.kinds.values()] == ["number", "binary", "binary", "date"]
    np.testing.assert_array_equal(found["age"], [31, np.nan, 2.5])
    assert found["town"].tolist() == ["Ulm", None, "Bern"]
    assert found["sick"].tolist() == [1.0, 0.0, 1.0] and np.isnat(found["more"][0])
    blocks = list(read_blocks(io.BytesIO(JSON), found.drop("more").schema, rows=2))
    assert [len(block) for block in blocks] == [2, 1] and blocks[1]["town"].tolist() == ["Bern"]
    with pytest.raises(DataError, match="line 1, column 'more': no row has this key; write null"):
        list(read_blocks(io.BytesIO(JSON), found.schema, rows=1))


@pytest.mark.parametrize(
    ("text", "line", "column", "match"),
    [
        (b'{"a": 1}\n[1]\n', 2, None, "each line is an object"),
        (b'{"a": 1}\n{"a": 2\n', 2, 8, "not valid JSON"),
        (b'{"a": [1]}', 1, "a", "holds a list"),
        (b'{"a": 1, "a": 2}', 1, None, "the key 'a' is duplicated"),
        (b'{"a": 1e400}', None, "a", "out of range of float64"),
        (b'{"a": ' + b"9" * 400 + b"}", 1, "a", "out of range of float64"),
        (b'{"a": Infinity}', 1, None, "not a JSON number"),
        (b"[" * 100_000, 1, None, "each line is an object"),
        (b"[" * 50_000, 1, None, "not valid JSON"),
        (b'{"a": "\xff"}', 1, None, "not UTF-8"),
        (b"\n\n", None, None, "no rows"),
    ],
)
def test_json_lines_that_are_wrong(text, line, column, match):
    error = refused(text, format="jsonl")
    assert match in str(error) and (error.line, error.column) == (line, column)


def test_long_lines_are_looked_through_before_they_are_parsed():
    for text in (b'{"a": [' + b"[]," * 300_000 + b"1]}", b'{"a": ' + b'{"a":' * 99_999):
        tracemalloc.start()
        assert "an object of numbers" in str(refused(text, format="jsonl"))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 20 * len(text)
    words = ("]}{[:" * 20_000, 'a "b" \\')
    text = b"".join(json.dumps({"a": word, "b": 1}).encode() + b"\n" for word in words)
    assert table(text, format="jsonl")["a"].tolist() == [*words]
    wide = b"{" + b",".join(b'"%d": 1' % k for k in range(20_000)) + b"}"
    assert "more than 9999 columns" in str(refused(wide, limits=Limits(columns=9999)))
    assert table(wide).shape == (1, 20_000)


def test_many_late_keys_are_bounded():
    text = b"".join(b'{"k%d": 1}\n' % k for k in range(2000))
    assert "more than" in str(refused(text, limits=Limits(columns=1000)))
    assert "more than" in str(refused(text, limits=Limits(bytes=10**6)))
    text = b"".join(b'{"k%d": 1}\n' % k for k in range(2200))  # 30 kB that take 80 MB
    with config(memory="60 MB"), pytest.raises(MemoryBudgetError, match="cells"):
        read(io.BytesIO(text), format="jsonl")


# --- ARFF ------------------------------------------------------------------------------------


def test_arff():
    found = table(ARFF)
    assert found.columns == ["the age", "town", "born", "note", "sick"]
    np.testing.assert_array_equal(found["the age"], [1, np.nan, 5, 3.5])
    assert found["town"].tolist() == ["Ulm", "New York", "Ulm", "it's"]
    assert found["note"].tolist() == ["a, 'b'", None, "zz", "x"]
    assert found["born"][0] == np.datetime64("2020-12-31T08:30") and np.isnat(found["born"][1])
    assert found["sick"].tolist() == ["yes", "no", "yes", None]
    assert found.kinds["sick"] is Kind.BINARY and found.kinds["town"] is Kind.CATEGORY
    block = next(read_blocks(io.BytesIO(ARFF), found[["sick", "the age"]].schema))
    assert block.columns == ["sick", "the age"] and len(block) == 4


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "match"),
    [
        (b"3.5,", b"x,", 13, "the age", "'x' is not a number"),
        (b"3.5,", b"1e999,", 13, "the age", "out of range of float64"),
        (b'3.5,"it\'s"', b"3.5,Rom", 13, "town", "not a declared value"),
        (b",x,?", b",x", 13, 4, "4 fields, but there are 5 attributes"),
        (b"{0 5, 2", b"{5 5, 2", 12, None, "index 5: indices must increase"),
        (b"{0 5, 2", b"{3 5, 2", 12, None, "index 2: indices must increase"),
        (b"3 zz}", b"3 zz", 12, None, "ends with }"),
        (b"'New York', ?", b"'New York, ?", 11, None, "quotes are not closed"),
        (b"31.12.2020 08", b"31.13.2020 08", 10, "born", "does not match the date pattern"),
        (b"dd.MM", b"EEE.MM", 5, "born", "date pattern"),
        (b"dd.MM", b"MM.MM", 5, "born", "repeats a part"),
        (b"dd.MM", b"." * 500_000, 5, "born", "longer than 200 characters"),
        (b" real", b" relational", 3, "the age", "type 'relational' is not supported"),
        (b"@attribute town", b"attribute town", 4, None, "before @data"),
    ],
)
def test_arff_that_is_wrong(old, new, line, column, match):
    assert old in ARFF
    error = refused(ARFF.replace(old, new, 1))
    assert match in str(error) and (error.line, error.column) == (line, column)


def test_arff_is_as_scipy_reads_it():
    arff = pytest.importorskip("scipy.io.arff")
    text = "@relation r\n@attribute a real\n@attribute b {x,y}\n@data\n1,x\n2.5,y\n?,x\n"
    theirs, _ = arff.loadarff(io.StringIO(text))
    found = table(text.encode())
    np.testing.assert_array_equal(found["a"], theirs["a"])
    assert found["b"].tolist() == [word.decode() for word in theirs["b"]]


# --- LIBSVM text -----------------------------------------------------------------------------


def test_libsvm_text():
    found = table(LIBSVM)
    assert found.columns == ["target", "qid", "x1", "x2", "x3", "x4"]
    assert found["target"].tolist() == [1, -1, 1] and found["qid"].tolist() == [None, None, "3"]
    expected = [[0.5, 0, 2, 0], [0, 1, 0, 0], [1, 0, 0, 2]]
    np.testing.assert_array_equal(np.asarray(found.drop("target", "qid")), expected)
    assert table(b"1 0:1 2:3\n2 1:1\n").columns == ["target", "x0", "x1", "x2"]
    assert table(b"1,3 1:1\n2 1:2\n", format="libsvm")["target"].tolist() == ["1,3", "2"]
    new = b"1 1:7 9:4\n2 qid:1 4:1\n"
    block = next(read_blocks(io.BytesIO(new), found.drop("target", "qid").schema))
    np.testing.assert_array_equal(np.asarray(block), [[7, 0, 0, 0], [0, 0, 0, 1]])


def test_sparse_files_stay_sparse_and_are_as_scikit_learn_reads_them():
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 1500), density=0.02, rng=rng, format="csr")
    held = io.BytesIO()
    dump_svmlight_file(X, np.arange(60) % 3, held, zero_based=False)
    found = table(held.getvalue(), format="libsvm")
    held.seek(0)
    theirs, y = load_svmlight_file(held)
    assert abs(found.csr - theirs).max() == 0 and (found["target"] == y).all()
    features = found.drop("target")
    blocks = list(read_blocks(io.BytesIO(held.getvalue()), features.schema, rows=25))
    assert [len(block) for block in blocks] == [25, 25, 10] and blocks[0].csr is not None
    assert abs(sparse.vstack([block.csr for block in blocks]) - found.csr).max() == 0


@pytest.mark.parametrize(
    ("word", "match"),
    [
        (b"3:1 2:1", "'2:1' follows index 3"),
        (b"2:1 2:1", "'2:1' follows index 2"),
        (b"-1:2", "is not index:value"),
        (b"1099511627776:1", "above 1000000"),
        (b"1:nan", "not a finite number"),
        (b"1:1e400", "not a finite number"),
        (b"1:0x1p3", "not a finite number"),
        (b"1:1,5", "not a finite number"),
        (b"1:1_0", "not a finite number"),
        (b"1:", "is not index:value"),
        (b"x", "is not index:value"),
        (b"qid:x 1:1", "is not a qid"),
        (b"\xd9\xa3:1", "is not index:value"),
    ],
)
def test_libsvm_text_that_is_wrong(word, match):
    error = refused(b"1 1:1\n\n2 " + word + b"\n", format="libsvm")
    assert match in str(error) and error.line == 3 and error.column in (2, 3)


def test_arff_is_read_as_it_comes():
    head = b"@relation r\n@attribute a numeric\n@attribute b {u,v}\n@attribute c string\n@data\n"
    schema = read(io.BytesIO(head + b"1,u,x\n2,v,y\n3,u,z\n"), format="arff").schema.drop("c")

    class Endless(io.RawIOBase):
        """Rows that never end."""

        taken = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            Endless.taken += 1
            assert Endless.taken < 100, "the file is held whole"
            data = (head if Endless.taken == 1 else b"7,v,?\n" * 20_000)[: len(buffer)]
            buffer[: len(data)] = data
            return len(data)

    blocks = read_blocks(io.BufferedReader(Endless(), 1 << 17), schema, 1000, format="arff")
    some = [next(blocks) for _ in range(5)]
    assert [block.shape for block in some] == [(1000, 2)] * 5
    assert some[4]["a"].tolist() == [7.0] * 1000 and some[4].columns == ["a", "b"]
    late = head + b"1,u,x\n" * 2500 + b"1,w,x\n"
    found = read_blocks(io.BytesIO(late), schema, 1000, format="arff")
    assert [len(next(found)), len(next(found))] == [1000, 1000]
    with pytest.raises(DataError, match=r"line 2506.*'w' is not a declared value"):
        next(found)
    with pytest.raises(DataError, match="no rows"):
        list(read_blocks(io.BytesIO(head), schema, format="arff"))


# --- npz and Parquet -------------------------------------------------------------------------


def saved(save=np.savez_compressed, **arrays):
    held = io.BytesIO()
    save(held, **arrays)
    return held.getvalue()


def test_npz():
    X = np.arange(12.0).reshape(6, 2)
    extra = {"y": np.array(list("ababab")), "class_names": np.array(["a", "b"])}
    found = table(saved(X=X, feature_names=np.array(["p", "q"]), **extra))
    assert found.columns == ["p", "q", "y"] and found["q"].tolist() == X[:, 1].tolist()
    assert table(saved(X=X, **extra)).columns == ["x0", "x1", "y"]
    assert table(saved(a=np.arange(3), b=np.array(["x", "y", "z"]))).columns == ["a", "b"]
    assert len(next(read_blocks(io.BytesIO(saved(X=X, **extra)), found.schema.drop("p", "q")))) == 6
    folds = {"folds": np.zeros((2, 3), dtype=int), "target_name": np.array(["y"])}
    assert table(saved(X=X, **extra, **folds)).columns == ["x0", "x1", "y"]
    held = io.BytesIO()
    np.save(held, X)
    assert table(held.getvalue()).shape == (6, 2)
    matrix = sparse.random_array((5, 8), density=0.3, rng=np.random.default_rng(0), format="csc")
    held = io.BytesIO()
    sparse.save_npz(held, matrix)
    assert abs(table(held.getvalue()).csr - matrix).max() == 0


def headed(head):
    """Return a file of one array that has a header and no more."""
    head = head.ljust(117) + b"\n"
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    return held.getvalue()


def test_npz_that_is_wrong():
    assert "not supported" in str(refused(saved(a=np.array([{}, []], dtype=object))))
    assert "do not form a table" in str(refused(saved(a=np.zeros((3, 2)), b=np.zeros((4, 2)))))
    assert "more than 1000 bytes" in str(
        refused(saved(a=np.zeros(10**6)), limits=Limits(bytes=1000))
    )
    promise = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    assert "does not match" in str(refused(headed(promise)))
    assert "cannot be read" in str(refused(headed(b"{'descr': '<f8', 'shape': (")))
    broken = sparse.csr_array((np.ones(2), [0, 7], [0, 1, 2]), shape=(2, 8))
    parts = {"data": broken.data, "indices": np.array([0, 9]), "indptr": broken.indptr}
    data = saved(**parts, shape=np.array([2, 8]), format=np.array("csr"))
    assert "broken" in str(refused(data))


def test_parquet():
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {
        "a": [1, 2, None],
        "b": ["x", None, "z"],
        "d": pa.array([1, 2, None], pa.timestamp("ns")),
        "c": pa.array(["u", "v", "u"]).dictionary_encode(),
        "t": [True, None, False],
    }
    held = io.BytesIO()
    pq.write_table(pa.table(columns), held)
    found = table(held.getvalue())
    kinds = ["number", "binary", "date", "category", "binary"]
    assert [kind.value for kind in found.kinds.values()] == kinds
    np.testing.assert_array_equal(found["a"], [1, 2, np.nan])
    blocks = list(read_blocks(io.BytesIO(held.getvalue()), found[["b", "a", "d"]].schema, rows=2))
    assert [block.columns for block in blocks] == [["b", "a", "d"]] * 2
    assert table(held.getvalue(), columns=["c"], kinds={"c": "text"}).kinds == {"c": Kind.TEXT}
    for cut in (10, len(held.getvalue()) // 2, -3):
        assert "broken" in str(refused(held.getvalue()[:cut], format="parquet"))
    nested = io.BytesIO()
    pq.write_table(pa.table({"l": [[1], [2]]}), nested)
    assert "column 'l' holds list<" in str(refused(nested.getvalue()))
    with pytest.raises(ValueError, match="delimiter=',' is for delimited text; this file is Parq"):
        table(held.getvalue(), delimiter=",")


def test_parquet_without_pyarrow(monkeypatch):
    polars = pytest.importorskip("polars")
    held = io.BytesIO()
    polars.DataFrame({"a": [1, None, 3], "b": ["x", "y", "z"]}).write_parquet(held)
    monkeypatch.setattr("mercer.data.reading.parquet.pyarrow", lambda: None)
    found = table(held.getvalue())
    np.testing.assert_array_equal(found["a"], [1, np.nan, 3])
    assert sum(map(len, read_blocks(io.BytesIO(held.getvalue()), found.schema, rows=2))) == 3
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    assert 'pip install "mercer[tables]"' in str(refused(held.getvalue()))


def test_the_format_is_that_of_the_name_or_of_the_beginning(tmp_path):
    files = {"a.jsonl": JSON, "b.arff": ARFF, "c.svm": LIBSVM, "d": JSON, "e": ARFF}
    for name, data in (files | {"f.txt": LIBSVM, "g.data": b"1,2\n3,4\n"}).items():
        (tmp_path / name).write_bytes(data)
        found = read(tmp_path / name)
        assert isinstance(found, Table) and found.schema.format in (
            "jsonl",
            "arff",
            "libsvm",
            "csv",
        )
        assert (found.schema.format == "csv") == (name == "g.data")


def test_codes_that_are_no_character():
    for order in "<>":
        stream = io.BytesIO()
        np.save(stream, np.array(["a", "b"], dtype=f"{order}U1"))
        assert read(io.BytesIO(stream.getvalue()))["x"].tolist() == ["a", "b"]
        assert "not a character" in str(refused(stream.getvalue()[:-8] + b"\xff" * 8))
