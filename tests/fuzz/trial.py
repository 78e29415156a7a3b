"""One case run: what went in, what came out, what was said on the way."""

import copy
import linecache
import pickle
import traceback
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.base import clone

import mercer
from fuzz.case import HEAD

ANSWERS = ("predict", "decision_function", "predict_proba", "transform", "score_samples")
SOURCES = (Path(mercer.__file__).parent.as_posix(), "/sklearn/")


class Trial:
    """A case that was run.

    Attributes
    ----------
    case : Case
        What was run.
    names : dict
        The variables of the program.
    skipped : bool
        Whether the data could not even be made.
    error : Exception or None
        What the fit raised.
    said : list of WarningMessage
        What the fit warned of.
    answers : dict
        What the machine says to its training rows and to new ones: (method, variable) -> array.
    raised : dict
        What it raised instead.
    """

    def __init__(self, case):
        self.case = case
        self.names = {}
        self.error = None
        self.said, self.answers, self.raised = [], {}, {}
        self.skipped = not self._prepared()
        if self.skipped:
            return
        self.before = _frozen(self.names)
        with warnings.catch_warnings(record=True) as self.said:
            warnings.simplefilter("always")
            try:
                exec("\n".join([*case.make, *case.fit]), self.names)
            except Exception as error:
                self.error = error
                return
            self.answers, self.raised = answers(self.machine, self.names, self.questions)
        self.after = _frozen(self.names)

    def _prepared(self):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec("\n".join(HEAD), self.names)
            try:
                exec("\n".join(self.case.data), self.names)
            except (ValueError, MemoryError):  # a Gram matrix that a kernel refused to make
                return False
        return True

    @property
    def questions(self):
        """The variables that a fitted machine is asked about."""
        new = "DataFrame" not in " ".join(self.case.data)  # else names of columns are missed
        return ("X", "X_new") if new else ("X",)

    @property
    def machine(self):
        return self.names["machine"]

    @property
    def certified(self):
        certificate = getattr(self.machine, "certificate_", None)
        return certificate is not None and certificate.ok

    @property
    def X(self):
        return dense(self.names["X"])

    @property
    def y(self):
        return np.asarray(self.names["y"])

    @property
    def weights(self):
        return np.asarray(self.names.get("weights", np.ones(self.X.shape[0])), dtype=float)

    def quietly(self, work):
        """Run something again without listening."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return work()

    def refitted(self, X, y, weights, **parameters):
        """Fit an equal machine to other rows, or to the same ones in another order."""
        machine = clone(self.machine).set_params(**parameters)
        given = [X] if y is None else [X, y]
        if weights is None:
            return self.quietly(lambda: machine.fit(*given))
        return self.quietly(lambda: machine.fit(*given, sample_weight=weights))

    def again(self):
        """Run the whole program again; return its machine."""
        names = {}
        lines = [*HEAD, *self.case.data, *self.case.make, *self.case.fit]
        self.quietly(lambda: exec("\n".join(lines), names))
        return names


def answers(machine, names, questions):
    """Ask a machine all it can be asked."""
    found, raised = {}, {}
    for method in ANSWERS:
        if not hasattr(machine, method):
            continue
        for variable in questions:
            try:
                found[method, variable] = dense(getattr(machine, method)(names[variable]))
            except Exception as error:
                raised[method, variable] = error
    return found, raised


def dense(X):
    """Return rows as an array, whatever held them."""
    return X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)


def raised_in_words(error):
    """Return whether an exception was raised on purpose, by Mercer or by scikit-learn's checks."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno).strip()
    return line.startswith("raise") and any(s in frame.filename for s in SOURCES)


def place(error):
    """Say where an exception came from: the last lines of Mercer's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if SOURCES[0] in f.filename]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "outside"


def _frozen(names):
    return {key: _bytes(names[key]) for key in ("X", "y", "weights") if key in names}


def _bytes(X):
    if scipy.sparse.issparse(X):
        parts = (X.data, X.coords if X.format == "coo" else (X.indices, X.indptr))
        return pickle.dumps(copy.deepcopy(parts))
    return pickle.dumps(copy.deepcopy(X))
