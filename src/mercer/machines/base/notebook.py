"""What notebooks show below scikit-learn's diagram: how a fit ended, and its certificate."""

from __future__ import annotations

import warnings
from typing import Any

from mercer.certificates import Certificate
from mercer.html import page
from mercer.machines.base.certificate import LazyDataCertificate, LazyPointsCertificate
from mercer.solvers import Solution

_ROWS = 3000  # judged to be shown: a fraction of a second


class Displayed:
    """A machine whose display says how its fit ended, and whether that is certified.

    `_repr_html_` and `_repr_mimebundle_` are the names that notebooks look for. scikit-learn reads
    every attribute for its diagram, and to complete names: what takes long to judge is hidden from
    it, and made when somebody asks for it by name.
    """

    @property
    def _repr_html_(self) -> Any:
        base: Any = super(Displayed, quick(self))
        diagram = base._repr_html_  # there is no such attribute where no diagrams are wanted

        def both() -> str:
            return str(diagram()) + ending(self)

        return both

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        base: Any = super(Displayed, quick(self))
        bundle = dict(base._repr_mimebundle_(**kwargs))
        if "text/html" in bundle:
            bundle["text/html"] = str(bundle["text/html"]) + ending(self)
        return bundle

    def __dir__(self) -> list[str]:
        shown = quick(self, rows=0)
        more = [] if shown is self else ["certificate_"]
        return [*super(Displayed, shown).__dir__(), *more]


def quick(machine: Any, rows: int = _ROWS) -> Any:
    """Return a machine without a certificate that is to be made from more than `rows` rows."""
    held = machine.__dict__.get("_judgement")
    if not isinstance(held, LazyPointsCertificate | LazyDataCertificate) or held.rows <= rows:
        return machine
    twin = object.__new__(type(machine))
    twin.__dict__.update({k: v for k, v in machine.__dict__.items() if k != "_judgement"})
    return twin


def ending(machine: Any) -> str:
    """Return the status of a fit and its certificate as HTML; nothing before a fit."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a warning would say is shown
            certificate = _certificate(machine)
            solution = getattr(machine, "solution_", None)
    except (AttributeError, ValueError, TypeError):  # not fitted
        return ""
    values = {}
    if isinstance(solution, Solution):
        steps = f"{solution.solver}, {solution.iterations} steps, {solution.seconds:.3g} s"
        values["fit"] = f"{solution.status.name}: {solution.status.value} ({steps})"
    title = type(machine).__name__
    if isinstance(certificate, Certificate):
        title += ": certified" if certificate.ok else ": NOT certified"
        values["certificate"] = certificate.statement
    elif certificate is not None:
        values["certificate"] = "made when certificate_ is first read"
    return page(title, values) if values else ""


def _certificate(machine: Any) -> Any:
    """Return the certificate where it is known or quickly made, else what waits to make it."""
    if quick(machine) is not machine:
        return machine.__dict__["_judgement"]
    return getattr(machine, "certificate_", None)
