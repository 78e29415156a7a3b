"""What machines share whose kernel is deformed by a graph of all rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.certificates import Certificate, certify
from mercer.certificates.semi_supervised.manifold import of_both
from mercer.gram import Need, make_gram
from mercer.machines.base.certificate import Certified, LazyDataCertificate
from mercer.machines.base.machine import KernelMachine, kernel_of
from mercer.machines.base.parameters import check_limits, check_real
from mercer.machines.semi_supervised.graph import check_graph, graph_of
from mercer.points import row_count
from mercer.problems import Deformation, DeformedKernel
from mercer.problems.semi_supervised.graph_labels import edges_of
from mercer.solvers import Solution, solve

_COPIES = 4  # matrices that the deformation holds at once


class ManifoldMachine(Certified, KernelMachine):
    """Base of machines on labelled rows, in the kernel that a graph of all rows deforms."""

    neighbors: Any
    weights: str
    intrinsic_penalty: float
    callback: Any
    time_limit: float | None
    machine_: Any
    solution_: Solution

    def _check_parameters(self) -> None:
        check_graph(self)
        check_real(self, "intrinsic_penalty", least=0)
        check_limits(self)

    def _deform(self, X: Points, labelled: Array, ratio: float) -> tuple[Any, Deformation]:
        """Return the problem of the deformed kernel, and its answer."""
        self.kernel_ = kernel_of(
            self.kernel, None if self._is_precomputed() else X, names=self._column_names()
        )
        n = row_count(X)
        names = self._column_names()
        gram = make_gram(self.kernel_, X, Need.MATRIX, names=names, copies=_COPIES)
        edges: Any = sparse.csr_array((n, n))
        if ratio > 0:
            edges = edges_of(graph_of(self, X))
        problem = DeformedKernel(gram, edges, ratio, np.flatnonzero(labelled))
        found = solve(problem, callback=self.callback)
        self._deformed = found.status
        self._expansion = gram.expand(found.value.transfer)
        return problem, found.value

    def _keep(self, problem: Any, value: Deformation, machine: Any) -> None:
        """Keep the machine on the labelled rows, and promise the certificate of both."""
        self.machine_ = machine
        self.solution_ = machine.solution_
        deformed = self.__dict__.pop("_deformed")
        if self.solution_.status.ok and not deformed.ok:
            self.solution_ = replace(self.solution_, status=deformed)
        self.labelled_ = problem.labelled
        judge = partial(_judged, machine=machine)
        self._judgement = LazyDataCertificate(
            problem, value, judge, eager=True, rows=problem.gram.shape[0]
        )


def _judged(problem: DeformedKernel, value: Deformation, machine: Any) -> Certificate:
    """Judge the deformed kernel, and the machine on it."""
    return of_both(certify(problem, value), machine.certificate_)
