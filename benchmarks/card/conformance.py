"""`check_backend` on the card, its checks side by side in processes of their own."""

import traceback
from typing import Any

import mercer
from benchmarks.card.setting import WHERE, say
from mercer.backends import choose_backend
from mercer.testing.backend import Judge, backend_checks

WORKERS = 8
_NAMED = 80  # letters of a check: formulas are long
# what failed once, and what is quickly said, first
FIRST = ("hard distances", "sizes", "stored products", "kinds of rows")
FEW = (3,)  # columns that most nodes are multiplied by: a program takes a second to compile
ALL = ("node Dot", "node SqDist", "node AbsDist")  # those whose programs of all widths are tried


def names() -> list[str]:
    """Return the names of all checks but those of pair steps, which small programmes never ask."""
    found = [name for name, _ in backend_checks(Judge(choose_backend())) if "box" not in name]
    return sorted(found, key=lambda name: name not in FIRST)


def compare(number: int) -> None:
    """Run every eighth check; say after each whether it passed, and the worst error it met."""
    with mercer.config(backend="torch", device=WHERE):
        for name in names()[number::WORKERS]:
            judge = Judge(choose_backend())
            finding: dict[str, Any] = {"check": name[:_NAMED], "passed": True}
            try:
                checks = (
                    backend_checks(judge) if name.startswith(ALL) else backend_checks(judge, FEW)
                )
                dict(checks)[name]()
                judge.refuse()
            except Exception as error:
                last = traceback.format_exc(limit=-3).splitlines()[-8:]
                finding |= {"passed": False, "failed": repr(error)[:300], "where": last}
            verb, share = max(judge.shares().items(), key=lambda item: item[1], default=("", 0.0))
            say(**finding, worst=f"{verb} {share:.2g}")
