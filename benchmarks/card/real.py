"""Real rows on the card: MNIST and covertype, where the folder that MERCER_DATA names has them."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

import mercer
from benchmarks.card.setting import (
    CARD,
    SMALL,
    WHERE,
    Stages,
    milliseconds,
    rng,
    say,
    show,
)
from mercer.kernels import Gaussian

FOLDER = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[3] / "shared" / "data"))
_ROWS = 600  # without a card


def digits() -> None:
    """Fit all class pairs of MNIST from NumPy and from tensors; tell the error on its test rows."""
    held = read("mnist")
    if held is None:
        return
    X, y = held["X_train"].reshape(60_000, -1) / 255.0, held["y_train"].astype(np.int64)
    if SMALL:
        X, y = X[:_ROWS], y[:_ROWS]
    make = lambda: mercer.SVC(C=5.0, kernel=Gaussian(5.0))  # noqa: E731
    few = X.astype(np.float32)
    on_card = torch.from_numpy(few).to(CARD.name), torch.from_numpy(y).to(CARD.name)
    new, truth = held["X_test"].reshape(10_000, -1) / 255.0, held["y_test"]
    for name, rows, goal in (
        ("float64 NumPy", (X, y), "0.20 s"),
        ("float32 NumPy", (few, y), "0.20 s"),
        ("float32 tensors", on_card, "0.10 s"),
    ):
        machine = fitted(f"SVC, MNIST, {len(X)} x 784, 45 pairs, {name}", make, rows, goal)
        if rows[0] is X:
            with mercer.config(backend="torch", device=WHERE):
                say(row="digits", test_error=float(np.mean(machine.predict(new) != truth)))


def covertype() -> None:
    """Fit the most frequent class of covertype against the rest, and tune on 10,000 rows."""
    held = read("covertype_part")
    if held is None:
        return
    X, y = held["X"].astype(float), (held["y"] == 1).astype(int)
    if SMALL:
        X, y = X[:_ROWS], y[:_ROWS]
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    for C, goal in ((1.0, ""), (10.0, "0.8 s"), (100.0, "")):
        make = lambda: mercer.SVC(C=C, kernel=Gaussian(27**0.5), time_limit=20.0)  # noqa: B023, E731
        name = f"SVC, covertype, {len(X)} x 54, two classes, C = {C:g}"
        found = fitted(name, make, (X, y), goal)
        say(row="covertype", C=C, steps=found.solution_.iterations, support=len(found.support_))
    rows = rng.permutation(len(X))[: 300 if SMALL else 10_000]
    grid = {"kernel__scale": np.geomspace(2.0, 20.0, 10), "C": np.geomspace(0.1, 100.0, 10)}

    def search() -> Any:
        machine = mercer.SVC(kernel=Gaussian(5.0))
        return mercer.tune(machine, X[rows], y[rows], grid=grid, cv=5)

    with mercer.config(backend="torch", device=WHERE):
        best = search()
        time = milliseconds(search, 1 if SMALL else 3) / 1000
    more = f"best {best.best_params}, {best.best_score:.4f}"
    name = f"SVC, tune, covertype {len(rows)}: 10 scales, 10 costs, 5 folds"
    show(name, f"{time:.2f} s", "0.4 s", more)


def read(name: str) -> Any:
    """Return the arrays of a data set; None, with a word, where it is not at hand."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        say(row=name, not_at_hand="MERCER_DATA names a folder without it")
        return None
    return np.load(path, allow_pickle=False)


def fitted(name: str, make: Any, rows: tuple[Any, Any], goal: str) -> Any:
    """Fit four times, the first to compile; show the median of the others."""
    stages, found = Stages(name), []
    with mercer.config(backend="torch", device=WHERE):
        for _ in range(1 if SMALL else 4):
            machine = make().fit(*rows)
            found.append(stages.over("fit"))
        ok = machine.certificate_.ok
        judged = stages.over("certificate")
    more = f"{machine.solution_.status.name}, certified: {ok} (another {judged:.2f} s when read); "
    more += "all " + ", ".join(f"{each:.2f}" for each in found)
    show(name, f"{np.median(found[1:] or found):.2f} s", goal, more)
    return machine
