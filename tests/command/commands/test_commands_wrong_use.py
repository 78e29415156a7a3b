"""Wrong options: exit code 2, the nearest name, and nothing left behind."""

from pathlib import Path

import pytest

from mercer.command import tables
from mercer.command.commands import cluster
from mercer.data.reading.source import FORMATS
from mercer.fitting.unsupervised import METHODS as CLUSTERINGS

WRONG_USE = [
    (["--scoring", "acuracy"], "is not a scikit-learn score; choose from accuracy"),
    (["--kind", "x=numbr"], "did you mean 'number'?"),
    (["--kind", "z=number"], "no column 'z'"),
    (["--kernel", "gausian"], "did you mean 'gaussian'?"),
    (["--kernel", "gaussian("], "'gaussian(': a kernel or a number is expected"),
    (["--approximation", "nystroem:50"], "did you mean 'nystrom'?"),
    (["--approximation", "nystrom:few"], "must be an integer"),
    (["--format", "cvs"], "is not one of 'csv'"),
]


@pytest.mark.parametrize("case", range(len(WRONG_USE)))
def test_wrong_use_is_said_before_anything_is_fitted(mercer, case):
    options, said = WRONG_USE[case]
    Path("t.csv").write_text("x,y\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(40)))
    assert said in mercer("fit", "t.csv", "-t", "y", *options, code=2).err
    assert [path.name for path in Path.cwd().iterdir()] == ["t.csv"]


@pytest.mark.parametrize("kernel", ["spectrum(2)", "linear[9]", "precomputed"])
def test_a_refused_fit_leaves_no_journal(mercer, kernel):
    Path("t.csv").write_text("x,y\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(40)))
    assert "nor a kernel" in mercer("fit", "t.csv", "-t", "y", "--kernel", kernel, code=1).err
    assert [path.name for path in Path.cwd().iterdir()] == ["t.csv"]


def test_names_that_help_has_without_imports():
    assert tables.FORMATS == FORMATS
    assert tuple(CLUSTERINGS) == cluster.METHODS
