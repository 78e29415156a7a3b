"""Fuzz for some minutes: `python -m fuzz --minutes 30 --seed 1 [--machine SVC]`, from `tests/`.

Cases run in a child process, so that a crash or an endless fit is a finding like any other.
"""

import argparse
import sys
import time
from collections import Counter

from fuzz.child import Child
from fuzz.machines import MACHINES

SHOWN = 3  # findings of one kind that are printed in full


def fuzz(seed, minutes, name=None, first=0, cases=None, patience=120.0):
    """Run cases until the time is up; return how many there were and what was found, by kind."""
    kinds, index, child = Counter(), first, Child()
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end and (cases is None or index < first + cases):
        found = child.run(seed, index, name, patience)
        for finding in found:
            kinds[finding.kind] += 1
            if kinds[finding.kind] <= SHOWN:
                print(finding, flush=True)
        if any(finding.rule == "ends" for finding in found):
            child.end()
            child = Child()
        index += 1
    child.end()
    return index - first, kinds


def main():
    """Read the command line, fuzz, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--machine", choices=list(MACHINES))
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, help="stop after so many")
    parser.add_argument(
        "--patience", type=float, default=120.0, help="seconds of processor time a case may take"
    )
    given = parser.parse_args()
    count, kinds = fuzz(
        given.seed, given.minutes, given.machine, given.first, given.cases, given.patience
    )
    for kind, times in kinds.most_common():
        print(f"{times:6d}  {kind}")
    print(f"{count} cases, {kinds.total()} findings of {len(kinds)} kinds (seed {given.seed})")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
