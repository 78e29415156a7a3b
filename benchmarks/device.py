"""Kernel work on one card, one command: ``python3 benchmarks/device.py [--seconds 250] [row ...]``.

Needs torch, Triton, NumPy, SciPy and scikit-learn, and no installation of Mercer: run it from a
copy of the repository. A compiled core for the Python there (``src/mercer/_native*.so``) makes the
host's part faster; the first line says whether there is one. Times are medians of repeats,
synchronised; products and factors with rows on the card, machines from NumPy to fitted. Errors are
relative, against float64 on 512 rows. Data are made (normal numbers), so that nothing is read, but
for two rows on MNIST and covertype, which run where the folder that MERCER_DATA names has them.

Rows run the most important first, each in a process of its own that is ended when its seconds are
over. Everything that is found is one line of JSON, written at once, and into ``device.jsonl`` in
the folder that the variable OUT names: first whether each kernel compiles, and with which tile
(``smoke``), then stages of fits, failures with the last lines of their tracebacks, and for a row
that does not end, where it was. The table comes last. ``--cpu`` runs the same code, at small sizes,
without a card; ``--list`` names the rows.
"""

import argparse
import faulthandler
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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
warnings.simplefilter("ignore")

import sklearn.base  # noqa: E402, F401 - so that no row spends its seconds on it
import torch  # noqa: E402

import mercer  # noqa: E402
from benchmarks.card import (  # noqa: E402
    agreement,
    conformance,
    machines,
    products,
    programmes,
    real,
    smoke,
)
from benchmarks.card.setting import CARD, SMALL, say  # noqa: E402
from mercer.backends import available_backends  # noqa: E402
from mercer.backends.torch.triton.fused import is_available  # noqa: E402

PATIENCE = 20.0 if SMALL else 1.0  # times the seconds of a row
LEAST = 5.0  # seconds that a row is started with
MACHINES = "KernelRidge PCA SVC SVR KMeans GaussianProcess FisherDiscriminant LogisticRegression"
if SMALL:
    torch.set_num_threads(1)


class Row(NamedTuple):
    """A row: its seconds, and what runs, in so many processes side by side."""

    seconds: float
    works: list[Callable[[], None]]


def alone(seconds: float, work: Callable[[], None]) -> Row:
    return Row(seconds, [work])


# the most important first
ROWS = {
    "smoke": Row(25, [partial(smoke.smoke, k) for k in range(smoke.WORKERS)]),
    "digits": alone(40, real.digits),
    "covertype": alone(60, real.covertype),
    "pairs_of_classes": alone(40, machines.pairs_of_classes),
    "components": alone(30, machines.components),
    "check": Row(
        60,
        [partial(conformance.compare, k) for k in range(conformance.WORKERS)]
        + [partial(agreement.agree, k) for k in range(agreement.WORKERS)],
    ),
    "ridge": alone(40, machines.ridge),
    "products": alone(25, products.products),
    "halves": alone(15, products.halves),
    "programmes": alone(40, programmes.programmes),
    "tuning": alone(30, programmes.tuning),
    "large_programme": alone(40, machines.large_programme),
    "nystrom_tuned": alone(60, programmes.nystrom_tuned),
    "logistic_features": alone(20, programmes.logistic_features),
    "leave_one_out": alone(25, machines.leave_one_out),
    "landmarks": alone(40, machines.landmarks),
    "round_trips": alone(15, products.round_trips),
    "blocks": alone(30, machines.blocks),
    "centres": alone(170, machines.centres),
    "tensors": alone(20, machines.tensors),
    "process": alone(20, machines.process),
    "projections": alone(25, machines.projections),
    "means": alone(20, machines.means),
    "regression": alone(35, machines.regression),
    "composed": alone(25, products.composed),
    "laplacian": alone(20, products.laplacian),
    "nearest": alone(40, products.nearest),
    "neighbours": alone(25, products.neighbours),
    "full": alone(20, machines.full),
}


def started(work: Callable[[], None], row: str, limit: float, stacks: Path) -> Any:
    """Start a process that has everything imported; the card is first touched in it."""
    process = multiprocessing.get_context("fork").Process(
        target=guarded, args=(work, row, limit, stacks)
    )
    process.start()
    return process


def guarded(work: Callable[[], None], row: str, limit: float, stacks: Path) -> None:
    """Run a work; say why it failed. Just before its time is over, note where it is."""
    with stacks.open("w", encoding="utf-8") as file:
        faulthandler.dump_traceback_later(max(1.0, limit - 1.0), file=file)
        try:
            work()
        except Exception as error:  # the other rows are still worth their time
            last = traceback.format_exc(limit=-6).splitlines()[-14:]
            say(row=row, failed=type(error).__name__, message=str(error)[:300], where=last)
        faulthandler.cancel_dump_traceback_later()


def run(name: str, limit: float) -> None:
    """Run a row; end what does not end by itself, and say where it was."""
    begin, folder = time.perf_counter(), Path(tempfile.mkdtemp())
    stacks = [folder / str(k) for k in range(len(ROWS[name].works))]
    processes = [
        started(work, name, limit, stack)
        for work, stack in zip(ROWS[name].works, stacks, strict=True)
    ]
    for process, stack in zip(processes, stacks, strict=True):
        process.join(max(0.1, begin + limit - time.perf_counter()))
        if process.is_alive():
            process.kill()
            process.join()
            say(row=name, not_done_in=round(limit, 1), where=innermost(stack))
        elif process.exitcode:
            say(row=name, failed=f"the process ended with {process.exitcode}")
    say(row=name, ended_after=round(time.perf_counter() - begin, 1))


def innermost(stack: Path, lines: int = 12) -> list[str]:
    """Return the innermost frames of the thread that was at work."""
    text = stack.read_text(encoding="utf-8").splitlines()
    mark = [k for k, line in enumerate(text) if "most recent call first" in line]
    return text[mark[-1] + 1 :][:lines] if mark else []


def prepare() -> None:
    """Import what rows use, once for all of them; nothing here touches the card."""
    for name in MACHINES.split():
        getattr(mercer, name)
    if is_available():
        importlib.import_module("mercer.backends.torch.triton.launch")


def table(path: Path) -> None:
    """Print the rows of the table that were found."""
    print("| work | found | goal | more |\n| --- | --- | --- | --- |")
    for line in path.read_text(encoding="utf-8").splitlines():
        finding = json.loads(line)
        if "work" in finding:
            print("| {work} | {found} | {goal} | {more} |".format(**finding), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("rows", nargs="*", help="rows to run, in this order; all by default")
    parser.add_argument("--seconds", type=float, default=250.0, help="for all rows together")
    parser.add_argument("--cpu", action="store_true", help="small sizes, without a card")
    parser.add_argument("--list", action="store_true", help="name the rows")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(f"{name}: {row.seconds:.0f} s" for name, row in ROWS.items()))
        return
    unknown = [row for row in asked.rows if row not in ROWS]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if not os.environ.get("OUT"):
        os.environ["OUT"] = tempfile.mkdtemp()
    prepare()
    say(
        torch=torch.__version__,
        triton=is_available(),
        mercer=mercer.__version__,
        host=available_backends()[0],
        cores=os.cpu_count(),
        device=CARD.name,
    )
    begin = time.perf_counter()
    for name in asked.rows or ROWS:
        left = PATIENCE * asked.seconds - (time.perf_counter() - begin)
        if left < LEAST:
            say(row=name, no_time_left=True)
            continue
        run(name, min(PATIENCE * ROWS[name].seconds, left))
    table(Path(os.environ["OUT"]) / "device.jsonl")


if __name__ == "__main__":
    main()
