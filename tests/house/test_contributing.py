"""The recipes of CONTRIBUTING.md name files that exist, and their examples pass the kits."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from mercer.gram import Need, PrecomputedGram, make_gram
from mercer.kernels import Gaussian
from mercer.kernels.algebra import is_proven
from mercer.problems import LinearSystem
from mercer.testing import check_gram, check_kernel, check_solver

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = {"CONTRIBUTING.md": PAGE} | {
    f"docs/{name}.md": (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("design", "decisions", "defaults", "reliability", "coverage")
}
# rooms are named without src/mercer, pages and compiled files without their folder
FOLDERS = [ROOT, ROOT / "src" / "mercer", ROOT / "docs", ROOT / "native" / "src"]
FAMILIES = ("src/mercer/kernels", "src/mercer/machines/svm")
SUFFIXES = ("py", "md", "rst", "toml", "hpp", "cpp", "sh")
MADE = ("docs/_build", "demo-output")  # by `make`


def named_files(text):
    """Return the paths between back quotes; a pattern such as `<family>` stands for any folder."""
    outside = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    words = [word for quoted in re.findall(r"`([^`\n]+)`", outside) for word in quoted.split()]
    is_path = re.compile(rf"[\w./<>*-]+\.({'|'.join(SUFFIXES)})|[\w./<>-]+/")
    return sorted({word for word in words if is_path.fullmatch(word)})


def exists(path):
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    if pattern.startswith(MADE):
        return True
    return any(
        any(folder.glob(pattern)) for folder in [*FOLDERS, *(ROOT / name for name in FAMILIES)]
    )


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page):
    missing = [path for path in named_files(PAGES[page]) if not exists(path)]
    assert not missing, f"{page} names files that have moved or gone: {missing}"


def test_a_file_that_has_gone_is_seen():
    text = "`src/mercer/gram/base.py` and `gram/gone.py`, `solvers/<family>/` or `nowhere/`"
    assert [path for path in named_files(text) if not exists(path)] == ["gram/gone.py", "nowhere/"]


@pytest.fixture(scope="module")
def examples():
    """Run all examples, and return what they define."""
    module = ModuleType("contributing")  # what is pickled has to have a module
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for indent, block in blocks:
        exec("\n".join(line.removeprefix(indent) for line in block.splitlines()), vars(module))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "contributing", module)
        yield module


RNG = np.random.default_rng(0)
F, D, Z = RNG.normal(size=(20, 3)), RNG.uniform(size=20), RNG.normal(size=(4, 3))


def test_the_kernel(examples):
    kernel = examples.Cauchy(0.5)
    check_kernel(kernel.with_params(scale=2.0) + 1, F)
    assert is_proven(kernel)
    squared = np.square(F[:, None] - Z).sum(axis=2)
    np.testing.assert_allclose(kernel(F, Z), 1 / (1 + squared / 0.25), rtol=1e-12)


def test_the_estimator(examples):
    checks = check_estimator(examples.OriginRidge(Gaussian(1.0)), on_skip=None, on_fail=None)
    assert not [check for check in checks if check["status"] == "failed"]
    X, y = F, np.sin(F[:, 0])
    machine = examples.OriginRidge(Gaussian(1.0), penalty=0.1).fit(X, y)
    assert machine.certificate_.ok
    direct = np.linalg.solve(Gaussian(1.0)(X) + 0.1 * np.eye(len(X)), y)
    np.testing.assert_allclose(machine.predict(Z), Gaussian(1.0)(Z, X) @ direct, rtol=1e-10)


def test_the_gram(examples):
    check_gram(examples.NoisyGram(F, D), F @ F.T + np.diag(D), Z, Z @ F.T)


def test_the_solver(examples):
    solver, y = examples.GaussSeidel(), RNG.normal(size=(20, 2))
    gram = make_gram(Gaussian(1.0), F, Need.MATRIX)
    system = LinearSystem(gram, y, np.full(2, 0.5), np.ones(20), bias=False)
    check_solver(solver, system)
    given = PrecomputedGram(gram.dense())
    biased = LinearSystem(given, y, np.full(2, 0.5), np.ones(20), bias=True)
    assert "use solver=Cholesky()" in solver.refuses(biased)
