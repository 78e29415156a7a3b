"""What holds for every fit, whatever the machine: one function each, which yields complaints."""

import pickle
import re

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

import mercer
from fuzz.margins import gram
from fuzz.trial import answers, dense, place, raised_in_words
from mercer import Status
from mercer.deadline import TimeLimitError

# a limit that is over before there is any answer, which a busy machine takes long for
ERRORS = (ValueError, TypeError, mercer.MemoryBudgetError, mercer.SolverError, TimeLimitError)
NOT_EXACT = (ConvergenceWarning, LinAlgWarning)
WARNINGS = (
    *NOT_EXACT,
    mercer.DisconnectedWarning,
    mercer.ApproximationWarning,
    mercer.FitWarning,
    DataConversionWarning,
    FutureWarning,
)
SPOKEN = re.compile(r"[\w=']+: ")  # a sentence that begins with a machine or a parameter
SAME_BITS = ("SVC",)  # promised whatever the order of the rows
ORDERLESS = ("KernelRidge", "LogisticRegression", "NearestMean", "NaiveBayes", "GaussianClassifier")
# where `max_iter` is documented as the steps of one start, and those of all starts are counted
STARTS = {
    "ICA": lambda machine: int(machine.n_init) * len(machine.components_),
    "ProjectionPursuit": lambda machine: int(machine.n_init) * len(machine.components_),
    "GaussianProcess": lambda machine: int(machine.starts),
    "GaussianProcessClassifier": lambda m: int(m.starts) * m.dual_coef_.shape[1],  # and class
}
CLOSE = 1e-6
GAP_CLOSE = 1e-3  # a relative gap of 1e-6 leaves the root of it to the function
POLLS = 64  # each programme of a fit may look once more after it was asked to stop


def errors_are_sentences(trial):
    """Only errors of known kinds are raised, on purpose and in words."""
    asked = {("fit", "X"): trial.error} if trial.error else trial.raised
    for (method, variable), error in asked.items():
        name = type(error).__name__
        twin = trial.case.name.startswith("compat") and isinstance(error, NotImplementedError)
        if not isinstance(error, ERRORS) and not twin:
            yield f"{method}({variable}): raw {name} at {place(error)}: {error}"
        elif not raised_in_words(error):
            yield f"{method}({variable}): {name} not written by Mercer at {place(error)}: {error}"
        elif len(str(error)) < 20:
            yield f"{method}({variable}): {name} says too little: {error}"


def input_is_unchanged(trial):
    for name, before in trial.before.items():
        if trial.after[name] != before:
            yield f"{name} was changed"


def solved_is_certified(trial):
    """SOLVED means what was asked for; a certificate may ask for more than the user did.

    The one such case: without `refine` K-means ends where every point is with its nearest mean,
    and the certificate still tries moves of single points. Anything else in it must hold.
    """
    status = _status(trial)
    if trial.case.name == "KMeans" and not trial.machine.refine and not trial.machine.balanced:
        found = trial.machine.certificate_.quantities
        if found.empty == 0 and found.reassignment_gain <= trial.machine.certificate_.tol:
            return
    if status is Status.SOLVED and hasattr(trial.machine, "certificate_") and not trial.certified:
        yield f"SOLVED, but {_sentence(trial.machine.certificate_)}"


def unsolved_warns(trial):
    status = _status(trial)
    warned = any(issubclass(w.category, NOT_EXACT) for w in trial.said)
    if status not in (None, Status.SOLVED, Status.STOPPED) and not warned:
        yield f"{status.name} without a warning"


def certified_is_finite(trial):
    for (method, variable), answer in trial.answers.items():
        if answer.dtype.kind == "f" and np.isnan(answer).any():
            said = "certified" if trial.certified else _status(trial) or "no status"
            if trial.certified or _status(trial) is not Status.NOT_FINITE:
                yield f"{method}({variable}) is NaN ({said})"
        elif method in ("predict", "transform") and answer.dtype.kind == "f" and trial.certified:
            if not np.isfinite(answer).all():
                yield f"{method}({variable}) is infinite, certified"


def predictions_agree(trial):
    """The label is that of the largest decision value and of the largest probability."""
    machine = trial.machine
    if not is_classifier(machine) or "loss" in trial.case.parameters:
        return
    for variable in ("X", "X_new"):
        label = trial.answers.get(("predict", variable))
        value = trial.answers.get(("decision_function", variable))
        if label is None or value is None or np.isnan(value).any():
            continue
        if trial.case.name.startswith("compat") and (value.ndim > 1 or not value.all()):
            continue  # ties and votes are decided as scikit-learn does
        chosen = value > 0 if value.ndim == 1 else np.argmax(value, axis=1)
        if not np.array_equal(machine.classes_[np.asarray(chosen, dtype=int)], label):
            yield f"predict({variable}) is not the label of decision_function"


def probabilities_are_such(trial):
    for variable in ("X", "X_new"):
        P = trial.answers.get(("predict_proba", variable))
        if P is None or np.isnan(P).any():
            continue
        # scikit-learn's own fits of float32 rows answer in float32
        allowed = 1e-9 if P.dtype == np.float64 else 1e-6
        if P.min(initial=0) < 0 or abs(P.sum(axis=1) - 1).max(initial=0) > allowed:
            yield f"predict_proba({variable}): rows sum to {P.sum(axis=1)[:3]}, least {P.min()}"
        label = trial.answers.get(("predict", variable))
        if "loss" in trial.case.parameters or label is None or not is_classifier(trial.machine):
            continue
        if "rule" in trial.case.parameters or trial.case.name.startswith("compat"):
            continue
        own = P[np.arange(len(P)), np.searchsorted(trial.machine.classes_, label)]
        if (own < P.max(axis=1) - allowed).any():
            yield f"predict({variable}) is not the likeliest label"


def fits_repeat(trial):
    """The same program gives the same bits."""
    if "time_limit" in trial.case.parameters or "polls" in trial.names or not trial.case.fair:
        return
    again = trial.again()
    found = trial.quietly(lambda: answers(again["machine"], again, trial.questions))[0]
    yield from _different(trial.answers, found, "a second run")


def pickles_round(trial):
    if any("lambda" in line for line in trial.case.make):
        return
    copied = trial.quietly(lambda: pickle.loads(pickle.dumps(trial.machine)))
    found = trial.quietly(lambda: answers(copied, trial.names, trial.questions)[0])
    yield from _different(trial.answers, found, "a pickled copy")


def warnings_are_known(trial):
    # several questions to a machine may warn from one line: that is one finding
    for message in {(w.category, str(w.message), w.lineno): w for w in trial.said}.values():
        text = str(message.message)
        own = SPOKEN.match(text) or trial.case.name.startswith("compat")
        theirs = (
            message.category.__module__.startswith("sklearn") or "/sklearn/" in message.filename
        )
        known = issubclass(message.category, WARNINGS) or (message.category is UserWarning and own)
        if not known and not (theirs and message.category is not RuntimeWarning):
            where = f"{message.filename.rpartition('/')[2]}:{message.lineno}"
            yield f"{message.category.__name__} at {where}: {text}"


def stops_when_asked(trial):
    polls = len(trial.names.get("polls", ()))
    if polls > 3 + POLLS and "Tuned" not in trial.case.make[-1]:
        yield f"polled {polls - 3} times after it was asked to stop"


def steps_are_bounded(trial):
    most = trial.case.parameters.get("max_iter")
    # of a machine that learns its kernel, steps over the simplex are counted
    holder = getattr(trial.machine, "combined_", trial.machine)
    solution = getattr(trial.machine, "solution_", None)
    solution = getattr(holder, "solution", solution)
    if most is None or solution is None or not trial.case.fair:
        return
    fitted = getattr(trial.machine, "best_estimator_", trial.machine)
    parts = max(1, len(np.atleast_1d(getattr(fitted, "intercept_", 0.0))))
    if trial.case.name in STARTS:
        parts = STARTS[trial.case.name](fitted)
    if solution.iterations > int(most) * parts and solution.status is Status.SOLVED:
        yield f"max_iter={most}, but {solution.iterations} steps of {solution.solver}, SOLVED"


def sentences_are_sound(trial):
    certificate = getattr(trial.machine, "certificate_", None)
    text = "" if certificate is None else str(certificate).splitlines()[0]
    if "within -" in text or (certificate is not None and certificate.ok and "nan" in text):
        yield f"certificate says: {text}"
    # certified by its conditions alone, an answer must not seem to be near the least objective
    gap = getattr(getattr(certificate, "quantities", None), "relative_gap", 0.0)
    if (
        certificate is not None
        and certificate.ok
        and not gap < 1
        and "nothing is shown" not in text
        and "the loss is not convex" not in text  # no gap exists, and the sentence says why
    ):
        yield f"certified with a gap of {100 * gap:.3g} %: {text}"


def order_does_not_matter(trial):
    if "Tuned" in trial.case.make[-1]:  # folds are made of rows as they come
        return
    if not trial.case.fair or not trial.case.tame or trial.case.name not in SAME_BITS + ORDERLESS:
        return
    if not trial.certified or not trial.case.psd:
        return
    if "'tanh'" in trial.case.parameters.get("loss", ""):
        return  # not convex: which stationary point is found depends on rounding
    order = np.random.default_rng(0).permutation(len(trial.y))
    weights = trial.weights if "weights" in trial.names else None
    own = trial.refitted(trial.X, trial.y, weights)
    weights = None if weights is None else weights[order]
    other = trial.refitted(trial.X[order], trial.y[order], weights)
    if other.certificate_.ok:  # an order whose rounding hurts, and which says so, claims nothing
        yield from _far(trial, own, other, "rows in another order")


def weights_are_repetition(trial):
    if "Tuned" in trial.case.make[-1]:
        return
    if not trial.case.fair or not trial.case.tame or "weights" not in trial.names:
        return
    if trial.case.name not in SAME_BITS + ORDERLESS or not trial.certified or not trial.case.psd:
        return
    if "n_features" in trial.case.parameters or trial.case.parameters.get("penalty") == "'loo'":
        return
    if trial.case.parameters.get("loss") == "'tanh'":  # not convex: flat where classes weigh alike
        return
    times = trial.weights.astype(int)
    own = trial.refitted(trial.X, trial.y, trial.weights)
    other = trial.refitted(np.repeat(trial.X, times, axis=0), np.repeat(trial.y, times), None)
    # copies of rows can make a system singular to rounding; what says so claims nothing
    if other.certificate_.ok:
        yield from _far(trial, own, other, "rows repeated instead of weighted")


ON_ERROR = (errors_are_sentences, warnings_are_known)
ALWAYS = (
    *ON_ERROR,
    input_is_unchanged,
    solved_is_certified,
    unsolved_warns,
    certified_is_finite,
    predictions_agree,
    probabilities_are_such,
    stops_when_asked,
    steps_are_bounded,
    sentences_are_sound,
    fits_repeat,
    pickles_round,
    order_does_not_matter,
    weights_are_repetition,
)


def _status(trial):
    solution = getattr(trial.machine, "solution_", None)
    return getattr(solution, "status", None)


def _sentence(certificate):
    numbers = ", ".join(
        f"{k}={v:.3g}" for k, v in vars(certificate.quantities).items() if isinstance(v, float)
    )
    return f"not certified (tol {certificate.tol:.1e}): {numbers}"


def _different(one, other, what):
    for key in one:
        if key not in other:
            yield f"{key[0]}({key[1]}) is refused by {what}"
        elif not np.array_equal(one[key], other[key], equal_nan=one[key].dtype.kind == "f"):
            yield f"{key[0]}({key[1]}) differs in {what}"


def _far(trial, one, other, what):
    """Compare values at the training rows, by their own size."""
    method = "decision_function" if hasattr(one, "decision_function") else "predict"
    values, others = (
        trial.quietly(lambda m=m: dense(getattr(m, method)(trial.X))) for m in (one, other)
    )
    if values.dtype.kind != "f":
        return
    # scores of a smooth loss have the unit of its argument: far below one they are rounding
    least = 1e-9 if trial.case.name == "LogisticRegression" else 1e-300
    size, moved = max(abs(values).max(initial=0), least), values - others
    if moved.ndim > 1:  # what is added to all classes alike says nothing
        moved = moved - moved.mean(axis=1, keepdims=True)
    apart = max(abs(moved).max(initial=0) - _rounding(trial, one), 0.0) / size
    allowed = GAP_CLOSE if trial.case.name == "LogisticRegression" else CLOSE
    # of covariances that are singular but for their floor, rounding is amplified by the condition
    condition = getattr(one.certificate_.quantities, "condition", 0.0)
    if apart > allowed + 100 * np.finfo(float).eps * condition:
        yield f"{what}: {method} moves by {apart:.1e} of its size"


def _rounding(trial, machine):
    """Return what scores of a smooth loss are known to, where it is best that they vanish.

    A sum whose terms cancel is rounded in the size of these: with k = 400 and as many rows of
    either class, scores of 1e-12 are zero, and no order of the rows has the right ones.
    """
    if trial.case.name != "LogisticRegression" or not trial.case.psd:
        return 0.0
    coef = np.abs(np.asarray(machine.dual_coef_, dtype=float)).reshape(len(trial.X), -1)
    return 64 * np.finfo(float).eps * float((np.abs(gram(trial)) @ coef).max(initial=0.0))
