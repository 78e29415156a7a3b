"""Kernel work on one card, one table: ``python3 benchmarks/device.py [row ...]``.

Needs torch, Triton, NumPy, SciPy and scikit-learn, and no installation of Mercer: run it from a
copy of the repository. Times are medians of repeats, synchronised; products and factors with rows
on the card, machines from NumPy to fitted. Errors are relative, against float64 on 512 rows. Data
are made (normal numbers), so that nothing is read.

Each row runs in a process of its own and is ended when its seconds are over, so that none of them
costs the others more than that. What is found is printed at once, and written to device.md in the
folder that the variable OUT names. ``--cpu`` runs the same code, at small sizes, without a card.
"""

import importlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import sklearn.base  # noqa: E402, F401 - so that no row spends its seconds on it
import torch  # noqa: E402

import mercer  # noqa: E402
from mercer.backends import choose_backend  # noqa: E402
from mercer.backends.boxes import Box, BoxPath, PathStep  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.device_matrix import DeviceMatrix  # noqa: E402
from mercer.backends.torch.fusing.fused import is_available  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402
from mercer.expression import AbsDist, Dot, Exp, Expression, SqDist  # noqa: E402
from mercer.kernels import Gaussian  # noqa: E402
from mercer.testing.backend import backend_checks  # noqa: E402
from mercer.testing.judge import Judge  # noqa: E402

WORKERS = 8  # processes that compare the backend with the reference, side by side
SMALL = "--cpu" in sys.argv
PATIENCE = 20.0 if SMALL else 1.0  # times the seconds of a row
TOTAL = 275.0 * PATIENCE  # seconds for all rows
CARD = Device("cpu" if SMALL else "cuda:0")
WHERE = "cpu" if SMALL else "cuda"
rng = np.random.default_rng(0)
if SMALL:
    torch.set_num_threads(1)


def size(n: int) -> int:
    """Return a number of rows: a hundredth of it without a card."""
    return max(60, n // 100) if SMALL else n


def synchronize() -> None:
    if not SMALL:
        torch.cuda.synchronize()


def normal(*shape: int) -> Any:
    return rng.standard_normal(shape, dtype=np.float32)


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


def say(line: str) -> None:
    print(line, flush=True)
    if os.environ.get("OUT"):
        with open(Path(os.environ["OUT"]) / "device.md", "a", encoding="utf-8") as file:
            file.write(line + "\n")


def show(work: str, found: str, goal: str, more: str = "") -> None:
    say(f"| {work} | {found} | {goal} | {more} |")


# --- products -------------------------------------------------------------------------------------


def product(expression: Expression, X: Any, Y: Any, k: int) -> tuple[float, float]:
    """Return milliseconds of K V and its relative error."""
    pairs = TorchPairs(expression, X, Y, np.float32, CARD, fused=not SMALL)
    V = torch.randn(len(Y), k, device=CARD.name)
    exact = TorchPairs(expression, X[:512], Y, np.float64, CARD).product(V.double(), 1 << 22)
    found = pairs.product(V, CARD.block_entries())[:512]
    error = float((found - exact).norm() / exact.norm())
    return milliseconds(lambda: pairs.product(V, CARD.block_entries())), error


def products() -> None:
    X, Y = normal(size(1_000_000), 90), normal(size(10_000), 90)
    expression = Exp((-0.5 / 90) * SqDist())
    for k, goal in ((1, "14 ms"), (16, "22 ms"), (64, "40 ms")):
        time, error = product(expression, X, Y, k)
        rate = len(X) * len(Y) / time / 1e6
        more = f"error {error:.1e}, {rate:.0f}e9 values/s"
        show(f"K(1e6 x 90, 1e4) V, Gaussian, {k} columns", f"{time:.1f} ms", goal, more)


def laplacian() -> None:
    X = normal(size(30_000), 1024)
    time, error = product(Exp(-1e-3 * AbsDist()), X, X, 1)
    show("K v, Laplacian, 30000 x 30000, d = 1024", f"{time:.0f} ms", "80 ms", f"error {error:.1e}")


def composed() -> None:
    X, Y = normal(size(200_000), 64), normal(size(10_000), 64)
    gaussian, laplacian = Exp(-0.01 * SqDist()), Exp(-0.02 * AbsDist())
    polynomial = (0.01 * Dot() + 1.0) ** 3
    parts = [product(part, X, Y, 1)[0] for part in (gaussian, polynomial, laplacian)]
    time, error = product(gaussian + polynomial * laplacian, X, Y, 1)
    more = f"parts one by one {sum(parts):.1f} ms, error {error:.1e}"
    name = "K(2e5 x 64, 1e4) v, Gaussian + polynomial x Laplacian"
    show(name, f"{time:.1f} ms", "parts / 1.5", more)


def nearest() -> None:
    X, Y = normal(size(8_000_000), 128), normal(size(1024), 128)
    pairs = TorchPairs(SqDist(), X, Y, np.float32, CARD, fused=not SMALL)
    time = milliseconds(pairs.nearest)
    rows, means = torch.from_numpy(X).to(CARD.name), torch.from_numpy(Y).to(CARD.name)

    def plain() -> None:
        half = 0.5 * means.square().sum(dim=1)
        for block in rows.split(1 << 18):
            (half - block @ means.T).argmin(dim=1)

    other = milliseconds(plain)
    more = f"plain torch {other:.0f} ms: x {other / time:.1f}"
    show("nearest of 1024 means, 8e6 x 128", f"{time:.0f} ms", "plain torch x 15", more)


# --- machines, from NumPy to fitted ---------------------------------------------------------------


def machine(name: str, make: Callable[[], Any], X: Any, y: Any, goal: str, times: int = 2) -> Any:
    """Fit by torch, once to compile and once more; say what the certificate says."""
    for _ in range(times):
        begin = time.perf_counter()
        with mercer.config(backend="torch", device=WHERE):
            fitted = make().fit(X) if y is None else make().fit(X, y)
        found = time.perf_counter() - begin
    begin = time.perf_counter()
    with mercer.config(backend="torch", device=WHERE):
        ok = fitted.certificate_.ok
    judged = time.perf_counter() - begin
    more = f"{fitted.solution_.status.name}, certified: {ok} (another {judged:.2f} s when read)"
    show(name, f"{found:.2f} s", goal, more)
    return fitted


def waves(n: int, d: int = 20) -> tuple[Any, Any]:
    X = rng.standard_normal((size(n), d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))


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


def classes(n: int, d: int, count: int) -> tuple[Any, Any]:
    """Return rows about a random mean of each class, and their classes."""
    n = size(n)
    means, y = rng.standard_normal((count, d)), rng.integers(0, count, n)
    return (means[y] + 1.2 * rng.standard_normal((n, d))).astype(np.float32), y


def pairs_of_classes() -> None:
    X, y = classes(60_000, 784, 10)
    make = lambda: mercer.SVC(C=5.0, kernel=Gaussian(30.0))  # noqa: E731
    machine("SVC, 60000 x 784, 10 classes", make, X, y, "0.20 s")


def regression() -> None:
    X, _ = classes(20_000, 50, 10)
    t = X[:, 0] + 0.1 * rng.standard_normal(len(X))
    make = lambda: mercer.SVR(C=1.0, epsilon=0.1, kernel=Gaussian(10.0))  # noqa: E731
    machine("SVR, 20000 x 50", make, X, t, "")


def large_programme() -> None:
    X, y = classes(93_000, 54, 2)
    y = np.where(rng.random(len(y)) < 0.1, 1 - y, y)
    make = lambda: mercer.SVC(C=1.0, kernel=Gaussian(8.0), time_limit=25.0)  # noqa: E731
    machine("SVC, one programme of 93000 rows", make, X, y, "0.8 s", times=1)


# --- support vector machines of a grid ------------------------------------------------------------


def programmes() -> None:
    """Solve paths of 50 costs in 10 folds; violations are computed anew in float64."""
    X, y = classes(10_000, 100, 2)
    sign, fold = 2.0 * y - 1.0, rng.integers(0, 10, len(y))
    expression = Exp(-0.005 * SqDist())
    matrix = TorchPairs(expression, X, None, np.float32, CARD, fused=not SMALL).stored()
    assert isinstance(matrix, DeviceMatrix)
    steps = [PathStep(bound=C, start=k - 1) for k, C in enumerate(np.geomspace(1e-3, 1e3, 50))]
    paths = []
    for left_out in range(10):
        rows = np.flatnonzero(fold != left_out)
        s = sign[rows]
        box = Box(s, np.zeros(len(rows)), np.minimum(s, 0.0), np.maximum(s, 0.0), rows=rows)
        paths.append(BoxPath(box, np.zeros(1), steps, np.flatnonzero(fold == left_out)))
    tol = 1e-3
    time = milliseconds(lambda: matrix.box_paths(paths, tol, 10**7, None), 3)
    answers, worst, K = matrix.box_paths(paths, tol, 10**7, None), 0.0, matrix.tensor
    for path, answer in zip(paths, answers, strict=True):
        k = torch.from_numpy(path.box.rows).to(CARD.name)
        b = torch.from_numpy(answer.b.T).to(CARD.name)
        F = path.box.gradient[:, None] - (K[k][:, k].double() @ b).cpu().numpy()
        for j, step in enumerate(steps):
            rising = F[answer.b[j] < step.bound * path.box.upper, j]
            falling = F[answer.b[j] > step.bound * path.box.lower, j]
            worst = max(worst, rising.max() - falling.min())
    made = sum(int(answer.iterations.sum()) for answer in answers)
    more = f"{made:.2g} steps, violation in float64 {worst:.2e}"
    show("SVM, 10 folds x 50 costs, n = 10000 x 100", f"{time / 1e3:.2f} s", "0.3 s", more)


# --- tensors --------------------------------------------------------------------------------------


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


# --- conformance, side by side --------------------------------------------------------------------


def compare(number: int, folder: str) -> None:
    """Run some of the checks of the backend; keep what was found after each of them."""
    found: dict[str, Any] = {"failed": [], "done": 0}
    with mercer.config(backend="torch", device=WHERE):
        judge = Judge(choose_backend())
        checks = [c for c in backend_checks(judge) if "box" not in c[0]]
        for name, check in checks[number::WORKERS]:
            try:
                check()
            except Exception as error:
                found["failed"].append(f"{name}: {type(error).__name__} {str(error)[:200]!r}")
            found["done"] += 1
            found["worst"] = {verb: list(finding) for verb, finding in judge.worst.items()}
            path = Path(folder) / f"{number}.json"
            path.with_suffix(".new").write_text(json.dumps(found))
            path.with_suffix(".new").rename(path)


def check() -> None:
    begin, folder = time.perf_counter(), tempfile.mkdtemp()
    workers = [started(lambda k=k: compare(k, folder)) for k in range(WORKERS)]
    for worker in workers:
        worker.join(max(0.1, begin + LIMITS["check"] - 5 - time.perf_counter()))
        if worker.is_alive():
            worker.kill()
    worst: dict[str, list[Any]] = {}
    done, failed = 0, []
    for file in Path(folder).glob("*.json"):
        found = json.loads(file.read_text())
        done, failed = done + found["done"], failed + found["failed"]
        for verb, finding in found["worst"].items():
            worst[verb] = max(worst.get(verb, [0.0, ""]), finding)
    count = sum("box" not in name for name, _ in backend_checks(Judge(choose_backend())))
    more = "; ".join(f"{verb} {share:.2g}" for verb, (share, _) in sorted(worst.items()))
    seconds = f"{time.perf_counter() - begin:.0f} s"
    show(f"check_backend, {done} of {count} checks", seconds, "at most 1", more)
    for verb, (share, label) in worst.items():
        if share > 1:
            show(f"check_backend, {verb}", f"{share:.2g} of what is allowed", "1", label[:200])
    for line in failed:
        show("check_backend", "failed", "", line)
    if not SMALL:  # not before: processes that are forked must find the card untouched
        say(f"({torch.cuda.get_device_name(0)})")


# --- rows, the most important first, and the seconds of each --------------------------------------

ROWS: dict[str, tuple[Callable[[], None], float]] = {
    "check": (check, 70),
    "ridge": (ridge, 50),
    "pairs_of_classes": (pairs_of_classes, 40),
    "components": (components, 35),
    "programmes": (programmes, 25),
    "products": (products, 25),
    "leave_one_out": (leave_one_out, 25),
    "large_programme": (large_programme, 40),
    "tensors": (tensors, 20),
    "process": (process, 20),
    "projections": (projections, 25),
    "means": (means, 20),
    "regression": (regression, 20),
    "full": (full, 20),
    "laplacian": (laplacian, 20),
    "composed": (composed, 25),
    "nearest": (nearest, 25),
}
LIMITS = {name: PATIENCE * limit for name, (_, limit) in ROWS.items()}


def started(work: Callable[[], None]) -> Any:
    """Start a process that has everything imported; the card is first touched in it."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def guarded(name: str) -> None:
    try:
        ROWS[name][0]()
    except Exception as error:  # the others are still worth their time
        show(name, "failed", "", f"{type(error).__name__}: {str(error)[:300]!r}")
        traceback.print_exc(limit=-6)


MACHINES = "KernelRidge PCA SVC SVR KMeans GaussianProcess FisherDiscriminant LogisticRegression"


def prepare() -> None:
    """Import what rows use, once for all of them; nothing here touches the card."""
    for name in MACHINES.split():
        getattr(mercer, name)
    if is_available():
        importlib.import_module("mercer.backends.torch.fusing.launch")


def main() -> None:
    prepare()
    say(f"torch {torch.__version__}, Mercer {mercer.__version__}, {os.cpu_count()} cores")
    say("| work | found | goal | more |\n| --- | --- | --- | --- |")
    begin = time.perf_counter()
    for name in [row for row in sys.argv[1:] if row in ROWS] or ROWS:
        left = TOTAL - (time.perf_counter() - begin)
        limit = min(LIMITS[name], left)
        if limit < 5:
            show(name, "no time was left", "")
            continue
        process, started_at = started(lambda name=name: guarded(name)), time.perf_counter()
        process.join(limit)
        if process.is_alive():
            process.kill()
            process.join()
            show(name, f"not done in {limit:.0f} s", "")
        print(f"({name}: {time.perf_counter() - started_at:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
