"""Support vector classifiers over blocks."""

from __future__ import annotations

import numpy as np

from mercer.blocks import RowBlocks
from mercer.gram.storage.factored import FeatureExpansion
from mercer.machines import SVC
from mercer.machines.base.parameters import is_real, refuse
from mercer.machines.margin.multiclass import scheme_of
from mercer.problems import Coefficients
from mercer.problems.blocks import BlockDuals, BlockMargin
from mercer.solvers import Status
from mercer.streaming.features import feature_rows
from mercer.streaming.fit import fit_blocks, refuse_options
from mercer.streaming.fits.margin.screened_margin import solve_part
from mercer.streaming.outcome import certified, class_codes, ended, remember_columns, watch_of

_GAP = 1e-8  # relative duality gap to aim at: the last digits cost a step or two
_ENOUGH = 1e-6  # the same, where rounding ends the way: as good as what is asked elsewhere
_MAX_STEPS = 100
_OF_ROWS = ("support_", "support_vectors_", "dual_coef_", "n_support_", "_support_codes")


@fit_blocks.register
def fit_svc(machine: SVC, blocks: RowBlocks) -> None:
    """Fit to rows in blocks by an interior point method; what belongs to single rows stays there.

    `tol` bounds the relative duality gap, whichever the criterion.
    """
    machine._check_parameters()
    refuse_options(machine, nu=None, slack="l1", probability=False, warm_start=False)
    if not is_real(machine.C) or not np.isfinite(machine.C):
        refuse(machine, "C", machine.C, "be a finite number on rows in blocks")
    codes, totals = class_codes(machine, blocks)
    remember_columns(machine, blocks)
    rows = feature_rows(machine, blocks)
    ends = np.concatenate([[0], np.cumsum(np.ceil(totals))]).astype(np.int64)
    scheme = scheme_of(machine.multiclass, ends)
    signs = np.nan_to_num(scheme.signs(np.arange(len(machine.classes_))))
    problem = BlockMargin(rows, codes, signs, float(np.asarray(machine.C)))
    watch, tol = watch_of(machine), min(_GAP, machine.tol)
    most = _MAX_STEPS if machine.max_iter is None else int(machine.max_iter)
    found = []
    for part in range(signs.shape[1]):
        found.append(solve_part(problem, part, tol, most, watch))
        if watch.stopped and part + 1 < signs.shape[1]:
            raise_unfinished(machine, part + 1, signs.shape[1], watch.stopped)
    weights = np.column_stack([one.w for one in found])
    offsets = np.array([one.b for one in found])
    value = Coefficients(np.empty((0, len(found))), offsets, weights)
    ends_well = [
        one.status if one.gap > min(_ENOUGH, machine.tol) else Status.SOLVED for one in found
    ]
    worst = watch.stopped or next((one for one in ends_well if not one.ok), Status.SOLVED)
    steps = sum(one.steps for one in found)
    machine.solution_ = ended("BlockInteriorPoint", value, worst, steps, watch)
    machine.n_iter_ = max(1, steps)
    for name in _OF_ROWS:
        machine.__dict__.pop(name, None)
    machine._scheme, machine._calibration = scheme, None
    machine._expansion = FeatureExpansion(rows.features, weights, offsets)
    machine.intercept_ = float(offsets[0]) if len(found) == 1 else offsets
    answer = BlockDuals(weights, offsets, tuple(one.multipliers for one in found))
    certified(machine, problem, answer, tol=min(machine.tol, 1e-3))


def raise_unfinished(machine: SVC, done: int, parts: int, status: Status) -> None:
    """Say that some two-class questions have no answer yet."""
    raise RuntimeError(
        f"SVC: {status.value}: {done} of {parts} two-class questions were answered; nothing was "
        "changed"
    )
