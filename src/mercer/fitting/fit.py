"""From a table to a model: check, split, prepare, choose, train, calibrate, certify, evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mercer.fitting.model import TableModel
from mercer.fitting.phases import FitCallback, Phases
from mercer.fitting.steps import Options, run


def fit(
    table: Any,
    target: str,
    *,
    task: str | None = None,
    machine: Any = None,
    kernels: Sequence[Any] | None = None,
    approximation: Any = "auto",
    kinds: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    test: Any = 0.2,
    refit: bool = False,
    tune: bool = True,
    calibrate: bool = True,
    positive: Any = None,
    costs: tuple[float, float] | None = None,
    scoring: Any = None,
    cv: int = 5,
    max_rows: int = 5000,
    importance: bool = True,
    time_limit: float | None = None,
    random_state: int = 0,
    journal: Any = None,
    callback: FitCallback | None = None,
) -> TableModel:
    """Fit a model to a table: check, split, prepare, choose, train, calibrate, certify, evaluate.

    Part of the rows is held out before anything is learnt; preparation, choice of the kernel and
    fit see the others only, and the figures of the model are those on the rows held out. The model
    that is returned is the one that was judged, unless `refit` asks for a fit to all rows.
    Everything that was decided is said in `notes`, and can be decided otherwise here.

    Parameters
    ----------
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Rows; a path is read by `mercer.data.read`.
    target : str
        The column to predict.
    task : {"classification", "regression"} or None
        None takes words, truth values and at most ten different whole numbers for classes (30 if
        they count on from 0 or 1, with three rows each), other numbers for a quantity.
    machine : estimator or None
        What is fitted. None takes `SVC` for classes; for quantities `KernelRidge`, above 2000
        training rows `SVR`.
    kernels : sequence of str or Kernel, or None
        Families to compare ("linear", "polynomial", "gaussian", "matern", "laplacian", "sum over
        kinds of columns"), or kernels, or their texts. None compares all families.
    approximation : Approximation, str or None
        Features in place of the kernel, such as `Nystrom(1000)` or "nystrom:1000", or None for the
        kernel itself; "auto" leaves that to the machine, which takes landmarks where the kernel
        itself would be refused.
    kinds : mapping of str to Kind or str, optional
        Kinds of columns, in place of those inferred.
    drop : sequence of str
        Columns that are left out.
    test : float, Table or None
        Share of the rows to hold out, another table to judge by, or None: then, and where fewer
        than 20 rows would be held out, all rows are learnt from, and judged by cross-validation.
    refit : bool
        Whether the chosen settings are fitted to all rows in the end. The figures remain those of
        the fit without the rows held out.
    tune : bool
        Whether kernels and parameters are compared; otherwise `machine` is taken as it is.
    calibrate : bool
        Whether a classifier gets probabilities.
    positive : label or None
        Of two classes the one that scores speak of; None takes the second in order.
    costs : tuple of float or None
        Of a false positive and of a false negative: two classes are then divided where that is
        cheapest on the training rows.
    scoring : str, callable or None
        What the comparison goes by, as in scikit-learn: accuracy, or R^2.
    cv : int
        Folds of the comparison.
    max_rows : int
        The comparison takes a sample of so many training rows; the fit has all of them.
    importance : bool
        Whether the columns are shuffled to see what they are worth.
    time_limit : float or None
        Seconds for the whole: the comparison takes at most 60 % of it, the fit what is then left.
    random_state : int
        Seed of split, folds, samples and shuffles.
    journal : path or None
        A folder that remembers the comparison, so that the same call takes up what was interrupted.
    callback : callable or None
        Called with `FitProgress`; a true return value ends the comparison with what was judged
        (the fit that follows is ended by `time_limit` alone).

    Returns
    -------
    TableModel
        The model, how good it is, and how it came about; print it.

    Notes
    -----
    The preparation looks at no target. It is learnt once from the training rows, before they are
    divided into folds for the comparison. The answer depends neither on the order of the rows, nor
    (up to rounding) on that of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> rng = np.random.default_rng(0)
    >>> x, town = rng.normal(size=200), rng.choice(["Ulm", "Bern", "Riga"], 200)
    >>> sick = np.where(x + (town == "Ulm") + rng.normal(size=200) / 4 > 0, "yes", "no")
    >>> model = mercer.fit({"x": x, "town": town, "sick": sick}, "sick", kernels=["linear"])
    >>> model.evaluation["accuracy"].value > 0.85, model.certificate.ok
    (True, True)
    >>> model.predict({"x": [2.0, -2.0], "town": ["Ulm", "Bern"]}).tolist()
    ['yes', 'no']
    """
    options = Options(
        task=task, machine=machine, kernels=kernels, approximation=approximation,
        kinds=dict(kinds or {}), drop=tuple(drop),
        test=test, refit=refit, tune=tune, calibrate=calibrate, positive=positive, costs=costs,
        scoring=scoring, cv=cv, max_rows=max_rows, importance=importance, time_limit=time_limit,
        random_state=random_state, journal=journal,
    )  # fmt: skip
    return run(table, target, options, Phases(callback, time_limit))
