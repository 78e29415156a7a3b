"""Run hostile fits, from `tests/`: `python -m oracle --fits 10000 [--estimator SVC]`."""

import argparse
import sys
import traceback
from collections import Counter

from oracle.draw import Draw
from oracle.estimators import ORACLES, findings

SHOWN = 12  # messages of each estimator that are printed


def run(first: int, fits: int, names: list[str]) -> Counter[str]:
    """Run fits of all estimators in turn; print what is false, and count it by estimator."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + fits):
        name = names[seed % len(names)]
        try:
            found = findings(name, Draw(seed))
        except Exception:
            found = [f"{name} {seed}: {traceback.format_exc()}"]
        seen[f"{name} {'refused' if found is None else 'false' if found else 'true'}"] += 1
        for message in found or []:
            if seen[f"{name} false"] <= SHOWN:
                print(message, flush=True)
    return seen


def main() -> int:
    """Read the command line, run the fits, and count them by estimator and outcome."""
    parser = argparse.ArgumentParser(prog="python -m oracle", description=__doc__)
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first fit")
    parser.add_argument("--estimator", choices=list(ORACLES))
    given = parser.parse_args()
    seen = run(given.seed, given.fits, [given.estimator] if given.estimator else list(ORACLES))
    for outcome, count in sorted(seen.items()):
        print(f"{count:6d}  {outcome}")
    return any(outcome.endswith(" false") for outcome in seen)


if __name__ == "__main__":
    sys.exit(main())
