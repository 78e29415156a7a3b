"""Parquet files that are small and decode to much: limits end them before they take memory."""

import io

import numpy as np
import pytest

from mercer.data import DataError, Limits, read, read_blocks
from mercer.data.reading import parquet
from mercer.data.reading.source import Bytes

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
MB = 1 << 20


def packed(columns, **options):
    held = io.BytesIO()
    pq.write_table(pa.table(columns) if isinstance(columns, dict) else columns, held, **options)
    return held.getvalue()


def repeated(rows, length, different=2):
    words = pa.array([letter * length for letter in "ab"])
    return words.take(pa.array(np.arange(rows) % different))


BOMBS = {
    "repeated words": lambda: packed({"a": repeated(100_000, 1000)}),
    "repeated words as deltas": lambda: packed(
        {"a": repeated(20_000, 5000, different=1)},
        use_dictionary=False,
        column_encoding={"a": "DELTA_BYTE_ARRAY"},
    ),
    "categories": lambda: packed({"a": repeated(100_000, 1000).dictionary_encode()}),
    "a page of zeros": lambda: packed(
        {"a": np.zeros(10_000_000)}, use_dictionary=False, compression="gzip"
    ),
    "missing entries": lambda: packed({"a": pa.nulls(20_000_000, pa.int8())}),
    "no entries": lambda: packed({"a": pa.nulls(20_000_000)}),
    "truth values": lambda: packed({"a": pa.array(np.ones(20_000_000, dtype=bool))}),
    "wide entries": lambda: packed({"a": pa.nulls(60, pa.binary(1_000_000))}),
}


@pytest.fixture
def taken(monkeypatch):
    """Return a function that tells the most bytes pyarrow held while it decoded."""
    before, most, count = pa.total_allocated_bytes(), [0], parquet.bytes_of

    def counted(column):
        most[0] = max(most[0], pa.total_allocated_bytes() - before)
        return count(column)

    monkeypatch.setattr(parquet, "bytes_of", counted)
    return lambda: most[0]


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_decodes_to_much_ends_at_the_limit(name, taken):
    data, limit = BOMBS[name](), 16 * MB
    assert len(data) < limit / 20
    with pytest.raises(DataError, match=f"more than {limit} bytes"):
        read(io.BytesIO(data), limits=Limits(bytes=limit))
    assert taken() < 6 * limit


def thrift(value, length=1):
    """Return an integer as Thrift writes it, in so many bytes at least."""
    value, found = (value << 1) ^ (value >> 63), []
    while value > 127 or len(found) < length - 1:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def chunk_of(data, column=0):
    return pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(column)


def with_footer(data, old, new):
    """Return a file with another integer in its footer."""
    length = int.from_bytes(data[-8:-4], "little") + 8
    written = thrift(old)
    assert written in data[-length:]
    return data[:-length] + data[-length:].replace(written, thrift(new, len(written)))


@pytest.mark.parametrize("by", ["pyarrow", "polars"])
def test_the_footer_is_not_trusted(by, monkeypatch, tmp_path):
    data = packed({"a": repeated(20, MB)}, use_dictionary=False, compression="gzip")
    data = with_footer(data, chunk_of(data).total_uncompressed_size, 1)
    assert pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).total_byte_size < 100
    (tmp_path / "a.parquet").write_bytes(data)
    if by == "polars":
        pytest.importorskip("polars")
        monkeypatch.setattr(parquet, "pyarrow", lambda: None)
    for source in (lambda: io.BytesIO(data), lambda: tmp_path / "a.parquet"):
        with pytest.raises(DataError, match=f"more than {8 * MB} bytes"):
            read(source(), limits=Limits(bytes=8 * MB))
        assert len(read(source(), limits=Limits(bytes=64 * MB))) == 20


def test_without_pyarrow_words_are_counted_as_often_as_they_come(monkeypatch):
    pytest.importorskip("polars")
    data = packed({"a": repeated(100_000, 1000)})
    monkeypatch.setattr(parquet, "pyarrow", lambda: None)
    with pytest.raises(DataError, match=f"more than {16 * MB} bytes"):
        read(io.BytesIO(data), limits=Limits(bytes=16 * MB))


def test_blocks_of_long_entries_have_fewer_rows():
    data = packed({"a": repeated(300, 1 << 20)}, compression="zstd")
    schema = read(io.BytesIO(packed({"a": repeated(4, 4)}))).schema
    sizes = [len(block) for block in read_blocks(io.BytesIO(data), schema, format="parquet")]
    assert sum(sizes) == 300 and max(sizes) < 200
    with pytest.raises(DataError, match="more than"):
        list(read_blocks(io.BytesIO(data), schema, limits=Limits(bytes=32 * MB)))


def test_equal_words_are_one_object():
    found = read(io.BytesIO(packed({"a": repeated(10, 300)})))
    assert found["a"][0] is found["a"][2]


def test_columns_that_are_left_out_are_not_counted():
    columns = {"a": pa.array(np.arange(1000.0)), "b": repeated(1000, 20_000)}
    data = packed(columns)
    assert read(io.BytesIO(data), columns=["a"], limits=Limits(bytes=1 * MB)).shape == (1000, 1)
    with pytest.raises(DataError, match="more than"):
        read(io.BytesIO(data), limits=Limits(bytes=1 * MB))
    with pytest.raises(KeyError, match="no column 'c'"):
        read(io.BytesIO(data), columns=["c"])


def test_columns_whose_names_have_points_are_counted_with_the_column_they_begin_with():
    data = packed({"a": np.arange(1000.0), "a.b": repeated(1000, 20_000)})
    assert read(io.BytesIO(data), columns=["a"]).columns == ["a"]
    assert read(io.BytesIO(data)).columns == ["a", "a.b"]
    found = parquet.OpenParquet(Bytes(io.BytesIO(data), "", Limits()), Limits())._chunks(["a"], [0])
    assert len(found["a"]) == 2


def test_two_columns_of_one_name_are_refused():
    held = io.BytesIO()
    pq.write_table(pa.table([[1.0], [2.0]], names=["a", "a"]), held)
    with pytest.raises(DataError, match="both named 'a'"):
        read(io.BytesIO(held.getvalue()))


@pytest.mark.parametrize("length", [8100, -1])
def test_chunks_that_overlap_or_lie_outside_are_refused(length):
    data = packed(
        {name: np.arange(500.0) for name in "ab"}, use_dictionary=False, compression="none"
    )
    data = with_footer(data, chunk_of(data, 1).total_compressed_size, length)
    with pytest.raises(DataError, match="overlap"):
        read(io.BytesIO(data))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
def test_sizes_are_those_of_the_pages(version, codec):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=30_000), "w": repeated(30_000, 7), "i": np.arange(30_000)}
    data = packed(columns, data_page_version=version, compression=codec, data_page_size=4096)
    file = pq.ParquetFile(io.BytesIO(data))
    group = file.metadata.row_group(0)
    parts = [group.column(k) for k in range(3)]
    chunks = [
        (one.dictionary_page_offset or one.data_page_offset, one.total_compressed_size)
        for one in parts
    ]
    read_at = lambda at, size: data[at : at + size]  # noqa: E731
    (found,) = parquet.row_groups(read_at, len(data))
    assert found.rows == 30_000
    assert found.chunks == [(name, *chunk) for name, chunk in zip("xwi", chunks, strict=True)]
    for one, chunk in zip(parts, chunks, strict=True):
        total, largest = parquet.decoded_size(read_at, [chunk])
        pages = one.total_uncompressed_size  # with the headers of pages
        assert 0.98 * pages < total <= max(pages, 8 * 31_000 * 2)
        assert largest <= pages


def test_files_without_rows():
    schema = pa.schema({"a": pa.float64()})
    nothing = io.BytesIO()
    pq.ParquetWriter(nothing, schema).close()
    for data in (nothing.getvalue(), packed(schema.empty_table())):
        with pytest.raises(DataError, match="no rows"):
            read(io.BytesIO(data))
