"""Where blocks come from, and what is refused of them, with block and row."""

import io
import json

import numpy as np
import pytest

from mercer import KernelRidge, NaiveBayes
from mercer.blocks import ArrayBlocks, Block, FileBlocks, as_blocks, blocks_of
from mercer.data import DataError

X = np.random.default_rng(0).standard_normal((100, 3))
HOLE = np.where(np.arange(300).reshape(100, 3) == 7, np.nan, X)
TEXT = "age,town,y\n" + "".join(
    f"{20 + k % 40},{['Ulm', 'Bern', 'Riga'][k % 3]},{float(k % 7)}\n" for k in range(60)
)


def rows_of(blocks):
    return np.concatenate([block.X for block in blocks])


def test_mapped_arrays_are_read_block_by_block(tmp_path):
    np.save(tmp_path / "X.npy", X)
    blocks = as_blocks(tmp_path / "X.npy", rows=30)
    assert [len(block) for block in blocks] == [30, 30, 30, 10]
    np.testing.assert_array_equal(rows_of(blocks), X)


def test_a_mapped_file_cut_short_is_refused(tmp_path):
    np.save(tmp_path / "X.npy", X)
    passing = iter(as_blocks(tmp_path / "X.npy", rows=30))
    next(passing)
    with open(tmp_path / "X.npy", "r+b") as file:
        file.truncate(500)
    with pytest.raises(ValueError, match="was cut short"):
        next(passing)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "jsonl"])
def test_files_of_every_kind(tmp_path, ending):
    columns = {f"x{k}": X[:, k] for k in range(3)} | {"y": X[:, 0]}
    path = tmp_path / f"rows.{ending}"
    if ending == "npz":
        np.savez(path, **columns)
    elif ending == "parquet":
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            arrow.table(columns), path, row_group_size=20
        )
    elif ending == "csv":
        lines = np.column_stack(list(columns.values())).tolist()
        path.write_text("\n".join(["x0,x1,x2,y", *(",".join(map(repr, row)) for row in lines)]))
    else:
        lines = np.column_stack(list(columns.values())).tolist()
        path.write_text(
            "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in lines) + "\n"
        )
    blocks = FileBlocks([path, path], target="y", rows=33)
    np.testing.assert_array_equal(rows_of(blocks), np.concatenate([X, X]))
    assert blocks.names == ("x0", "x1", "x2") and blocks.n_rows == 200
    machine = KernelRidge().fit(blocks)
    assert machine.feature_names_in_.tolist() == ["x0", "x1", "x2"]


def test_words_are_prepared_from_a_sample(tmp_path):
    (tmp_path / "towns.csv").write_text(TEXT)
    blocks = FileBlocks(tmp_path / "towns.csv", target="town", prepare=True, rows=17)
    machine = NaiveBayes().fit(blocks)
    assert machine.classes_.tolist() == ["Bern", "Riga", "Ulm"] and machine.certificate_.ok
    with pytest.raises(TypeError, match=r"town.*TablePreparation"):
        FileBlocks(tmp_path / "towns.csv", target="y")


def test_a_broken_file_is_refused_in_the_middle(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n" + "1.5,2\n" * 50)
    blocks = FileBlocks(path, target="y", rows=10)
    path.write_text("a,y\n" + "1.5,2\n" * 50 + "word,3\n")
    with pytest.raises(DataError, match=r"line 52.*'word' is not a number"):
        list(blocks)


def test_a_parquet_file_cut_short_is_refused(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table({"a": X[:, 0]}), path)
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(DataError, match="broken"):
        FileBlocks(path)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([X, X[:, :2]], r"block 1 \(from row 100\) has 2 columns.*block 0 has 3"),
        ([X, X.astype("f4")], "float32.*float64"),
        ([X, (X, X[:, 0])], "no targets"),
        ([X, HOLE], r"block 1 contains NaN.*row 2 of the block \(row 102"),
        ([(X, X[:, 0]), (X, X[:50, 0])], r"block 1 .*targets of shape \(50,\)"),
        ([(X, np.where(np.arange(100) == 5, np.nan, 1.0))], "block 0: the target of row 5"),
        ([(X, X[:, 0], -np.ones(100))], "weights must be finite and nonnegative; that of row 0"),
        ([(1, 2, 3, 4)], "tuple of 4"),
        ([["a", "b"]], "strings or lists"),
        ([], "no blocks"),
    ],
)  # fmt: skip
def test_what_is_no_block_is_refused(blocks, message):
    with pytest.raises((TypeError, ValueError), match=message):
        list(blocks_of(lambda: blocks))


def test_generators_are_refused_in_words():
    with pytest.raises(TypeError, match="over after one pass"):
        blocks_of(iter([X]))
    once = iter([X, X, X])
    with pytest.raises(TypeError, match="same iterator twice"):
        list(blocks_of(lambda: once))
    with pytest.raises(TypeError, match="takes a function"):
        blocks_of(X)
    with pytest.raises(TypeError, match="not streams"):
        FileBlocks(io.BytesIO(b"a\n1\n"))


def test_rows_that_change_between_passes_are_refused():
    lengths = iter([50, 50, 40])
    blocks = blocks_of(lambda: [X[: next(lengths)], X])
    list(blocks)
    with pytest.raises(ValueError, match="block 0 had 50 rows in an earlier pass and has 40"):
        list(blocks)


def test_blocks_and_targets_beside_them():
    blocks = blocks_of(lambda: [Block(X), X]).with_targets(np.arange(200), np.ones(200))
    assert [block.y[0] for block in blocks] == [0, 100]
    with pytest.raises(ValueError, match="200 rows"):
        blocks_of(lambda: [X, X]).with_targets(np.arange(3))
    with pytest.raises(ValueError, match="X has 100 rows"):
        ArrayBlocks(X, np.arange(3))
    with pytest.raises(ValueError, match="rows=0"):
        ArrayBlocks(X, rows=0)
