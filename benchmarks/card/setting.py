"""What all rows share: the card, sizes without one, times, and how a finding is written down."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mercer.backends.torch.device import Device

SMALL = "--cpu" in sys.argv
CARD = Device("cpu" if SMALL else "cuda:0")
WHERE = "cpu" if SMALL else "cuda"
LINES = "device.jsonl"  # in the folder that the variable OUT names
rng = np.random.default_rng(0)


def size(n: int) -> int:
    """Return a number of rows: a hundredth of it without a card."""
    return max(60, n // 100) if SMALL else n


def synchronize() -> None:
    if not SMALL:
        torch.cuda.synchronize()


def normal(*shape: int) -> Any:
    return rng.standard_normal(shape, dtype=np.float32)


def waves(n: int, d: int = 20) -> tuple[Any, Any]:
    """Return normal rows, and a noisy sine of their first column."""
    X = rng.standard_normal((size(n), d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))


def classes(n: int, d: int, count: int) -> tuple[Any, Any]:
    """Return rows about a random mean of each class, and their classes."""
    n = size(n)
    means, y = normal(count, d), rng.integers(0, count, n)
    return means[y] + np.float32(1.2) * normal(n, d), y


def clusters(n: int, d: int, shift: float) -> tuple[Any, Any]:
    """Return five clusters of each of two classes, as TorchKM's benchmark makes them.

    Centres are normal, and those of a class shifted in half of the columns; rows lie about them
    with three times that deviation. TorchKM shifts by 2: classes of 100 columns are then apart
    (no errors), of 10 columns they overlap (14 %). A shift of 0.6 in 100 columns leaves 6 %.
    """
    n, own = size(n), np.random.default_rng(2)
    centres, half = own.standard_normal((10, d)), d // 2
    centres[:5, :half] += shift
    centres[5:, half:] += shift
    y = own.integers(0, 2, n)
    X = centres[5 * y + own.integers(0, 5, n)] + 3.0 * own.standard_normal((n, d))
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32), y


def forests(n: int) -> tuple[Any, Any]:
    """Return rows like those of covertype, and which of two classes that overlap each is in.

    Ten numbers, one of four places and one of forty soils, which depend on them; every column of
    variance one. With the Gaussian kernel of scale sqrt(27) and C = 10, of 6000 rows 47 % are
    support vectors (covertype 53 %) and 18 % free ones (9 %), 20 % (21 %) of others are classified
    wrongly, and LIBSVM takes 13500 steps (11500).
    """
    n, fixed = size(n), np.random.default_rng(1)
    z = rng.standard_normal((n, 10))
    waves_of = 0.3 * fixed.standard_normal((10, 300))
    phases = fixed.uniform(0.0, 2 * np.pi, 300)
    f = np.cos(z @ waves_of + phases) @ fixed.standard_normal(300) * np.sqrt(2 / 300)
    likely = z[:, :3] @ fixed.standard_normal((3, 4)) + [1.2, 1.0, 0.0, -0.5]
    place = np.argmax(likely + 0.5 * rng.gumbel(size=(n, 4)), axis=1)
    soil = np.argmax(z[:, :5] @ fixed.standard_normal((5, 40)) + rng.gumbel(size=(n, 40)), axis=1)
    f += 0.7 * fixed.standard_normal(40)[soil]
    X = np.hstack([z, np.eye(4)[place], np.eye(40)[soil]])
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    return X.astype(np.float32), (rng.random(n) < 1 / (1 + np.exp(-3.0 * f))).astype(int)


def milliseconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median of some repeats, after one that compiles."""
    work()
    found = []
    for _ in range(repeats):
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        found.append(1e3 * (time.perf_counter() - begin))
    return sorted(found)[repeats // 2]


def say(**finding: Any) -> None:
    """Write one line of JSON, at once: whatever comes later, this is known."""
    line = json.dumps(finding, default=str)
    print(line, flush=True)
    if os.environ.get("OUT"):
        with open(Path(os.environ["OUT"]) / LINES, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def show(work: str, found: str, goal: str = "", more: str = "") -> None:
    """Write a row of the table."""
    say(work=work, found=found, goal=goal, more=more)


class Stages:
    """Say how long each stage of a row took, as soon as it is over.

    Parameters
    ----------
    row : str
        The row.
    """

    def __init__(self, row: str) -> None:
        self._row, self._begin = row, time.perf_counter()

    def over(self, stage: str) -> float:
        """Write down the seconds since the stage before; return them."""
        synchronize()
        now = time.perf_counter()
        seconds, self._begin = now - self._begin, now
        say(row=self._row, stage=stage, seconds=round(seconds, 3))
        return seconds
