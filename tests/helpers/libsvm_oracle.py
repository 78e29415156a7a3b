"""LIBSVM itself, through its C interface: trains, writes models, reads them, decides.

Tests that need it are skipped where it is not there. `MERCER_LIBSVM` names a shared library of
LIBSVM 3.37 or later, made from its sources by `g++ -O2 -fPIC -shared -o libsvm.so svm.cpp`; else
that of the system is taken, if it is as new.
"""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_void_p
from ctypes.util import find_library

import numpy as np

TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
KERNELS = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
OLDEST = 337


class Node(ctypes.Structure):
    _fields_ = [("index", c_int), ("value", c_double)]


class Problem(ctypes.Structure):
    _fields_ = [("l", c_int), ("y", POINTER(c_double)), ("x", POINTER(POINTER(Node)))]


class Parameter(ctypes.Structure):
    _fields_ = [
        ("svm_type", c_int),
        ("kernel_type", c_int),
        ("degree", c_int),
        ("gamma", c_double),
        ("coef0", c_double),
        ("cache_size", c_double),
        ("eps", c_double),
        ("C", c_double),
        ("nr_weight", c_int),
        ("weight_label", POINTER(c_int)),
        ("weight", POINTER(c_double)),
        ("nu", c_double),
        ("p", c_double),
        ("shrinking", c_int),
        ("probability", c_int),
    ]


_SILENT = ctypes.CFUNCTYPE(None, c_char_p)(lambda _: None)


class Libsvm:
    """The functions of the library that tests need."""

    def __init__(self, name):
        self._c = ctypes.CDLL(name)
        self.version = c_int.in_dll(self._c, "libsvm_version").value
        self._c.svm_train.restype = self._c.svm_load_model.restype = c_void_p
        self._c.svm_predict_values.restype = self._c.svm_predict_probability.restype = c_double
        self._c.svm_set_print_string_function(_SILENT)

    def train(self, X, y, svm_type, kernel, path, **options):
        """Train and write the model; options as in `svm_parameter`."""
        rows = _nodes(X, kernel == "precomputed")
        n = len(rows)
        pointers = (POINTER(Node) * n)(*[ctypes.cast(row, POINTER(Node)) for row in rows])
        problem = Problem(n, (c_double * n)(*map(float, y)), pointers)
        defaults = dict(degree=3, gamma=0.3, coef0=0.5, cache_size=50.0, eps=1e-3, C=1.0, nu=0.3)
        given = {**defaults, "p": 0.1, "shrinking": 1, "probability": 0, **options}
        kinds = {"svm_type": TYPES.index(svm_type), "kernel_type": KERNELS.index(kernel)}
        parameter = Parameter(**kinds, **given)
        model = self._c.svm_train(ctypes.byref(problem), ctypes.byref(parameter))
        assert self._c.svm_save_model(os.fsencode(path), c_void_p(model)) == 0

    def predict(self, path, X, *, classes=2, precomputed=False, probability=False):
        """Read a model; return decision values, predictions and probabilities."""
        model = self._c.svm_load_model(os.fsencode(path))
        assert model, f"LIBSVM does not read {path}"
        model = c_void_p(model)
        decision = (c_double * (classes * (classes - 1) // 2))()
        shares = (c_double * classes)()
        values, labels, probabilities = [], [], []
        for row in _nodes(X, precomputed):
            labels.append(self._c.svm_predict_values(model, row, decision))
            values.append(list(decision))
            if probability:
                self._c.svm_predict_probability(model, row, shares)
                probabilities.append(list(shares))
        values = np.array(values)
        values = values[:, 0] if values.shape[1] == 1 else values
        return values, np.array(labels), np.array(probabilities)


def _nodes(X, precomputed):
    rows = []
    for i, x in enumerate(np.asarray(X).tolist(), 1):
        entries = [(j, value) for j, value in enumerate(x, 1) if precomputed or value != 0]
        entries = [(0, float(i)), *entries] if precomputed else entries
        rows.append((Node * (len(entries) + 1))(*entries, (-1, 0.0)))
    return rows


def found():
    """Return LIBSVM, or None where it is not there or too old."""
    name = os.environ.get("MERCER_LIBSVM") or find_library("svm")
    if not name:
        return None
    libsvm = Libsvm(name)
    return libsvm if libsvm.version >= OLDEST else None


def sample(svm_type, kernel, classes=2, n=60, seed=0):
    """Return rows (or a kernel matrix) and targets that every type of machine can learn."""
    rng = np.random.default_rng([seed, TYPES.index(svm_type), KERNELS.index(kernel), classes])
    X = rng.normal(size=(n, 4)).round(6)  # LIBSVM writes 8 digits
    X[rng.random(X.shape) < 0.2] = 0.0
    if svm_type in ("c_svc", "nu_svc"):
        y = rng.permutation(np.arange(n) % classes)
        X[:, 0] += y
        y = 5 * y - 3
    else:
        y = X[:, 0] + 0.3 * rng.normal(size=n)
    if kernel == "precomputed":
        X = np.exp(-0.2 * np.square(X[:, None] - X[None]).sum(axis=-1))
    return X, y


def options(kernel):
    """Return parameters of the kernel with which all types of machines have an answer."""
    return {"gamma": 0.02, "coef0": 0.0} if kernel == "sigmoid" else {}
