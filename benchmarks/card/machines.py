"""Machines from NumPy to fitted, stage by stage, with what their certificates say."""

import cProfile
import pstats
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

import mercer
from benchmarks.card.setting import (
    CARD,
    SMALL,
    WHERE,
    Stages,
    classes,
    forests,
    milliseconds,
    rng,
    say,
    show,
    size,
    waves,
)
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian
from mercer.solvers import SketchAndProject

_SHOWN = 8  # functions of a profile


def machine(name: str, make: Callable[[], Any], X: Any, y: Any, goal: str, times: int = 2) -> Any:
    """Fit by torch, once to compile (with a profile) and once more; read the certificate."""
    stages, profile = Stages(name), cProfile.Profile()
    target = () if y is None else (y,)
    with mercer.config(backend="torch", device=WHERE):
        profile.enable()
        fitted = make().fit(X, *target)
        profile.disable()
        found = stages.over("first fit, with what is compiled")
        tell(name, profile)
        if times > 1:
            fitted = make().fit(X, *target)
            found = stages.over("second fit")
        ok = fitted.certificate_.ok
        judged = stages.over("certificate")
    ended = fitted.solution_.status.name
    more = f"{ended}, certified: {ok} (another {judged:.2f} s when read)"
    show(name, f"{found:.2f} s", goal, more if ok else f"{more}: {fitted.certificate_.statement}")
    return fitted


def tell(name: str, profile: cProfile.Profile) -> None:
    """Say which functions took the time of a fit."""
    rows = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    longest = sorted(rows, key=lambda row: -row[1][2])[:_SHOWN]
    where = [
        f"{Path(file).name}:{line} {function}: {own:.2f} s in {calls}"
        for (file, line, function), (_, calls, own, _, _) in longest
    ]
    say(row=name, profile=where)


def ridge() -> None:
    for n, goal in ((30_000, ""), (60_000, "1.7 s")):
        X, y = waves(n)
        make = lambda: mercer.KernelRidge(1.0, kernel=Gaussian(3.0))  # noqa: E731
        machine(f"KernelRidge, exact, n = {n}", make, X, y, goal, times=2 if n == 30_000 else 1)


def leave_one_out() -> None:
    X, y = waves(20_000)
    penalties = np.geomspace(1e-3, 1e3, 10)
    make = lambda: mercer.KernelRidge("loo", kernel=Gaussian(3.0), penalties=penalties)  # noqa: E731
    machine("KernelRidge, leave-one-out path of 10 penalties, n = 20000", make, X, y, "", times=1)


def components() -> None:
    for n in (20_000, 50_000):
        X = rng.standard_normal((size(n), 50)) * np.geomspace(1.0, 0.01, 50)
        make = lambda: mercer.PCA(20, kernel=Gaussian(2.0))  # noqa: E731
        machine(f"PCA, n = {n}, 20 components", make, X, None, "1 s" if n == 50_000 else "")


def process() -> None:
    X, y = waves(10_000)
    make = lambda: mercer.GaussianProcess(kernel=Gaussian(3.0), noise=0.1)  # noqa: E731
    machine("GaussianProcess, n = 10000", make, X, y, "")


def projections() -> None:
    X, y = classes(10_000, 30, 5)
    make = lambda: mercer.FisherDiscriminant(kernel=Gaussian(8.0))  # noqa: E731
    machine("FisherDiscriminant, n = 10000", make, X, y, "")
    make = lambda: mercer.LogisticRegression(kernel=Gaussian(8.0))  # noqa: E731
    machine("LogisticRegression, n = 10000, 5 classes", make, X, y, "")


def means() -> None:
    X, _ = classes(20_000, 30, 8)
    make = lambda: mercer.KMeans(8, kernel=Gaussian(8.0), random_state=0)  # noqa: E731
    machine("KMeans, n = 20000, 8 groups, kernel", make, X, None, "")


def pairs_of_classes() -> None:
    for n, goal in ((12_000, ""), (60_000, "0.20 s")):  # what is slow shows in the first
        X, y = classes(n, 784, 10)
        make = lambda: mercer.SVC(C=5.0, kernel=Gaussian(30.0))  # noqa: E731
        machine(f"SVC, {n} x 784, 10 classes", make, X, y, goal)


def landmarks() -> None:
    """Fit ridge regression by landmarks drawn at random; passes over rows run on the card."""
    for n, m, goal in ((200_000, 2_000, ""), (1_000_000, 10_000, "0.5 s")):
        X, y = waves(n, 90)
        approximation = Nystrom(m if size(n) > m else size(n) // 4, sampling="uniform")
        make = lambda: mercer.KernelRidge(  # noqa: E731
            1.0,
            kernel=Gaussian(9.0),
            approximation=approximation,  # noqa: B023
        )
        made = machine(f"KernelRidge, {m} landmarks, n = {n}", make, X, y, goal)
        found = made.solution_
        say(row="landmarks", solver=round(found.seconds, 2), iterations=found.iterations)


def blocks() -> None:
    """Take eight passes of block steps with the full kernel; they end at their limit of passes."""
    X, y = waves(36_000, 8)
    solver = SketchAndProject(max_iter=8)
    name = f"KernelRidge by {type(solver).__name__}, 8 passes, n = {len(X)}"
    make = lambda: mercer.KernelRidge(  # noqa: E731
        0.003, kernel=Gaussian(1.5), approximation=None, solver=solver
    )
    with mercer.config(memory="4 GB"):
        made = machine(name, make, X, y, "")
    say(row="blocks", solver=round(made.solution_.seconds, 2))


def centres() -> None:
    """Fit with 100,000 landmarks, whose matrix is held as triangles; say what the card held."""
    X, y = waves(5_000_000)
    m, held, times = size(100_000), [], [perf_counter()]

    def note(step: Any) -> None:
        held.append(0 if SMALL else torch.cuda.memory_allocated())
        times.append(perf_counter())
        if len(held) in (1, 5) or len(held) % 10 == 0:
            after = round(times[-1] - times[0], 1)
            say(row="centres", step=len(held), after=after, size=step.measure)

    make = lambda: mercer.KernelRidge(  # noqa: E731
        100.0,
        kernel=Gaussian(3.0),
        approximation=Nystrom(m, sampling="uniform"),
        callback=note,
        time_limit=140.0,
    )
    made = machine(
        f"KernelRidge, {m} landmarks, n = {len(X)}", make, X, y, "finishes, memory flat", times=1
    )
    found = made.solution_
    say(
        row="centres",
        solver=round(found.seconds, 2),
        iterations=found.iterations,
        seconds_of_one=round(float(np.median(np.diff(times))), 2),
        gigabytes_between_iterations=sorted({round(x / 1e9, 2) for x in held}),
        gigabytes_at_most=0 if SMALL else round(torch.cuda.max_memory_allocated() / 1e9, 2),
        held_out=held_out(made),
    )


def held_out(made: Any) -> float:
    """Return the root mean squared error on new rows of the same kind, over that of their mean."""
    X, y = waves(100_000)
    with mercer.config(backend="torch", device=WHERE):
        off = made.predict(X) - y
    return round(float(np.sqrt(np.mean(off**2)) / np.std(y)), 4)


def regression() -> None:
    X, _ = classes(20_000, 50, 10)
    t = X[:, 0] + 0.1 * rng.standard_normal(len(X))
    make = lambda: mercer.SVR(C=1.0, epsilon=0.1, kernel=Gaussian(10.0))  # noqa: E731
    machine("SVR, 20000 x 50", make, X, t, "")
    for name, nu in (("SVR", None), ("SVR with nu = 0.5", 0.5)):  # noisy targets, which cost much
        make = lambda: mercer.SVR(C=1000.0, nu=nu, kernel=Gaussian(5.0), time_limit=6.0)  # noqa: B023, E731
        machine(f"{name}, 10000 x 10, C = 1000", make, X[:10_000, :10], t[:10_000] ** 2, "")


def large_programme() -> None:
    X, y = forests(92_962)
    make = lambda: mercer.SVC(C=10.0, kernel=Gaussian(np.sqrt(27)), time_limit=15.0)  # noqa: E731
    machine("SVC, one programme of 92962 x 54", make, X, y, "0.8 s")


# --- tensors, and a card without room -------------------------------------------------------------


def tensors() -> None:
    X, y = waves(20_000)
    rows, target = torch.from_numpy(X).to(CARD.name), torch.from_numpy(y).to(CARD.name)
    made = mercer.KernelRidge(1.0, kernel=Gaussian(3.0)).fit(rows, target)
    found = made.predict(rows)
    same = torch.is_tensor(found) and found.device == rows.device
    time = milliseconds(lambda: made.predict(rows), 3)
    bad = rows.clone()
    bad[7, 2] = torch.nan
    try:
        made.predict(bad)
        said = "nothing"
    except ValueError as error:
        said = str(error)[:80]
    more = f"answers there: {same}; certified: {made.certificate_.ok}; NaN: {said!r}"
    show("KernelRidge.predict, 20000 rows, tensors in and out", f"{time:.0f} ms", "", more)


def full() -> None:
    """Ask for more than the card has: words, and the process goes on."""
    free = size(10**9) if SMALL else CARD.free()
    held = torch.empty(int(0.98 * free), dtype=torch.uint8, device=CARD.name)
    X, y = waves(30_000)
    try:
        with mercer.config(backend="torch", device=WHERE):
            made = mercer.KernelRidge(1.0, kernel=Gaussian(3.0)).fit(X, y)
        said = f"{made.solution_.status.name}"
    except MemoryError as error:
        said = str(error)[:160]
    del held
    show("a card without room", "words", "", said)
