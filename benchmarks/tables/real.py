"""`mercer.fit` on real tables beside gradient boosting and tuned support vector machines.

python -m benchmarks.tables.real           all tables that are here
python -m benchmarks.tables.real heart     some of them
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.datasets import FOLDER
from mercer.data import Kind, Table, read
from mercer.fitting import fit, split

NOTE = """A fifth of the rows is held out, the same for all. `mercer.fit` and
`HistGradientBoosting` use their defaults; the latter receives categories and missing values
unchanged. scikit-learn's `SVC` and `SVR` use a Gaussian kernel after median imputation, scaling
and one-hot encoding, with C and gamma by `GridSearchCV` over 4 x 4 candidates and five folds on at
most 5000 rows, then fitted to all. Errors are error rates, or root mean squared errors.
Parentheses give the 95 % interval of Mercer's error; differences within it mean little. Seconds
are process time of all threads for preparation, selection and fit (for `mercer.fit` with
probabilities, certificate, evaluation and importance)."""
SEED = 0
MOST_ROWS = 5000


@dataclass(frozen=True)
class Case:
    """A table, and what is predicted."""

    name: str
    target: str
    task: str
    mixed: bool = False


CASES = [
    Case("heart", "y", "classification"),
    Case("pima", "y", "classification"),
    Case("spambase", "y", "classification"),
    Case("TitanicSurvival", "survived", "classification", True),
    Case("attrition", "Attrition", "classification", True),
    Case("Chile", "vote", "classification", True),
    Case("credit_data", "Status", "classification", True),
    Case("wine_red", "y", "regression"),
    Case("wine_white", "y", "regression"),
    Case("abalone", "y", "regression"),
    Case("california", "y", "regression"),
    Case("ames", "Sale_Price", "regression", True),
    Case("SLID", "wages", "regression", True),
]


def table_of(case: Case) -> Table | None:
    """Read a table; None where its file is not here."""
    path = FOLDER / (f"tables/{case.name}.csv" if case.mixed else f"{case.name}.npz")
    if not path.exists():
        return None
    if case.mixed:
        table = read(path)
    else:
        with np.load(path, allow_pickle=False) as data:
            X, y = data["X"].astype(np.float64), data["y"]
        columns = {f"x{k}": X[:, k] for k in range(X.shape[1])}
        table = Table.of(columns | {"y": y.astype(np.float64)})
    missing = [entry is None or entry != entry for entry in table[case.target].tolist()]  # noqa: PLR0124
    return table.rows(~np.array(missing))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a function returns, and its process time."""
    started = time.process_time()
    return work(), time.process_time() - started


def frame_of(table: Table) -> pd.DataFrame:
    """Return pandas columns; words are of the type category."""
    frame = table.to_pandas()
    for name, kind in table.kinds.items():
        if not pd.api.types.is_numeric_dtype(frame[name]) or kind is Kind.CATEGORY:
            frame[name] = frame[name].astype("category")
    return frame


def boosted(case: Case, parts: Any, frames: tuple[Any, Any]) -> Any:
    """Fit gradient boosting with its defaults."""
    kinds = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    kind = kinds[case.task == "regression"]
    machine = kind(categorical_features="from_dtype", random_state=SEED)
    return machine.fit(frames[0], parts.train_target)


def tuned(case: Case, parts: Any, frames: tuple[Any, Any]) -> Any:
    """Tune scikit-learn's machine on a grid, on a sample of the rows, and fit it to all."""
    frame, y = frames[0], parts.train_target
    words = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    numbers = [name for name in frame if name not in words]
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (
            make_pipeline(
                SimpleImputer(strategy="constant", fill_value="(missing)"),
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            ),
            words,
        ),
    )
    frame = frame.astype(dict.fromkeys(words, object))
    rows = prepare.fit_transform(frame)
    spread = 1.0 if case.task == "classification" else float(np.std(y))
    machine: Any = SVC() if case.task == "classification" else SVR(epsilon=0.1 * spread)
    base = 1.0 / (rows.shape[1] * rows.var())
    grid = {
        "C": [spread * c for c in (0.1, 1.0, 10.0, 100.0)],
        "gamma": [base * g for g in (0.1, 0.3, 1.0, 3.0)],
    }
    kind = StratifiedKFold if case.task == "classification" else KFold
    some = np.random.default_rng(SEED).permutation(len(y))[:MOST_ROWS]
    search = GridSearchCV(machine, grid, cv=kind(5, shuffle=True, random_state=SEED), refit=False)
    search.fit(rows[some], y[some])
    return make_pipeline(prepare, machine.set_params(**search.best_params_)).fit(frame, y)


def line_of(case: Case, table: Table) -> str:
    """Run one table."""
    classes = case.task == "classification"
    ours, seconds = timed(lambda: fit(table, case.target, task=case.task, random_state=SEED))
    parts = split(table, case.target, task=case.task, random_state=SEED)
    metric = ours.evaluation["accuracy" if classes else "root mean squared error"]
    low, high = (1 - metric.high, 1 - metric.low) if classes else (metric.low, metric.high)
    value = 1 - metric.value if classes else metric.value
    show = (lambda x: f"{100 * x:.1f} %") if classes else (lambda x: f"{x:.4g}")
    taken = ours.choice.contenders[ours.choice.chosen].name
    cells = [
        case.name,
        f"{len(table)} x {table.shape[1] - 1}",
        f"{taken} ({type(ours.machine).__name__})",
    ]
    cells += [f"{show(value)} ({show(low)} - {show(high)})", f"{seconds:.1f}"]
    frames = (frame_of(parts.train), frame_of(parts.held_out))
    for frame in frames[1:]:
        for name in frame:
            if isinstance(frame[name].dtype, pd.CategoricalDtype):
                levels = frames[0][name].cat.categories
                frame[name] = pd.Categorical(frame[name].astype(object), categories=levels)
    for rival in (boosted, tuned):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine, theirs = timed(lambda rival=rival: rival(case, parts, frames))
            new = frames[1]
            if rival is tuned:
                words = [n for n in new if isinstance(new[n].dtype, pd.CategoricalDtype)]
                new = new.astype(dict.fromkeys(words, object))
            said = machine.predict(new)
        truth = parts.held_out_target
        error = 1 - accuracy_score(truth, said) if classes else root_mean_squared_error(truth, said)
        cells += [show(error), f"{theirs:.1f}"]
    return "| " + " | ".join(cells) + " |"


def main(wanted: list[str] | None = None) -> str:
    """Write the table."""
    lines = [
        "| table | rows x columns | taken | error | s | boosting | s | tuned SVM | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for case in CASES:
        table = table_of(case) if not wanted or case.name in wanted else None
        if table is not None:
            lines.append(line_of(case, table))
            print(lines[-1], flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
