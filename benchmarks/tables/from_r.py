"""Write tables of R packages as CSV: mixed columns with gaps, as people have them.

python -m benchmarks.tables.from_r LIBRARY FOLDER

LIBRARY is where R packages are installed (Debian: /usr/lib/R/site-library, packages
r-cran-modeldata and r-cran-cardata); R itself is not needed, the Python package `rdata` is.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zlib
from pathlib import Path
from typing import Any

TABLES = {
    "modeldata": ("credit_data", "attrition", "ames"),
    "carData": ("TitanicSurvival", "Chile", "SLID"),
}


def read_tables(data: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Read tables of the lazy-load database of a package, `Rdata.rdx` and `Rdata.rdb`."""
    import rdata

    index = rdata.conversion.convert(
        rdata.parser.parse_data(gzip.decompress((data / "Rdata.rdx").read_bytes()))
    )
    store = (data / "Rdata.rdb").read_bytes()
    found = {}
    for name in names:
        start, length = (int(number) for number in index["variables"][name])
        value = rdata.parser.parse_data(unpacked(store[start : start + length]))
        found[name] = rdata.conversion.convert(value)
    return found


def unpacked(chunk: bytes) -> bytes:
    """Unpack an entry: four bytes of length, then zlib, or a letter and bzip2 or xz."""
    body = chunk[4:]
    if body[:1] == b"Z":
        way = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 26}]
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=way).decompress(body[1:])
    return bz2.decompress(body[1:]) if body[:1] == b"2" else zlib.decompress(body)


def main(library: str, folder: str) -> None:
    """Write every table that is there."""
    for package, names in TABLES.items():
        data = Path(library) / package / "data"
        if data.exists():
            for name, table in read_tables(data, names).items():
                table.to_csv(Path(folder) / f"{name}.csv", index=False)
                print(name, table.shape)


if __name__ == "__main__":
    main(*sys.argv[1:])
