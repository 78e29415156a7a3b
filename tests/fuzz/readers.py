"""Mutated files of every format: each is a table or a DataError, never anything else.

Run ``cd tests && python -m fuzz.readers --count 100000 --seed 1 [--format csv]``. One case again:
``--seed S --first I --count 1 --format F --show``. A case that takes more than ten seconds of
processor time is a finding, too; a crash of the process names the last case that was begun in
``--trace FILE``.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import gzip
import io
import lzma
import signal
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
from scipy import sparse

from mercer.data import DataError, Limits, TablePreparation, check, read, read_blocks

LIMITS = Limits(bytes=1 << 22, rows=20_000, columns=5_000, line=1 << 20, field=5_000)
SECONDS = 10.0
PACKERS = (gzip.compress, bz2.compress, lzma.compress)
CSV = (
    b'age,town,born,size,note\n31,Ulm,2020-01-01,1.5,"a, b"\n?,Bern,2021-02-03,2e-3,\n'
    b'12,"Ri""ga",,3,xyz\n0,Ulm,1999-12-31 23:59,-4.25,one two three\n7,?,2020-01-01,NA,q\n'
)
PLAIN = b"a,b,c\r\n1,2,x\r\n3,4.5,y\r\n-5,1e3,z\r\n0.25,7,x\r\n"
TSV = b"id\tx\ty\n1\t0.5\tyes\n2\t1.5\tno\n3\t\tyes\n4\t2.5\tno\n"
BLANKS = b"1.0   2.5 3\n 4 5 6  \n7  8 9\n"
COMMAS = b"x;y\n1,5;2\n3,25;4\n"
ARFF = (
    b"% made for tests\n@relation 'r s'\n@attribute age numeric\n@attribute 'the town' {Ulm, "
    b'\'New York\', "it\\\'s"}\n@attribute born date "yyyy-MM-dd"\n@attribute note string\n@data\n'
    b"1, Ulm, 2020-01-01, 'a, b'\n?, 'New York', \"2020-01-02\", ?\n{0 5, 2 2020-03-04, 3 zz}\n"
)
LIBSVM = b"1 1:0.5 3:2 # c\n-1 2:1e-3\n\n+1 qid:3 1:1 4:-2.5\n2 10:1\n1,3 5:7\n"
LINES = (
    b'{"age": 31, "town": "Ulm", "sick": true}\n{"age": null, "town": "?"}\n'
    b'{"age": 2.5e1, "town": "N\\u00fcrnberg", "more": -1}\n'
)
TOKENS = [
    b",", b";", b"\t", b"|", b" ", b"\n", b"\r", b"\r\n", b'"', b'""', b"'", b"\\", b"\0", b"?",
    b"NA", b"nan", b"inf", b"-inf", b"1e400", b"-1e400", b"0x1p3", b"1_000", b"1,5", b"nan(1)",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xc3", b"\xe2\x80\xa8", b"\xd9\xa3", b"\xc2\xa0",
    b"{", b"}", b"[", b"]", b":", b"#", b"%", b"@data\n", b"@attribute x numeric\n",
    b"@attribute y {a,b}\n", b"99999999999999999999", b"1099511627776:1", b"-1:2", b"0:1",
    b"qid:5", b"2020-13-45", b"0000-00-00", b"9999-12-31", b"null", b"true", b"-", b"+", b"e", b".",
    b"A" * 6000, b"7" * 400, b"," * 50, b"[" * 2000, b'{"a":' * 500,
]  # fmt: skip


def _npz(**arrays: object) -> bytes:
    held = io.BytesIO()
    np.savez(held, **arrays)  # type: ignore[arg-type]
    return held.getvalue()


def _parquet() -> list[bytes]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return []
    made = []
    table = pa.table(
        {
            "a": [1, 2, None, 4],
            "b": ["x", None, "z", "x"],
            "d": pa.array([1, 2, 3, 4], pa.timestamp("us")),
            "f": [0.5, 1.5, None, 2.5],
            "t": [True, False, None, True],
            "c": pa.array(["u", "v", "u", "v"]).dictionary_encode(),
        }
    )
    for codec in ("none", "snappy", "gzip"):
        held = io.BytesIO()
        pq.write_table(table, held, compression=codec)
        made.append(held.getvalue())
    return made


def seeds() -> dict[str, list[bytes]]:
    """Return valid files of each format."""
    csr = io.BytesIO()
    sparse.save_npz(
        csr, sparse.random_array((6, 9), density=0.3, format="csr", rng=np.random.default_rng(0))
    )
    npz = [
        _npz(
            X=np.arange(12.0).reshape(6, 2),
            y=np.array(list("ababab")),
            feature_names=np.array(["p", "q"]),
        ),
        _npz(day=np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"), ok=np.array([True, False])),
        csr.getvalue(),
    ]
    return {
        "csv": [CSV, PLAIN, BLANKS, COMMAS],
        "tsv": [TSV],
        "jsonl": [LINES],
        "arff": [ARFF],
        "libsvm": [LIBSVM],
        "npz": npz,
        "parquet": _parquet(),
        "compressed": [pack(data) for pack in PACKERS for data in (CSV, LINES)],
    }


def mutated(rng: np.random.Generator, files: list[bytes]) -> bytes:
    """Return a file with some bytes changed, cut, repeated, or put in."""
    data = files[rng.integers(len(files))]
    for _ in range(int(rng.integers(1, 6))):
        at, length = int(rng.integers(len(data) + 1)), int(rng.integers(1, 20))
        what = int(rng.integers(8))
        if what == 0 and data:  # one bit
            place = int(rng.integers(len(data)))
            data = (
                data[:place]
                + bytes([data[place] ^ (1 << int(rng.integers(8)))])
                + data[place + 1 :]
            )
        elif what == 1:
            data = data[:at] + rng.bytes(length) + data[at:]
        elif what == 2:
            data = data[:at] + data[at + length :]
        elif what == 3:
            data = data[:at] + TOKENS[rng.integers(len(TOKENS))] + data[at:]
        elif what == 4:
            token = TOKENS[rng.integers(len(TOKENS))]
            data = data[:at] + token + data[at + len(token) :]
        elif what == 5:
            data = data[:at] + data[at : at + length] * int(rng.integers(2, 30)) + data[at:]
        elif what == 6 and rng.random() < 0.3:
            data = data[:at]
        else:
            other = files[rng.integers(len(files))]
            data = data[:at] + other[int(rng.integers(len(other))) :]
    return data[: 1 << 20]


def case(kind: str, rng: np.random.Generator, files: list[bytes]) -> bytes:
    """Return a mutated file; every other one that has a checksum is right by its checksum."""
    if kind not in REPACKED or rng.random() < 0.5:
        return mutated(rng, files)
    return REPACKED[kind](rng, files)


def _zipped_again(rng: np.random.Generator, files: list[bytes]) -> bytes:
    """Change arrays inside a zip file."""
    held = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(files[rng.integers(len(files))])) as old,
        zipfile.ZipFile(held, "w") as new,
    ):
        inside = {name: old.read(name) for name in old.namelist()}
        for name, data in inside.items():
            changed = rng.random() < 0.4
            new.writestr(name, mutated(rng, [*inside.values(), data]) if changed else data)
    return held.getvalue()


def _packed_again(rng: np.random.Generator, files: list[bytes]) -> bytes:
    """Change a text, and compress it."""
    return PACKERS[rng.integers(len(PACKERS))](mutated(rng, [CSV, LINES]))


REPACKED = {"npz": _zipped_again, "compressed": _packed_again}


def tried(data: bytes, kind: str, schemas: list[object]) -> bool:
    """Read a file, look at the table, and return whether it was one."""
    asked = None if kind == "compressed" else kind
    outcomes = []
    for parser in ("mercer", "auto") if kind in ("csv", "tsv") else ("auto",):
        try:
            table = read(io.BytesIO(data), format=asked, limits=LIMITS, parser=parser)
        except DataError as error:
            outcomes.append(str(error))
            continue
        outcomes.append(table.digest)
        str(table), table.schema.to_dict()
        if len(data) % 16 == 0:
            check(table)
            with contextlib.suppress(DataError):
                TablePreparation(most_words=100).fit_transform(table)
    if len(set(outcomes)) > 1:
        raise AssertionError(f"with and without pyarrow: {outcomes}")
    with contextlib.suppress(DataError):
        for block in read_blocks(
            io.BytesIO(data), schemas[len(data) % len(schemas)], 3, format=asked, limits=LIMITS
        ):
            len(block)
    return len(outcomes[0]) == 64 and " " not in outcomes[0]


def run(
    kind: str,
    count: int,
    seed: int,
    first: int = 0,
    *,
    trace: Path | None = None,
    quiet: bool = True,
) -> tuple[int, list[str]]:
    """Try mutated files of one format; return how many were tables, and what went wrong."""
    files = seeds()[kind]
    if not files:
        return 0, []
    asked = None if kind == "compressed" else kind
    schemas = [
        read(io.BytesIO(f), format=asked, decimal="," if f is COMMAS else ".").schema for f in files
    ]
    tables, wrong = 0, []
    started = time.monotonic()
    old = {one: signal.signal(one, _too_long) for one in (signal.SIGALRM, signal.SIGPROF)}
    try:
        for number in range(first, first + count):
            data = case(kind, np.random.default_rng([seed, number]), files)
            if trace is not None and number % 100 == 0:
                trace.write_text(f"{kind} {seed} {number}\n")
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of the processor: others may use it
            signal.setitimer(signal.ITIMER_REAL, 30 * SECONDS)
            try:
                tables += tried(data, kind, schemas)
            except (Exception, KeyboardInterrupt) as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                wrong.append(
                    f"{kind} --seed {seed} --first {number}: {type(error).__name__}: {error}"[:300]
                )
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0.0)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            if not quiet and (number + 1 - first) % 10_000 == 0:
                rate = (number + 1 - first) / (time.monotonic() - started)
                done = f"{kind}: {number + 1 - first} cases, {tables} tables"
                print(f"{done}, {len(wrong)} wrong, {rate:.0f}/s", flush=True)
    finally:
        for one, before in old.items():
            signal.signal(one, before)
    return tables, wrong


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


def main() -> int:
    """Read the arguments, and run."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--format", choices=[*seeds()], action="append")
    arguments.add_argument("--count", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--trace", type=Path)
    arguments.add_argument("--show", action="store_true", help="print the file of the first case")
    given = arguments.parse_args()
    found = []
    for kind in given.format or seeds():
        if given.show:
            print(case(kind, np.random.default_rng([given.seed, given.first]), seeds()[kind]))
        tables, wrong = run(
            kind, given.count, given.seed, given.first, trace=given.trace, quiet=False
        )
        print(f"{kind}: {given.count} cases, {tables} tables, {len(wrong)} wrong", flush=True)
        print("\n".join(wrong[:20]), flush=True)
        found += wrong
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
