"""Schema of support vector machines, their class schemes and probabilities, and reduced sets."""

from typing import Any

import numpy as np

from mercer.files.schema.records import FITTED, Fields, machine, record
from mercer.gram import Expansion
from mercer.machines.compression.problem import ReducedSet
from mercer.machines.decomposition.components import MovedExpansion
from mercer.machines.svm.multiclass import ByClass, OneVsOne, OneVsRest, Scheme, TwoClasses
from mercer.machines.svm.novelty import EnclosingBall, OneClassSVM
from mercer.machines.svm.probabilities import Calibration
from mercer.machines.svm.problem import Dual, Duals
from mercer.machines.svm.svc import SVC
from mercer.machines.svm.svr import SVR


def _duals(value: Duals) -> Fields:
    """Concatenate the solutions of many programs: there may be thousands."""
    coefs = [np.asarray(part.coef, dtype=np.float64) for part in value.parts]
    constants = [np.atleast_1d(np.asarray(part.intercept, float)) for part in value.parts]
    return {
        "coef": np.concatenate(coefs) if coefs else np.zeros(0),
        "ends": np.cumsum([len(coef) for coef in coefs], dtype=np.int64),
        "intercept": np.concatenate(constants) if constants else np.zeros(0),
        "counts": np.array([len(constant) for constant in constants], dtype=np.int64),
        "plain": np.array([np.ndim(part.intercept) == 0 for part in value.parts], dtype=bool),
    }


def _make_duals(found: Fields) -> Duals:
    ends, counts = found["ends"], found["counts"]
    stops = np.cumsum(counts)
    if len(ends) and (ends[0] < 0 or (np.diff(ends) < 0).any() or (counts < 0).any()):
        raise ValueError("the ends of the solutions decrease")
    if (ends[-1] if len(ends) else 0) != len(found["coef"]):
        raise ValueError("the solutions do not end where the last does")
    if (stops[-1] if len(stops) else 0) != len(found["intercept"]):
        raise ValueError("the number of constants differs from the number of solutions")
    coefs = np.split(found["coef"], ends[:-1]) if len(ends) else []
    constants = np.split(found["intercept"], stops[:-1]) if len(ends) else []
    if (counts[found["plain"]] != 1).any():
        raise ValueError("a solution has no single constant")
    parts = zip(coefs, constants, found["plain"], strict=True)
    return Duals(tuple(Dual(a, float(b[0]) if plain else b) for a, b, plain in parts))


def _check_scheme(scheme: Scheme) -> None:
    ends = scheme.ends
    if len(ends) < 3 or ends[0] != 0 or (np.diff(ends) < 0).any():
        raise ValueError("the ends of the classes decrease")
    if isinstance(scheme, TwoClasses) and len(ends) != 3:
        raise ValueError("there are more than two classes")


def _check_blocks(expansion: ByClass) -> None:
    for block in expansion.blocks:
        part, places = block if len(block) == 2 else (None, None)
        if not isinstance(part, Expansion) or not isinstance(places, np.ndarray):
            raise ValueError("a class needs an expansion and indices")
        if len(places) != _width(part):
            raise ValueError("a class has different numbers of functions and indices")


def _width(expansion: Any) -> int:
    """Count the functions of an expansion."""
    inner: Any = expansion.base if isinstance(expansion, MovedExpansion) else expansion
    return len(inner.offset)


def _check_classifier(machine: SVC) -> None:
    classes = len(machine.classes_)
    if machine._scheme.count != classes:
        raise ValueError(f"the fit has {machine._scheme.count} classes, but {classes} have labels")
    held = hasattr(machine, "support_")
    if held != hasattr(machine, "n_support_") or held != hasattr(machine, "dual_coef_"):
        raise ValueError("support vectors, their counts and coefficients must occur together")
    if held and (machine.n_support_.min() < 0 or machine.n_support_.sum() != len(machine.support_)):
        raise ValueError("the support vectors of the classes differ from all support vectors")
    functions = {TwoClasses: 1, OneVsRest: classes, OneVsOne: classes * (classes - 1) // 2}
    for count in (_width(machine._expansion), np.size(machine.intercept_)):
        if count != functions[type(machine._scheme)]:
            raise ValueError(f"{classes} classes do not have {count} functions")
    calibration = machine._calibration
    if calibration is not None and len(calibration.slopes) != _width(machine._expansion):
        raise ValueError("the numbers of probabilities and functions differ")


record(ReducedSet, "vectors: rows[m,_]\ncoef: f8[m,k]", group="answer")
record(Dual, "coef: f8[n]\nintercept: f8[g] | float", group="answer")
record(
    Duals,
    "coef: f8[n]\nends: i8[m]\ncounts: i8[m]\nplain: b[m]\nintercept: f8[g]",
    group="answer",
    state=_duals,
    make=_make_duals,
    closed=True,
)

for _kind in (TwoClasses, OneVsOne, OneVsRest):
    record(_kind, "ends: i8[e]", group="scheme", check=_check_scheme)
record(
    ByClass,
    "offset: f8[p]\nblocks: tuple(tuple(@expansion{d=d} | i8[_]<p))[c]",
    group="expansion",
    check=_check_blocks,
)
record(Calibration, "scheme: @scheme\nslopes: f8[_,_]")

# an estimator made of a LIBSVM file has no solution of its own, and no verified certificate
_FITTED = FITTED.replace("solution_:", "solution_?:").replace("_judgement:", "_judgement?:")
_SUPPORT = """
    n_iter_?: int
    _expansion: @expansion{d=d}
    _n_rows?: int=n
    support_: i8[s]<n?
    support_vectors_?: f8[0,0] | rows[s,d] | rows[s,_]
"""
# a fit to rows in blocks leaves what belongs to single rows with the blocks
machine(
    SVC,
    _FITTED
    + _SUPPORT.replace("support_:", "support_?:")
    + """
    classes_: labels[c]
    _scheme: @scheme
    intercept_: f8[_] | float
    dual_coef_?: f8[s] | f8[s,_]
    n_support_?: i8[c]
    _support_codes?: i8[s]<c
    _calibration: Calibration | none
    """,
    check=_check_classifier,
)
machine(SVR, _FITTED + _SUPPORT + "epsilon_, intercept_: float\ndual_coef_: f8[s]\n")
machine(OneClassSVM, _FITTED + _SUPPORT + "intercept_, offset_: float\ndual_coef_: f8[s]\n")
machine(
    EnclosingBall,
    FITTED + _SUPPORT + "_centre, radius_, center_norm_, offset_: number\ndual_coef_: f8[s]\n",
)
