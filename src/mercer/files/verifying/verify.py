"""Judge a stored machine against data, from the data and the stored answer alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.certificates import Certificate, ReductionQuantities, StreamQuantities
from mercer.files.machine_parts import parts_of_machine
from mercer.files.schema.record import record_name
from mercer.files.verifying.answers import StoredAnswers
from mercer.files.verifying.compare import differences
from mercer.selection import FeatureElimination, Tuned
from mercer.solvers import Solution
from mercer.solvers.known_answers import known_answers


@dataclass(frozen=True)
class Verification:
    """What a stored machine is worth on given data.

    Attributes
    ----------
    ok : bool
        Whether the stored answer is certified on the data, and nothing differs.
    certificate : Certificate or None
        The stored answer judged by the data; None for machines that have none.
    differences : tuple of str
        Attributes that do not follow from the data and the answer, first ones first.
    statement : str
        The same in words.
    """

    ok: bool
    certificate: Certificate | None
    differences: tuple[str, ...]
    statement: str

    @property
    def quantities(self) -> Any:
        """What the certificate measured."""
        return None if self.certificate is None else self.certificate.quantities

    @property
    def tol(self) -> float | None:
        """What was asked of the answer."""
        return None if self.certificate is None else self.certificate.tol

    def __str__(self) -> str:
        judged = "" if self.certificate is None else f"\n{self.certificate}"
        return f"{'verified' if self.ok else 'NOT verified'}: {self.statement}{judged}"


def verify(
    machine: Any, X: Any, y: Any = None, sample_weight: Any = None, *, tol: float | None = None
) -> Verification:
    """Judge a machine, such as one from a file, against the data it should have been fitted to.

    The problem is written anew from the data and the parameters; the stored answer is put in the
    place of a solver's, and judged by the certificate, which trusts nothing that was stored beside
    it. Everything else that the machine holds (coefficients, support vectors, constants, scales) is
    made anew from the data and that answer, and compared with what is stored, to nine digits of
    the largest number.

    So `ok` proves: the stored answer solves this problem on these data within the tolerance, and
    the machine predicts by that answer and no other. It does not prove that the data are those of
    the fit: other data with the same answer, such as a row moved far from the boundary of a support
    vector machine, are verified too.

    Parameters
    ----------
    machine : estimator
        A fitted machine; a pipeline, of which every step is looked at; or a `Tuned`, of which the
        chosen machine is, not the choice.
    X, y : array-like
        The training data, as `fit` takes them.
    sample_weight : array-like, optional
        As `fit` takes it.
    tol : float, optional
        How good the answer must be, for machines with such a parameter; their own if left out.

    Returns
    -------
    Verification
        The verdict, the certificate, and what differs.

    Raises
    ------
    ValueError
        For machines that learnt from a stream, whose rows are gone, for compressed ones, and for
        rows of another length.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.files import verify
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> machine = SVC("gaussian(1)").fit(X, y)
    >>> verify(machine, X, y).ok
    True
    >>> machine.support_vectors_[0, 0] += 0.01
    >>> verify(machine, X, y).differences
    ('support_vectors_',)
    """
    if isinstance(machine, Pipeline):
        return _verify_steps(machine, X, y, sample_weight, tol)
    if isinstance(machine, Tuned):
        return verify(machine.best_estimator_, X, y, sample_weight, tol=tol)
    if isinstance(machine, FeatureElimination):
        return verify(machine.machine_, machine.transform(X), y, sample_weight, tol=tol)
    if record_name(machine) is None or not hasattr(machine, "fit"):
        raise ValueError(
            f"verify: {type(machine).__name__} is no machine that is fitted to rows; for the model "
            "of a table, verify(model.machine, model.preparation.transform(rows), y)"
        )
    _refuse_streams(machine)
    _refuse_compressed(machine)
    _refuse_width(machine, X)
    return _verify_machine(machine, X, y, sample_weight, tol)


def _verify_machine(machine: Any, X: Any, y: Any, weights: Any, tol: float | None) -> Verification:
    twin = _unfitted(machine, tol)
    found = [part for part in parts_of_machine(machine) if isinstance(part, Solution)]
    answers = StoredAnswers(found)
    more = {} if weights is None else {"sample_weight": weights}
    with known_answers(answers), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of endings, which the certificate speaks of
        try:
            twin.fit(X, y, **more)
        except (ValueError, IndexError) as error:
            if not answers.given:
                raise
            said = f"the stored answer does not belong to as many rows ({error})"
            return Verification(False, None, (), said)
        certificate: Certificate | None = getattr(twin, "certificate_", None)
        other = tuple(dict.fromkeys(differences(machine, twin)))
    again = ""
    if not answers.given:
        why = "no stored answer belongs to the problem" if found else "it stores no answer"
        again = f"{type(machine).__name__} was fitted again, since {why}"
    return _verdict(certificate, other, again)


def _verdict(certificate: Certificate | None, other: tuple[str, ...], again: str) -> Verification:
    said = []
    if certificate is not None:
        said.append(("" if certificate.ok else "not certified: ") + certificate.statement)
    source = "this fit" if again else "the data and the answer"
    if again:
        said.append(again)
    if other:
        listed = ", ".join(other[:5]) + (", ..." if len(other) > 5 else "")
        said.append(f"{listed} of the machine do not follow from {source}")
    else:
        said.append(f"all that is stored follows from {source}")
    ok = (certificate is None or certificate.ok) and not other
    return Verification(ok, certificate, other, "; ".join(said))


def _verify_steps(machine: Pipeline, X: Any, y: Any, weights: Any, tol: Any) -> Verification:
    """Verify every step on what the stored steps before it make of the rows."""
    found: list[tuple[str, Verification]] = []
    last = len(machine.steps) - 1
    for i, (name, step) in enumerate(machine.steps):
        if step in (None, "passthrough"):
            continue
        wanted = (weights, tol) if i == last else (None, None)
        found.append((name, verify(step, X, y, wanted[0], tol=wanted[1])))
        X = X if i == last else step.transform(X)
    other = tuple(f"{name}.{each}" for name, one in found for each in one.differences)
    certificate = found[-1][1].certificate if found else None
    wrong = [f"{name}: {one.statement}" for name, one in found if not one.ok]
    statement = "; ".join(wrong) or (found[-1][1].statement if found else "there is no step")
    return Verification(not wrong, certificate, other, statement)


def _unfitted(machine: Any, tol: float | None) -> Any:
    """Return a machine with the same parameters, without limits: nothing is solved."""
    twin = clone(machine)
    names = twin.get_params(deep=False)
    free = {name: None for name in ("callback", "time_limit", "journal") if name in names}
    if tol is not None and "tol" not in names:
        raise ValueError(f"verify: {type(machine).__name__} has no parameter tol; leave it out")
    return twin.set_params(**free, **({} if tol is None else {"tol": tol}))


def _refuse_compressed(machine: Any) -> None:
    held = getattr(machine, "certificate_", None)
    if held is not None and isinstance(held.quantities, ReductionQuantities):
        raise ValueError(
            f"verify: this {type(machine).__name__} was compressed, and solves no problem on the "
            "data any more; verify the machine it came from, and compress that one again"
        )


def _refuse_width(machine: Any, X: Any) -> None:
    """Refuse rows of another length than those of the fit."""
    known, shape = getattr(machine, "n_features_in_", None), tuple(getattr(X, "shape", ()))
    if known is not None and len(shape) == 2 and shape[1] != known:
        raise ValueError(
            f"verify: X has {shape[1]} columns, and {type(machine).__name__} was fitted to {known}"
        )


def _refuse_streams(machine: Any) -> None:
    held = vars(machine)
    certificate = getattr(machine, "certificate_", None)
    streamed = isinstance(getattr(certificate, "quantities", None), StreamQuantities)
    if streamed or ("_stream" in held and held.get("_solution") is None):
        raise ValueError(
            f"verify: {type(machine).__name__} learnt from a stream, whose rows are gone; only a "
            "fit to rows can be verified"
        )
