"""Each public module works in a process that has imported nothing else of Mercer.

One process for all tests hides what a module forgot to import: a registration, a family.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

API = Path(__file__).resolve().parents[2] / "docs" / "api"

# what has to work after the import of the module alone; X, t, y and a folder are there
USES = {
    "mercer": "assert m.SVC('gaussian').fit(X, y).certificate_.ok",
    "mercer.approximation": """
        from mercer import KernelRidge
        machine = KernelRidge(0.1, kernel="gaussian", approximation=m.Nystrom(6))
        assert machine.fit(X, t).certificate_.ok
    """,
    "mercer.backends": "assert m.choose_backend().name in m.available_backends()",
    "mercer.blocks": """
        from mercer import KernelRidge
        assert KernelRidge(0.1).fit(m.blocks_of(lambda: iter([(X, t)]))).certificate_.ok
    """,
    "mercer.certificates": """
        from mercer.gram import PrecomputedGram
        from mercer.problems import Coefficients, LinearSystem
        K = PrecomputedGram(np.eye(24))
        system = LinearSystem(K, t[:, None], np.ones(1), np.ones(24), False)
        assert m.certify(system, Coefficients(t[:, None] / 2, np.zeros(1))).ok
    """,
    "mercer.compat.sklearn": "assert m.SVC().fit(X, y).certificate_.ok",
    "mercer.data": "assert list(m.Table.of({'a': t, 'b': y}))",
    "mercer.distributed": "assert not m.is_dask(X)",
    "mercer.files": """
        from mercer import NearestMean
        m.save(NearestMean().fit(X, y), folder + "/means.mercer")
        assert (m.load(folder + "/means.mercer").predict(X) >= 0).all()
    """,
    "mercer.fitting": """
        from mercer.data import Table
        assert m.split(Table.of({"a": t, "b": y}), "b", task="classification")
    """,
    "mercer.gram": """
        from mercer.kernels import Gaussian
        assert np.isfinite(m.make_gram(Gaussian(1.0), X, m.Need.MATRIX) @ t).all()
    """,
    "mercer.kernels": "assert m.parse('gaussian(1) + linear')(X).shape == (24, 24)",
    "mercer.plots": "assert m.MarginDisplay.from_estimator",
    "mercer.problems": """
        from mercer import solve
        from mercer.gram import PrecomputedGram
        gram = PrecomputedGram(np.eye(24))
        system = m.LinearSystem(gram, t[:, None], np.ones(1), np.ones(24), False)
        assert np.allclose(solve(system).value.coef, t[:, None] / 2)
    """,
    "mercer.reinforcement": "assert m.MountainCar()",
    "mercer.report": "assert callable(m.render)",
    "mercer.selection": """
        from mercer import KernelRidge
        assert m.tune(KernelRidge(), X, t, grid={"penalty": [0.1, 1.0]}, cv=3).best_score
    """,
    "mercer.serve": "assert m.ServeLimits()",
    "mercer.solvers": """
        from mercer.gram import PrecomputedGram
        from mercer.problems import LinearSystem
        K = PrecomputedGram(np.eye(24))
        system = LinearSystem(K, t[:, None], np.ones(1), np.ones(24), False)
        assert np.allclose(m.solve(system, m.Cholesky()).value.coef, t[:, None] / 2)
    """,
    "mercer.streaming": """
        from mercer import KernelRidge
        from mercer.blocks import blocks_of
        machine = KernelRidge(0.1).fit(X, t)
        assert len(m.predict(machine, blocks_of(lambda: iter([X])))) == 24
    """,
    "mercer.studio": "assert m.StudioLimits()",
    "mercer.testing": """
        from mercer.kernels import Gaussian
        m.check_kernel(Gaussian(1.0), X)
    """,
    "mercer.theory": "assert m.binomial_tail",
}

# Third-party libraries are imported once; the children, forked, import Mercer themselves.
PARENT = """
import importlib, os, sys, tempfile, textwrap, traceback, warnings
import numpy as np
import scipy.linalg, scipy.optimize, scipy.sparse.linalg, scipy.spatial, scipy.special, scipy.stats
import sklearn.base, sklearn.utils.multiclass, sklearn.utils.validation
import sklearn.model_selection, sklearn.metrics
assert not any(name.split(".")[0] == "mercer" for name in sys.modules)
X = np.random.default_rng(0).normal(size=(24, 2))
t, y = X[:, 0], (X[:, 0] > 0).astype(int)

def use(name, code, folder):
    warnings.simplefilter("ignore")
    scope = {"m": importlib.import_module(name), "np": np, "X": X, "t": t, "y": y, "folder": folder}
    exec(textwrap.dedent(code), scope)

for name, code in USES.items():
    child = os.fork()
    if not child:
        try:
            with tempfile.TemporaryDirectory() as folder:
                use(name, code, folder)
        except BaseException:
            print(name, traceback.format_exc(limit=-3), sep=": ", flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        print(name, "ended with", status, flush=True)
print("DONE")
"""


def test_every_public_module_is_used():
    pages = "".join(page.read_text(encoding="utf-8") for page in API.glob("*.rst"))
    assert set(re.findall(r"^\.\. automodule:: (\S+)", pages, re.MULTILINE)) == set(USES)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_each_module_works_alone():
    done = subprocess.run(
        [sys.executable, "-c", f"USES = {USES!r}\n{PARENT}"],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        timeout=240,
        check=False,
    )
    assert done.stdout.strip() == "DONE", f"{done.stdout}\n{done.stderr[-3000:]}"
