"""Figures of the house may only fall: files, lines, imports, and who imports whom."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import measure

WRITE = "python tests/house/measure.py --write"
KEPT = measure.kept()


def test_no_figure_rises():
    figures = measure.measure()
    rose = {name: (most, figures[name]) for name, most in KEPT["figures"].items()}
    rose = {name: pair for name, pair in rose.items() if pair[1] > pair[0]}
    assert not rose, (
        f"rose (from, to): {rose}; make them fall again. If a rise is worth it, write the new"
        " figure into tests/house/ratchet.json and say why in the commit message. After a fall:"
        f" {WRITE}"
    )
    assert set(figures) - measure.NOT_ONLY_FALLING == set(KEPT["figures"]), f"run: {WRITE}"


def test_families_import_no_others_than_before():
    allowed = KEPT["family_imports"]
    now = measure.family_imports()
    new = {a: sorted(set(b) - set(allowed.get(a, ()))) for a, b in now.items()}
    new = {a: b for a, b in new.items() if b}
    assert not new, (
        "a family of machines imports machines.base and rooms below, not another family: move what"
        " both need down, or to the family that it belongs to"
    )


def test_the_list_of_families_only_shrinks():
    now = measure.family_imports()
    gone = {a: sorted(set(b) - set(now.get(a, ()))) for a, b in KEPT["family_imports"].items()}
    gone = {a: b for a, b in gone.items() if b}
    assert not gone, f"these no longer import one another; take them off the list: {WRITE}"


def test_lines_are_counted_without_docstrings_and_comments():
    lines = ['"""Title.', "", 'More."""', "", "x = 1  # why", "# a comment", "", ""]
    lines += ["def f():", '    """Do."""', "    return (", "        x", "    )", ""]
    assert measure.lines_of_code("\n".join(lines)) == 5
