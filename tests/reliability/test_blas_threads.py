"""The setting `threads` reaches BLAS, and small fits wake none of its threads."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import ThreadpoolController

import mercer
from mercer.backends.lapack import blas_threads, blas_threads_for, one_blas_thread

SOURCE = str(Path(mercer.__file__).parents[1])

PROGRAM = """
import sys, time, warnings
import numpy as np
import mercer
from mercer import selection
from mercer.kernels import Gaussian
warnings.simplefilter("ignore")
n, threads = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.standard_normal((n, 4))
t, c = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n), (X[:, 0] > 0).astype(int)
if threads:
    mercer.set_config(threads=threads)
work = lambda: FIT
work()
time.sleep(0.3)  # threads that spin stop
everyone, own = time.process_time(), time.thread_time()
work()
time.sleep(0.3)
own = time.thread_time() - own
print(own, time.process_time() - everyone - own)
"""

FITS = {
    "scales": "selection.learn_scales(X, t, starts=1, max_iter=5)",
    "process": "mercer.GaussianProcess(1.0 * Gaussian(1.0), optimize=True).fit(X, t)",
    "classes": "mercer.GaussianProcessClassifier(1.0 * Gaussian(1.0), optimize=True).fit(X, c)",
    "tasks": "mercer.MultiTaskGaussianProcess(Gaussian(1.0), optimize=True).fit(X, X[:, :2])",
    "ridge": "mercer.KernelRidge(0.1).fit(X, t)",
    "pca": "mercer.PCA(2).fit(X)",
    "cca": "mercer.CCA().fit(X[:, :2], X[:, 2:])",
    "fisher": "mercer.FisherDiscriminant().fit(X, c)",
    "svc": "mercer.SVC(Gaussian(1.0)).fit(X, c)",
}


def others(fit, n, threads=0):
    """Return the processor time of the calling thread, and of all others."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("FIT", FITS[fit]), str(n), str(threads)],
        env=environment | {"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )
    return (float(word) for word in found.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("n", "threads"), [(120, 1), (1500, 1), (120, 0)])
def test_other_threads_are_at_rest(fit, n, threads):
    if n > 1000 and fit in ("scales", "process", "classes", "tasks"):
        n = 1050
    own, other = others(fit, n, threads)
    # kernels may be evaluated on all cores; threads of BLAS would spin for longer
    assert other <= (0.02 if threads else 0.02 + own)


def counts():
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library.num_threads for library in found]


def test_the_smallest_limit_is_in_force_and_the_last_lifts_it():
    with ThreadpoolController().limit(limits=3, user_api="blas"):
        own = counts()
        first, second, third = blas_threads(2), one_blas_thread(), blas_threads(64)
        first.__enter__()
        assert counts() == [2] * len(own)
        second.__enter__()
        first.__exit__(None, None, None)
        assert counts() == [1] * len(own)
        third.__enter__()
        second.__exit__(None, None, None)
        assert counts() == own  # never more than without
        third.__exit__(None, None, None)
        assert counts() == own


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ((np.zeros((1000, 5)), np.zeros(1000)), 1),
        ((np.zeros((1001, 5)),), 2),
        ((np.zeros((900, 2000)),), 2),
        ((["a", "b"], [0, 1]), 1),
        ((sparse.csr_array((500, 100)),), 1),
        ((np.zeros((200, 3)), np.zeros((200, 10**4))), 2),
        ((object(),), 2),
        ((), 2),
    ],
)
def test_few_samples_take_one_thread(data, expected, monkeypatch):
    monkeypatch.setattr("mercer.backends.lapack.thread_limit", lambda: 2)
    with ThreadpoolController().limit(limits=3, user_api="blas"), blas_threads_for(*data):
        assert set(counts()) == {expected}


def test_fits_go_by_the_setting(monkeypatch):
    seen = []
    X = np.random.default_rng(0).standard_normal((1200, 2))
    found = mercer.KernelRidge._solve

    def watched(self, *args, **kwargs):
        seen.extend(counts())
        return found(self, *args, **kwargs)

    monkeypatch.setattr(mercer.KernelRidge, "_solve", watched)
    with ThreadpoolController().limit(limits=3, user_api="blas"), mercer.config(threads=1):
        mercer.KernelRidge(0.1).fit(X, X[:, 0])
    assert set(seen) == {1}
