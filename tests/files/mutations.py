"""Model files with something wrong: every one must be refused, or load a machine that is whole.

From `tests/`: ``python -m files.mutations --cases 100000 --seed 1``. A case is made from its seed
and number alone. Each runs under a limit of memory and of time; a finding is an error that is no
`ModelFormatError`, an answer that is none, a file opened or a module imported.
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import functools
import json
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
from files.fitted import Data, fit, rows_for
from files.same import QUESTIONS

import mercer

MEMORY = 4 * 2**30  # bytes of addresses a case may have, with the libraries themselves
SECONDS = 20
PLAIN = ("SVC", "SVC three", "SVC sparse", "SVC words", "KernelRidge linear", "PCA", "CCA",
         "KMeans", "NearestNeighbors", "GaussianMixture", "NaiveBayes words", "Perceptron stream",
         "Tuned", "SpectralClustering graph", "Pipeline", "compat.SVC", "MultinomialMixture",
         "LogisticRegression stream", "compat.KNeighborsClassifier", "Whiten",
         "SVC precomputed", "FisherDiscriminant", "compat.KernelPCA", "BayesDecision")  # fmt: skip
VALUES = [None, True, False, 0, 1, -1, 2, 10**6, 2**31, 2**62, -(2**63), 2**63, 1e308, -1.5, 0.0,
          "", "a", "os.system", "../../etc/passwd", "http://localhost/x", "SVC", "float64", "F", [],
          {}, [[]], {"tuple": []}, {"number": "nan"}, {"number": "inf"}, {"kernel": "gaussian(1)"},
          {"kernel": "linear[99999]"}, {"function": "to_dense"}, {"record": ["SVC", {}]},
          {"enum": ["Status", "SOLVED"]}, {"set": [1, 2]}, {"dict": [["a"], [1]]},
          {"scalar": ["int8", 3]}, {"long": 0}, {"again": 0}, {"objects": {"shape": [2**40, 0],
          "items": []}}]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 255, 10**6, 2**31 - 1, 2**31, 2**62, -(2**63)]
FLOATS = [0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324]


class Model:
    """A file in parts: the tree of the machine, and the arrays."""

    def __init__(self, data: bytes) -> None:
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        self.metadata = header.pop("__metadata__")
        self.tree = json.loads(self.metadata["mercer"])
        self.tensors: dict[str, list[Any]] = {}
        for name, entry in header.items():
            start, end = (8 + length + place for place in entry["data_offsets"])
            self.tensors[name] = [entry["dtype"], entry["shape"], bytearray(data[start:end])]

    def data(self) -> bytes:
        """Write the file, all digests right."""
        self.tree["tensors"] = {
            name: {"dtype": dtype, "shape": shape, "sha256": sha256(held).hexdigest()}
            for name, (dtype, shape, held) in self.tensors.items()
        }
        text = json.dumps(self.tree)
        header: dict[str, Any] = {
            "__metadata__": {
                "format": "mercer",
                "sha256": sha256(text.encode()).hexdigest(),
                "mercer": text,
            }
        }
        place, parts = 0, []
        for name, (dtype, shape, held) in self.tensors.items():
            header[name] = {
                "dtype": dtype,
                "shape": shape,
                "data_offsets": [place, place + len(held)],
            }
            place += len(held)
            parts.append(bytes(held))
        found = json.dumps(header).encode()
        found += b" " * (-len(found) % 8)
        return len(found).to_bytes(8, "little") + found + b"".join(parts)


# --- what goes wrong ------------------------------------------------------------------------------


def flipped(data: bytes, rng: Any) -> bytes:
    """Flip a bit."""
    changed = bytearray(data)
    changed[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(data: bytes, rng: Any) -> bytes:
    """Leave the end out."""
    return data[: rng.integers(len(data))]


def scrambled(data: bytes, rng: Any) -> bytes:
    """Write random bytes over a part, or put some between."""
    start, size = int(rng.integers(len(data))), int(rng.integers(1, 64))
    end = start + (size if rng.random() < 0.5 else 0)
    return data[:start] + rng.bytes(size) + data[end:]


def edited(data: bytes, rng: Any) -> bytes:
    """Change one to three values of the tree, digests recomputed."""
    model = Model(data)
    for _ in range(rng.integers(1, 4)):
        places = list(_places([model.tree["machine"]]))
        holder, key = places[rng.integers(len(places))]
        _change(holder, key, places, rng)
    return model.data()


def _places(node: Any) -> Any:
    left = [node]
    while left:  # as yield from inside yield from takes time for each level
        node = left.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            yield node, key
            if isinstance(value, dict | list):
                left.append(value)


def _change(holder: Any, key: Any, places: list, rng: Any) -> None:
    way = rng.integers(6)
    value = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    if way == 0:
        other, place = places[rng.integers(len(places))]
        value = copy.deepcopy(other[place]) if _has(other, place) else None
    if way == 1 and isinstance(holder, dict):
        holder.pop(key, None)
    elif way == 2 and isinstance(holder, dict):
        holder[str(value)[:20]] = holder.get(key)
    elif way == 3 and isinstance(holder, list):
        holder.insert(min(int(key), len(holder)), value)
    elif way == 4 and _has(holder, key) and type(holder[key]) in (int, float):
        holder[key] = NUMBERS[rng.integers(len(NUMBERS))]
    elif _has(holder, key):
        holder[key] = value


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else 0 <= int(key) < len(holder)


def poisoned(data: bytes, rng: Any) -> bytes:
    """Change entries of arrays, digests recomputed."""
    model = Model(data)
    names = [name for name, entry in model.tensors.items() if entry[2]]
    for _ in range(rng.integers(1, 4)):
        dtype, _, held = model.tensors[names[rng.integers(len(names))]]
        kind = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1"}[dtype]
        values = np.frombuffer(held, dtype=kind)
        pool = FLOATS if kind[1] == "f" else NUMBERS
        with np.errstate(over="ignore"):
            values[rng.integers(len(values))] = np.array(pool[rng.integers(len(pool))]).astype(kind)
    return model.data()


def reshaped(data: bytes, rng: Any) -> bytes:
    """Let an array be of another shape or type, or short, or long, digests recomputed."""
    model = Model(data)
    names = list(model.tensors)
    entry = model.tensors[names[rng.integers(len(names))]]
    way = rng.integers(5)
    if way == 0:
        entry[1] = entry[1][::-1]
    elif way == 1:
        entry[1] = [int(np.prod(entry[1]))]
    elif way == 2:
        other = ["F64", "I64"] if entry[0] in ("F64", "I64") else ["F32", "I32"]
        entry[0] = other[rng.integers(2)]
    elif entry[1]:
        rows = max(entry[1][0], 1)
        size = len(entry[2]) // rows
        kept = int(rng.integers(rows)) if way == 3 else rows + 1
        entry[1] = [kept, *entry[1][1:]]
        entry[2] = (entry[2] + entry[2][:size])[: kept * size]
    return model.data()


def swapped(data: bytes, rng: Any) -> bytes:
    """Exchange the bytes of two arrays of one size."""
    model = Model(data)
    names = list(model.tensors)
    a, b = (model.tensors[names[i]] for i in rng.integers(len(names), size=2))
    if len(a[2]) == len(b[2]) and a[0] == b[0]:
        a[2], b[2] = b[2], a[2]
    return model.data()


WAYS = [
    flipped,
    cut,
    scrambled,
    edited,
    edited,
    edited,
    edited,
    poisoned,
    poisoned,
    reshaped,
    swapped,
]


# --- what is looked at ----------------------------------------------------------------------------


class Watch:
    """Says what is opened, imported or run while it is on."""

    def __init__(self) -> None:
        self.path, self.seen, self.on = "", [], False
        self.thread = 0
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: Any) -> None:
        if not self.on or get_ident() != self.thread:  # other threads look after their own
            return
        if event == "open" and args[0] == self.path and args[1] in ("r", "rb"):
            return
        if event in ("open", "import", "exec", "os.system", "subprocess.Popen", "socket.connect"):
            self.seen.append(f"{event} {args[0]!r:.80}")


@functools.cache
def the_watch() -> Watch:
    """Return the one watch: hooks stay as long as the process."""
    return Watch()


def judge(path: Path, rows: Any, watch: Watch) -> str:
    """Load a file and ask the machine; return what came of it."""
    watch.path, watch.seen, watch.thread, watch.on = str(path), [], get_ident(), True
    try:
        machine = mercer.load(str(path))
    except mercer.ModelFormatError:
        return "refused"
    except Exception as error:
        return f"FOUND {type(error).__name__} {str(error)[:100]}"
    finally:
        watch.on = False
    return _asked(machine, rows)


def _asked(machine: Any, rows: Any) -> str:
    said = "loaded"
    for name in QUESTIONS:
        try:
            question = getattr(machine, name, None)
            if question is not None:
                question(rows)
        except MemoryError as error:
            return f"FOUND {name} MemoryError {str(error)[:80]}"
        except Exception as error:
            said = f"loaded, then {type(error).__name__}"
    return said


def run(
    cases: int, seed: int, first: int = 0, folder: str = "/dev/shm", models: Any = PLAIN
) -> Counter:
    """Judge many files; return how many came to what."""
    data, watch, counts = Data(12, 3, 3), the_watch(), Counter()
    path = Path(folder) / f"mutation-{seed}.mercer"
    files = [_file(name, data, path) for name in PLAIN]
    for case in range(first, first + cases):
        rng = np.random.default_rng((seed, case))
        name, original = files[rng.integers(len(files))]
        way = WAYS[rng.integers(len(WAYS))]
        path.write_bytes(way(original, rng))
        signal.alarm(SECONDS)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            said = judge(path, rows_for(name, data), watch)
            said = f"FOUND {watch.seen[0]}" if watch.seen else said
        signal.alarm(0)
        counts[said.partition(" in ")[0] if said.startswith("FOUND") else said] += 1
        if said.startswith("FOUND"):
            print(f"{seed} {case} {name} {way.__name__}: {said}", flush=True)
    path.unlink()
    return counts


def _file(name: str, data: Data, path: Path) -> tuple[str, bytes]:
    mercer.save(fit(name, data), path)
    return name, path.read_bytes()


def main() -> int:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    begun = time.process_time()
    counts = run(given.cases, given.seed, given.first)
    for said, count in counts.most_common():
        print(f"{count:8d}  {said}")
    print(f"{given.cases} cases, {time.process_time() - begun:.0f} s")
    return 1 if any(said.startswith("FOUND") for said in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
