"""Is it right? An answer is judged from the problem alone, in float64, whoever produced it."""

from mercer.certificates import box_qp, eigenproblem, linear_system, many, ridge_path
from mercer.certificates.base import Certificate, certify
from mercer.certificates.box_qp import BoxQPQuantities
from mercer.certificates.eigenproblem import EigenQuantities
from mercer.certificates.linear_system import LinearSystemQuantities
from mercer.certificates.many import ManyQuantities

__all__ = [
    "BoxQPQuantities",
    "Certificate",
    "EigenQuantities",
    "LinearSystemQuantities",
    "ManyQuantities",
    "certify",
]

# imported for the certificates they register
_ = (box_qp, eigenproblem, linear_system, many, ridge_path)
