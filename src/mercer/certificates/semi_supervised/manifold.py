"""A machine on labelled rows, in a kernel that a graph deforms: right if both are."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.certificates.base import Certificate


@dataclass(frozen=True)
class ManifoldQuantities:
    """Measures of a fit with a deformed kernel.

    Attributes
    ----------
    fit_error : float
        Of the machine on the labelled rows: the relative residual of the ridge equations, or the
        relative duality gap of the support vector machine.
    kernel_residual : float
        Largest entry of what is left of the equations of the deformed kernel.
    kernel_error : float
        A bound of how far an entry of its matrix is off, over the largest k(x, x).
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite; infinite where that is
        not shown.
    """

    fit_error: float
    kernel_residual: float
    kernel_error: float
    indefiniteness: float


def of_both(kernel: Certificate, fit: Certificate) -> Certificate:
    """Return one certificate of a deformed kernel and of the fit in it.

    Parameters
    ----------
    kernel : Certificate
        Of the deformed kernel.
    fit : Certificate
        Of ridge regression, or of a support vector machine, with its matrix as data.
    """
    measured = kernel.quantities
    residual = getattr(fit.quantities, "relative_residual", None)
    quantities = ManifoldQuantities(
        float(fit.quantities.relative_gap if residual is None else residual),
        measured.residual,
        measured.error,
        measured.indefiniteness,
    )
    text = f"{fit.statement}; {kernel.statement}"
    return Certificate(bool(fit.ok and kernel.ok), quantities, fit.tol, text)
