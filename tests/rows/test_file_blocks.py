"""Pieces of files are read apart, wherever they are cut, and give all rows once, in order."""

import numpy as np
import pytest

from mercer.rows.file_blocks import pieces_of, quotes_in, read_head, read_piece, with_quotes

RNG = np.random.default_rng(0)
WORDS = ["plain", '"quo,ted"', '"two\nlines"', '"has ""quotes"" in it"', '"\n"', '""']


def csv(path, header):
    lines = [header] if header else []
    lines += [f"{k},{RNG.choice(WORDS)},{k % 7}.5" for k in range(300)]
    path.write_text("\n".join(lines) + "\n")


def rows_of(path, size):
    schema = read_head(path, None, None, None).schema
    pieces = pieces_of(path, size)
    pieces = with_quotes(pieces, [quotes_in(piece) for piece in pieces])
    tables = [table for piece in pieces for table in read_piece(piece, schema, 40)]
    columns = [np.concatenate([table[name] for table in tables]) for name in schema.names]
    return len(pieces), columns


def same(path, sizes):
    _, whole = rows_of(path, 1 << 40)
    assert len(whole[0]) == 300
    for size in sizes:
        count, found = rows_of(path, size)
        assert count > 1
        for one, other in zip(found, whole, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "header", ['a,"the\ntext",c', "a,b,c", ""], ids=["quoted", "plain", "none"]
)
def test_delimited_texts_with_lines_inside_quotes(tmp_path, header):
    csv(tmp_path / "rows.csv", header)
    same(tmp_path / "rows.csv", [37, 100, 1000])


def test_lines(tmp_path):
    lines = [f'{{"a": {k}, "b": "x{k}"}}' for k in range(300)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))  # the last line has no end
    same(tmp_path / "rows.jsonl", [11, 500])


def test_arrays(tmp_path):
    np.save(tmp_path / "rows.npy", RNG.normal(size=(300, 3)))
    same(tmp_path / "rows.npy", [100, 1000])


def test_row_groups(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": np.arange(300.0), "b": [f"x{k}" for k in range(300)]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=45)
    same(tmp_path / "rows.parquet", [1, 1500])


def test_packed_texts_have_one_piece(tmp_path):
    import gzip

    with gzip.open(tmp_path / "rows.csv.gz", "wt") as file:
        file.write("a,b\n" + "1,2\n" * 300)
    assert [piece.first for piece in pieces_of(tmp_path / "rows.csv.gz", 10)] == [None]


def test_a_broken_line_is_told_from_where_its_piece_begins(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1,2\n" * 200 + "1,x\n")
    beginning = tmp_path / "begin.csv"
    beginning.write_text("a,b\n1,2\n")
    schema = read_head(beginning, None, None, None).schema
    last = pieces_of(path, 400)[-1]
    with pytest.raises(ValueError, match=r"counted from byte \d+ of the file"):
        list(read_piece(last, schema, 40))
