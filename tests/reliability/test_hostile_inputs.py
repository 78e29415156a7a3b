"""Every machine on hostile rows and parameters: numbers come back, or a sentence that says where.

Never a ZeroDivisionError, OverflowError, LinAlgError without words, IndexError or AttributeError,
never a NumPy warning: those say nothing of the parameter, the place and the remedy.
"""

import datetime
import inspect
import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning

import mercer
from mercer import PCA, SVC, SVR, KernelRidge, Perceptron, SpectralClustering
from mercer.compat import sklearn as compat
from mercer.kernels import Anova, Gaussian, Linear, Polynomial
from mercer.machines.base.parameters import plain

pytestmark = pytest.mark.numerics

N, D = 12, 3


def rows(n=N, d=D, scale=1.0, seed=0):
    values = np.random.default_rng(seed).standard_normal((n, d)).clip(-1.5, 1.5)
    return values * scale


def changed(place, value, dtype=float):
    X = rows().astype(dtype)
    X[place] = value
    return X


def column(scale):
    X = rows()
    X[:, 1] *= scale
    return X


SCALES = [5e-324, 1e-300, 1e-160, 1e-80, 1e80, 1e150, 1e200, 1e308]
HOSTILE = (
    {f"{n} x {d}": rows(n, d) for n in (0, 1, 2, 3) for d in (0, 1, 2)}
    | {f"times {s:g}": rows(scale=s) for s in SCALES}
    | {f"column times {s:g}": column(s) for s in SCALES}
    | {
        "one column": rows(N, 1),
        "constant": np.ones((N, D)),
        "constant 1e200": np.full((N, D), 1e200),
        "zeros": np.zeros((N, D)),
        "duplicates": np.repeat(rows(3), 4, axis=0),
        "float32, large": rows(scale=1e38).astype(np.float32),
        "float32, small": rows(scale=1e-40).astype(np.float32),
        "NaN": changed((7, 2), np.nan),
        "infinity": changed((7, 2), -np.inf),
        "None": changed((7, 2), None, object),
        "word": changed((7, 2), "tall", object),
        "huge integer": changed((7, 2), 10**400, object),
        "date": changed((7, 2), datetime.date(2020, 1, 1), object),
        "dates": np.datetime64("2020-01-01") + np.arange(N * D).reshape(N, D),
        "times": np.arange(N * D).reshape(N, D).astype("m8[D]"),
        "complex": rows() + 1j,
        "words": np.array([["a", "b"]] * N),
        "unsigned": np.full((N, D), 2**64 - 1, dtype=np.uint64),
        "one axis": rows()[:, 0],
        "three axes": rows(N, 4).reshape(N, 2, 2),
        "ragged": [[1.0, 2.0], [3.0]] * (N // 2),
        "strings": ["abc", "abd", "xyz"] * (N // 3),
        "nothing": None,
    }
)

KERNELS = [Linear(), Gaussian(1.0), Polynomial(3), Anova(2), "gaussian"]
TAKES_TARGETS = ("SVR", "KernelRidge", "NuSVR", "LinearSVR")
NOT_HERE = ("JointTable", "MaximumEntropy", "BagOfWords", "Telling")  # no rows of numbers


def machines():
    """List every public machine, with several kernels where it takes one."""
    for module in (mercer, compat):
        for name in module.__all__:
            kind = getattr(module, name)
            if not (inspect.isclass(kind) and hasattr(kind, "fit")) or name in NOT_HERE:
                continue
            known = inspect.signature(kind).parameters
            few = {key: 2 for key in ("n_clusters",) if key in known}
            few |= {"n_components": 1} if known.get("n_components") and name != "LDA" else {}
            if module is mercer and "kernel" in known:
                yield from ((kind, few | {"kernel": kernel}) for kernel in KERNELS)
            else:
                yield kind, few
    yield SVC, {"nu": 0.5, "probability": True}
    yield compat.LinearDiscriminantAnalysis, {"solver": "eigen"}
    yield compat.KernelPCA, {"kernel": "rbf", "n_components": 1, "fit_inverse_transform": True}


def targets(kind, X):
    n = N if X is None else len(X)
    if kind.__name__ == "CCA":
        return X
    return 0.1 * np.arange(n) if kind.__name__ in TAKES_TARGETS else np.arange(n) % 2


def spoken(error):
    """Return whether an error is one that speaks to people."""
    if isinstance(error, np.linalg.LinAlgError):
        return "set shrinkage" in str(error) or "Increase the value of `reg_param`" in str(error)
    if isinstance(error, ImportError):  # of machines that are trained with torch, and tested there
        return "pip install" in str(error)
    return isinstance(error, ValueError | TypeError | mercer.SolverError | MemoryError)


def numbers(found):
    found = found if isinstance(found, tuple) else (found,)
    return all(np.asarray(f).dtype.kind != "f" or np.isfinite(f).all() for f in found)


def used(machine, X):
    """Ask a fitted machine for everything it gives."""
    str(machine.certificate_) if hasattr(machine, "certificate_") else None
    for name in ("predict", "transform", "decision_function", "predict_proba"):
        if hasattr(machine, name):
            assert numbers(getattr(machine, name)(X)), name


def judge(kind, options, X, where):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", LinAlgWarning)  # RuntimeWarnings in Mercer's words
        try:
            used(kind(**options).fit(X, targets(kind, X)), X)
        except NotImplementedError:
            return  # as in scikit-learn: transform of the solver 'lsqr'
        except Exception as error:
            assert spoken(error), f"{kind.__name__}({options}) on {where}: {error!r}"
            assert len(str(error)) > 15, f"{kind.__name__} on {where}: {error!r}"


@pytest.mark.parametrize(("kind", "options"), list(machines()), ids=str)
def test_every_machine_answers_or_says_why_not(kind, options):
    # a third of the inputs for each machine, another third for the next
    turn = sum(map(ord, kind.__name__ + str(options)))
    for i, where in enumerate(HOSTILE):
        if (i + turn) % 3 == 0:
            judge(kind, options, HOSTILE[where], where)


@pytest.mark.parametrize(
    ("kind", "options", "X"),
    [
        (PCA, {"kernel": Anova(2), "n_components": 1}, rows(N, 1)),
        (KernelRidge, {"kernel": Anova(2)}, rows(N, 1)),
        (SVC, {"nu": 0.5, "probability": True}, rows(2, 2)),
    ],
)
def test_small_questions_have_answers(kind, options, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        used(kind(**options).fit(X, targets(kind, X)), X)


@pytest.mark.parametrize(
    ("machine", "scale", "words"),
    [
        (SVC(), 1e200, "kernel='gaussian': entries of X of size 1e\\+200.*Scale the features"),
        (SVR(Linear()), 1e150, "SVR: kernel values of Linear.*row . of X.*Scale the features"),
        (mercer.EnclosingBall(Linear()), 1e150, "EnclosingBall: kernel values.*Scale"),
        (mercer.ProbabilisticPCA(1), 1e200, "ProbabilisticPCA: squares of X.*Scale the features"),
        (
            PCA(1, kernel=Linear()),
            5e-324,
            "PCA: Linear.* underflows on rows of X.*Scale the features",
        ),
        (compat.SVC(), 1e200, "SVC: gamma='scale': entries of X.*pass a number as gamma"),
        (compat.CCA(1), 1e200, "CCA: the squares of column 0 of X"),
        (mercer.FisherDiscriminant(), 1e-160, "FisherDiscriminant: kernel values.*small"),
    ],
    ids=repr,
)
def test_rows_out_of_range_are_named(machine, scale, words):
    X = rows(scale=scale) + 0.0
    with pytest.raises(ValueError, match=words):
        machine.fit(X, targets(type(machine), X))


READERS = [
    SVC(), mercer.CCA(n_components=1), mercer.AxisAlignedRectangle(), mercer.GaussianClassifier(),
    compat.LinearDiscriminantAnalysis(), compat.CCA(1), compat.SpectralClustering(2),
    compat.KernelPCA(1), compat.SVC(), mercer.SpectralClustering(2), mercer.GaussianMixture(1),
]  # fmt: skip


@pytest.mark.parametrize("machine", READERS, ids=repr)
def test_the_place_of_what_is_no_number_is_named(machine):
    y = targets(type(machine), rows())
    gaps = isinstance(machine, mercer.GaussianMixture)
    if not gaps:
        with pytest.raises(ValueError, match=r"NaN.*row 7, column 2.*fill them in"):
            machine.fit(HOSTILE["NaN"], y)
    with pytest.raises(ValueError, match=r"infinity.*row 7, column 2"):
        machine.fit(HOSTILE["infinity"], y)
    with pytest.raises(ValueError, match=r"1329 bits in row 7, column 2 of X is beyond float64"):
        machine.fit(HOSTILE["huge integer"], y)
    with pytest.raises(TypeError, match=r"column 0 of X holds dates or times; turn them"):
        machine.fit(HOSTILE["dates"], y)
    fitted = machine.fit(rows(), y)
    for name in ("predict", "transform", "decision_function"):
        if hasattr(fitted, name) and not gaps:
            with pytest.raises(ValueError, match=r"NaN.*row 7, column 2"):
                getattr(fitted, name)(HOSTILE["NaN"])


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::mercer.DisconnectedWarning")
def test_numbers_of_numpy_are_plain_during_a_fit_and_given_back_after_it():
    machine = SpectralClustering(np.int8(2), neighbors=np.int8(2), random_state=0)
    given = machine.get_params()
    X = np.vstack([rows(60), rows(60) + 9.0])
    expected = SpectralClustering(2, neighbors=2, random_state=0).fit(X).labels_
    np.testing.assert_array_equal(machine.fit(X).labels_, expected)
    assert all(machine.get_params()[name] is given[name] for name in given)
    assert plain(np.uint8(200)) + 100 == 300
    assert isinstance(plain(2**64), float)


@pytest.mark.parametrize("value", [2**64, 10**30, [2**64], np.float32(2.0), np.uint8(2)])
def test_penalties_of_any_type_of_number(value):
    y = targets(KernelRidge, rows())
    expected = float(np.ravel(np.array(value, dtype=float))[0])
    assert KernelRidge(penalty=value).fit(rows(), y).penalty_ == expected
    mercer.CCA(n_components=1, penalty=np.ravel(value)[0]).fit(rows(), rows(seed=1))


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (KernelRidge(penalty=10**400), "penalty"),
        (SVC(C=10**400), "C"),
        (SVC(tol=-(10**400)), "tol"),
        (mercer.KMeans(10**400), "n_clusters"),
        (Perceptron(time_limit=10**400), "time_limit"),
        (compat.SVC(gamma=10**400), "gamma"),
    ],
    ids=lambda case: case if isinstance(case, str) else type(case).__name__,
)
def test_integers_beyond_float64_are_named_and_not_spelled_out(machine, name):
    with pytest.raises(ValueError, match=f"{name}=<integer of 1329 bits> must") as caught:
        machine.fit(rows(), targets(type(machine), rows()))
    assert len(str(caught.value)) < 200
