"""What machines share whose labels spread over a graph: the fit, new rows, lonely rows."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.certificates import certify
from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.inputs import new_rows, refuse_overflown
from mercer.machines.base.machine import KernelMachine, kernel_of
from mercer.machines.base.parameters import check_limits
from mercer.machines.clustering.affinity import (
    refuse_negative_rows,
    sparse_matrix,
    warn_of_strangers,
)
from mercer.machines.semi_supervised.graph import check_graph, graph_of
from mercer.points import is_sparse, to_dense
from mercer.problems import GraphLabels
from mercer.solvers import Solution, solve


class GraphDiffusion(Certified, KernelMachine):
    """Base of machines that spread labels over a graph of the rows."""

    neighbors: Any
    weights: str
    callback: Any
    time_limit: float | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # precomputed affinities, too
        tags.input_tags.positive_only = self._is_precomputed()
        return tags

    def _check_parameters(self) -> None:
        check_graph(self)
        check_limits(self)

    def _diffuse(self, X: Points, targets: Array, labelled: Array, alpha: float) -> Array:
        """Solve for the values of all rows, and keep what new ones need: (n, t)."""
        self.kernel_ = kernel_of(
            self.kernel, None if self._is_precomputed() else X, names=self._column_names()
        )
        graph = graph_of(self, X)
        self._sparse_graph = self._is_precomputed() and is_sparse(X)
        question = partial(_question, targets=targets, labelled=labelled, alpha=alpha)
        problem = question(graph)
        limits = {"callback": self.callback, "time_limit": self.time_limit}
        solution: Solution = solve(problem, **limits)
        self.solution_ = solution
        values: Array = solution.value.values
        self.steps_ = solution.value.steps
        self.unreached_ = np.flatnonzero(~problem.reached)
        self._judgement = lazy_certificate(graph, question, solution.value, certify, eager=True)
        self._unknown = problem.unknown
        shown = self._shown(values)
        self._expansion = graph.expand(np.hstack([shown, np.ones((len(shown), 1))]))
        self._warn_of_unreached(len(values))
        return shown

    def _shown(self, values: Array) -> Array:
        """Return what values of the equations mean: (n, t) to (n, t)."""
        return values

    def _new_values(self, X: Any) -> Array:
        """Return the weighted means of the values of rows that new rows are joined to."""
        check_is_fitted(self)
        precomputed = isinstance(self.kernel_, Precomputed)
        if precomputed and is_sparse(X):
            points = sparse_matrix(self, X, reset=False)
            points = points if self._sparse_graph else to_dense(points)
        else:
            points = new_rows(self, X, precomputed)
        if precomputed:
            refuse_negative_rows(self, points)
        sums = refuse_overflown(self, partial(self._expansion, points))
        warn_of_strangers(self, sums[:, -1:])
        joined = sums[:, -1:] > 0
        means = sums[:, :-1] / np.where(joined, sums[:, -1:], 1.0)
        return np.where(joined, means, self._unknown)

    def _warn_of_unreached(self, n: int) -> None:
        count = len(self.unreached_)
        if not count:
            return
        shown = ", ".join(map(str, self.unreached_[:5])) + (", ..." if count > 5 else "")
        warnings.warn(
            f"{type(self).__name__}: {count} of {n} rows ({shown}) hang together with no label: "
            "nothing on the graph tells theirs, and they get what labels are on average. Label one "
            "of them, or take more neighbors or a wider kernel",
            UserWarning,
            stacklevel=6,
        )


def _question(gram: Gram, targets: Array, labelled: Array, alpha: float) -> GraphLabels:
    return GraphLabels(gram, targets, labelled, alpha)
