"""Mutated model files of LIBSVM: read or refused with a place, never anything else.

PYTHONPATH=src:tests nice python tests/files/libsvm/model_fuzz.py --count 1000000 --seed 1
"""

import argparse
import random
import time
from collections import Counter
from pathlib import Path

import numpy as np

from mercer.files.libsvm import LibsvmFormatError
from mercer.files.libsvm.model import parse_model

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.model"))
WORDS = [
    b"nan", b"inf", b"-", b"1e999", b"0x10", b"1_0", b"99999999999", b"-1", b"0", b":", b" ",
    b"\n", b"\r", b"\t", b"\x00", b"\xff", b"SV", b"nr_class 30000", b"rho", b"2147483647:1",
    b"probA", b"total_sv 1000000000", b"0:1", b"1:1", b"\xe2\x88\x92", b"1:1:1", b"+.", b".e5",
]  # fmt: skip
SLOWEST = 5.0  # seconds of processor time that no file of a few kB may take


def mutated(text, random_):
    """Return a file with a few bytes, words or lines changed, left out, doubled or exchanged."""
    out = bytearray(text)
    for _ in range(random_.choice((1, 1, 1, 2, 3, 8))):
        at = random_.randrange(len(out) + 1)
        what = random_.randrange(7)
        if what == 0 and out:
            out[at % len(out)] = random_.randrange(256)
        elif what == 1:
            out[at:at] = random_.choice(WORDS)
        elif what == 2:
            del out[at : at + random_.randrange(1, 30)]
        elif what == 3:
            out = out[:at]
        elif what == 4:
            out[at:at] = out[at : at + random_.randrange(1, 60)]
        else:
            lines = bytes(out).split(b"\n")
            i, j = random_.randrange(len(lines)), random_.randrange(len(lines))
            if what == 5:
                lines[i], lines[j] = lines[j], lines[i]
            else:
                words = lines[i].split(b" ")
                words[random_.randrange(len(words))] = random_.choice(WORDS)
                lines[i] = b" ".join(words)
            out = bytearray(b"\n".join(lines))
    return bytes(out)


def fuzz(texts, count, seed, report=None):
    """Return how many mutated files were read, and how many refused."""
    random_ = random.Random(seed)
    counts = Counter()
    for i in range(count):
        text = mutated(random_.choice(texts), random_)
        began = time.process_time()
        try:
            model = parse_model(text, "fuzz")
        except LibsvmFormatError as error:
            counts["refused"] += 1
            counts["with a line"] += error.line is not None
        else:
            counts["read"] += 1
            assert np.isfinite(model.dual_coef).all() and np.isfinite(model.rho).all()
            assert len(model.dual_coef) == model.support_vectors.shape[0] <= len(text)
        assert time.process_time() - began < SLOWEST, text
        if report and i % report == 0:
            print(i, dict(counts), flush=True)
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(fuzz([path.read_bytes() for path in GOLDEN], given.count, given.seed, report=100_000))
