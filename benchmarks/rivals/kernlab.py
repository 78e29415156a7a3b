"""R's kernlab as a rival: fitted in its own process, timed inside R, judged like everybody."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

SCRIPT = Path(__file__).with_name("kernlab.R")


@dataclass(frozen=True)
class Answer:
    """What LIBSVM-style machines show after a fit of two classes."""

    classes_: Any
    support_: Any
    dual_coef_: Any
    intercept_: Any
    seconds: float


def available() -> bool:
    """Return whether R and kernlab are installed."""
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", "quit(status = !requireNamespace('kernlab', quietly = TRUE))"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def fit(X: Any, y: Any, gamma: float, C: float) -> Answer:
    """Fit `ksvm` to two classes; the clock runs around `ksvm` alone."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        np.asarray(X, dtype=np.float64).tofile(folder / "X")
        np.asarray(y, dtype=np.int32).tofile(folder / "y")
        (folder / "shape").write_text(f"{X.shape[0]} {X.shape[1]}")
        subprocess.run(["Rscript", str(SCRIPT), name, str(gamma), str(C)], check=True)
        seconds, offset = np.fromfile(folder / "numbers")
        coef = np.fromfile(folder / "coef")
        index = np.fromfile(folder / "index", dtype=np.int32) - 1
    return Answer(np.unique(y), index, coef[None], np.array([-offset]), float(seconds))
