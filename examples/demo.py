"""Spam or not: `mercer fit` from a table to a model and its report, then two machines, their
certificates, and scikit-learn beside them on the same rows.

Run with `make demo`. Prints what was measured and leaves a model, a report and a picture in
`demo-output`. Nothing here is stored beforehand: every number is computed by this run, on this
machine.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn import svm
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.model_selection import GridSearchCV

import mercer
from mercer import SVC, KernelRidge, certify
from mercer.backends import choose_backend
from mercer.command import main as command
from mercer.gram import CenteredGram, Need, make_gram
from mercer.kernels import Gaussian, Kernel
from mercer.machines.svm import problem as svm_problems
from mercer.problems import Dual, Eigenproblem
from mercer.solvers import solve

HERE = Path(__file__).resolve().parent
OUTPUT = HERE.parent / "demo-output"

TRAIN_ROWS, SEED = 3065, 0
C, TOL = 10.0, 1e-3
PENALTIES = np.logspace(-4, 3, 29)  # the path of the picture
GRID = np.logspace(-2, 2, 5)  # the shorter list that both libraries choose from

HAM, SPAM = "#0072B2", "#D55E00"  # told apart by every kind of eye, and in grey
INK = "#333333"
CELL = 24  # rows of one cell of the matrix picture


@dataclass(frozen=True)
class Data:
    """Rows of both parts and their signs: +1 for spam, -1 for the rest."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load() -> Data:
    """Read Spambase, split it, take logarithms, and scale by the training rows."""
    with np.load(HERE / "data" / "spambase.npz") as file:
        X, y = np.log1p(file["X"].astype(np.float64)), np.where(file["y"] == 1, 1.0, -1.0)
    order = np.random.default_rng(SEED).permutation(len(y))
    train, test = order[:TRAIN_ROWS], order[TRAIN_ROWS:]
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / deviation
    return Data(X[train], y[train], X[test], y[test])


def timed(call: Callable[[], Any], repeats: int = 1) -> tuple[Any, float]:
    """Return the result of a call and the shortest of its times."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def busy() -> float:
    """Return the share of all cores that others use right now; 0 where the system does not tell."""
    try:
        before, after = (_processor_times(pause) for pause in (0.0, 0.3))
    except (OSError, ValueError):
        return 0.0
    spent = np.subtract(after, before)
    return float(1 - spent[3:5].sum() / max(spent.sum(), 1))  # idle, and waiting for the disk


def _processor_times(pause: float) -> list[int]:
    time.sleep(pause)
    return [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]


def error_rate(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.sign(predicted) != y))


# --- the command: from a table to a model --------------------------------------------------------


def fit_by_command() -> tuple[Path, Path]:
    """Run `mercer fit` and `mercer predict` as in a shell; return the report and the model."""
    OUTPUT.mkdir(exist_ok=True)
    table, model = HERE / "data" / "spambase.npz", OUTPUT / "spambase.mercer"
    report = OUTPUT / "spambase.html"
    for args in (
        ["fit", table, "--target", "y", "--output", model, "--report", report],
        ["certify", model, table],
    ):
        words = [os.path.relpath(word) if isinstance(word, Path) else word for word in args]
        print(f"\n$ mercer {' '.join(words)}", flush=True)
        if command(words):
            sys.exit(f"mercer {words[0]} failed")
    return report, model


# --- the support vector classifier -----------------------------------------------------------


def classify(data: Data, kernel: Kernel) -> SVC:
    """Fit both libraries' classifiers, and judge both answers by the same certificate."""
    ours, our_time = timed(lambda: SVC(kernel, C=C, tol=TOL).fit(data.X, data.y), repeats=3)
    gamma = 0.5 / kernel.scale**2
    theirs, their_time = timed(
        lambda: svm.SVC(kernel="rbf", gamma=gamma, C=C, tol=TOL).fit(data.X, data.y), repeats=3
    )
    coef = np.zeros(len(data.y))
    coef[theirs.support_] = theirs.dual_coef_[0]
    gram = make_gram(kernel, data.X, Need.ROWS)
    problem = svm_problems.svc(gram, data.y, np.full(len(data.y), C))
    judged = certify(problem, Dual(coef, float(theirs.intercept_[0])), TOL)

    print(f"\nSVC({kernel!r}, C={C:g}, tol={TOL:g})")
    row = "  {:<14}{:>11}{:>14}{:>12}{:>10}".format
    print(row("", "test error", "relative gap", "violation", "fit"))
    for name, machine, certificate, seconds in (
        ("Mercer", ours, ours.certificate_, our_time),
        ("scikit-learn", theirs, judged, their_time),
    ):
        error = error_rate(machine.decision_function(data.X_test), data.y_test)
        found = certificate.quantities
        measures = (f"{found.relative_gap:.1e}", f"{found.violation:.1e}")
        print(row(name, f"{100 * error:.2f} %", *measures, f"{seconds:.3f} s"))
    print(
        f"  scikit-learn's time is {their_time / our_time:.1f} times Mercer's, which includes the ",
        end="",
    )
    print("certificate; best of three each.")
    print("\n  Mercer's certificate, recomputed from the rows in float64:")
    print("    " + str(ours.certificate_).replace("\n", "\n    "))
    print("  scikit-learn's answer under the same judge:")
    print("    " + str(judged).splitlines()[0])
    return ours


# --- kernel ridge regression on the signs ------------------------------------------------------


def regress(data: Data, kernel: Kernel) -> tuple[KernelRidge, np.ndarray, np.ndarray]:
    """Fit the path, then compare the choice of a penalty with a cross-validated grid."""
    machine, seconds = timed(
        lambda: KernelRidge(kernel=kernel, penalty="loo", penalties=PENALTIES).fit(data.X, data.y)
    )
    error = error_rate(machine.predict(data.X_test), data.y_test)
    print(f"\nKernelRidge({kernel!r}, penalty='loo') on the signs of the classes")
    print(f"  {len(PENALTIES)} penalties, exact leave-one-out for each: {seconds:.2f} s")
    print(f"  chosen penalty {machine.penalty_:.3g}, test error {100 * error:.2f} %")
    print(
        f"  leave-one-out mean squared error {machine.loo_scores_.min():.4f}, on the test rows ",
        end="",
    )
    print(f"{np.mean((machine.predict(data.X_test) - data.y_test) ** 2):.4f}")
    print("    " + str(machine.certificate_).replace("\n", "\n    "))
    compare_choices(data, kernel)
    shown = PENALTIES[::2]
    test_errors = [squared_error(data, kernel, penalty) for penalty in shown]
    return machine, shown, np.array(test_errors)


def compare_choices(data: Data, kernel: Kernel) -> None:
    """Time the choice of one penalty out of a few, leave-one-out against five folds."""
    ours, our_time = timed(
        lambda: KernelRidge(kernel=kernel, penalty="loo", penalties=GRID).fit(data.X, data.y)
    )
    grid = GridSearchCV(
        SklearnKernelRidge(kernel="rbf", gamma=0.5 / kernel.scale**2),
        {"alpha": GRID},
        scoring="neg_mean_squared_error",
        cv=5,
    )
    # scikit-learn's machine has no bias: it gets centred targets, and the mean back afterwards
    mean = data.y.mean()
    theirs, their_time = timed(lambda: grid.fit(data.X, data.y - mean))
    print(f"\n  Choosing from the same {len(GRID)} penalties, kernel and rows:")
    row = "  {:<42}{:>10}{:>12}{:>9}".format
    print(row("", "penalty", "test error", "time"))
    our_error = error_rate(ours.predict(data.X_test), data.y_test)
    their_error = error_rate(theirs.predict(data.X_test) + mean, data.y_test)
    for name, penalty, error, seconds in (
        ("Mercer, exact leave-one-out", ours.penalty_, our_error, our_time),
        (
            "scikit-learn, GridSearchCV with 5 folds",
            grid.best_params_["alpha"],
            their_error,
            their_time,
        ),
    ):
        print(row(name, f"{penalty:.3g}", f"{100 * error:.2f} %", f"{seconds:.2f} s"))
    print(f"  scikit-learn's time is {their_time / our_time:.1f} times Mercer's.", end=" ")
    print("A fold learns from four fifths of the rows,\n  leave-one-out from all but one.")


def squared_error(data: Data, kernel: Kernel, penalty: float) -> float:
    machine = KernelRidge(kernel=kernel, penalty=penalty).fit(data.X, data.y)
    return float(np.mean((machine.predict(data.X_test) - data.y_test) ** 2))


# --- the picture -----------------------------------------------------------------------------


def draw(data: Data, kernel: Kernel, svc: SVC, path: tuple[KernelRidge, Any, Any]) -> Path:
    """Draw four views of the two fits."""
    style = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.edgecolor": INK,
        "text.color": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "legend.frameon": False,
    }
    with plt.rc_context(style):
        figure, axes = plt.subplots(2, 2, figsize=(11, 9), layout="constrained")
        decision = svc.decision_function(data.X_test)
        draw_decisions(axes[0, 0], decision, data.y_test)
        draw_plane(axes[0, 1], data, kernel, decision)
        draw_path(axes[1, 0], *path)
        draw_matrix(axes[1, 1], kernel, data, decision)
        error = 100 * error_rate(decision, data.y_test)
        figure.suptitle(
            f"Spambase: {len(data.y)} training rows, {len(data.y_test)} test rows; "
            f"SVC {error:.1f} % test error",
            fontsize=13,
            x=0.01,
            ha="left",
        )
        OUTPUT.mkdir(exist_ok=True)
        file = OUTPUT / "demo.png"
        figure.savefig(file, dpi=130)
        plt.close(figure)
    return file


def draw_decisions(ax: Any, decision: np.ndarray, y: np.ndarray) -> None:
    limit = np.ceil(np.quantile(np.abs(decision), 0.995))
    bins = np.linspace(-limit, limit, 61)
    shown = np.clip(decision, -limit, limit)
    ax.axvspan(-1, 1, color="#EEEEEE", zorder=0)
    ax.axvline(0, ymax=0.94, color=INK, lw=1)
    for sign, colour, name in ((-1, HAM, "not spam"), (1, SPAM, "spam")):
        rows = y == sign
        label = f"{name} ({rows.sum()})"
        ax.hist(shown[rows], bins, color=colour, alpha=0.45, label=label)
        ax.hist(shown[rows], bins, color=colour, histtype="step", lw=1.2)
    axes = ax.get_xaxis_transform()  # x in data, y in parts of the picture
    ax.text(0, 1, "margin", transform=axes, va="top", ha="center", fontsize=9)
    ax.set_xlim(-limit, limit)
    ax.set_xlabel("decision value f(x)")
    ax.set_ylabel("test rows")
    ax.set_title("Where the classifier puts new messages")
    ax.legend(loc="upper left")


def draw_plane(ax: Any, data: Data, kernel: Kernel, decision: np.ndarray) -> None:
    """Project the test rows on the two main directions of the training rows in feature space."""
    gram = CenteredGram(make_gram(kernel, data.X, Need.PRODUCTS))
    modes = solve(Eigenproblem(gram, count=2)).value
    plane = gram.cross(data.X_test) @ (modes.vectors / np.sqrt(modes.values))
    for sign, colour, name in ((-1, HAM, "not spam"), (1, SPAM, "spam")):
        rows = data.y_test == sign
        ax.scatter(*plane[rows].T, s=9, c=colour, alpha=0.55, lw=0, label=name)
    wrong = np.sign(decision) != data.y_test
    ax.scatter(
        *plane[wrong].T, s=42, facecolors="none", edgecolors=INK, lw=0.9, label="misclassified"
    )
    share = 100 * modes.values / gram.diag().sum()
    ax.set_xlabel(f"first kernel principal component ({share[0]:.0f} % of the variance)")
    ax.set_ylabel(f"second ({share[1]:.0f} %)")
    ax.set_title("Test rows on the main plane of feature space")
    ax.legend(loc="best", markerscale=1.3)


def draw_path(ax: Any, machine: KernelRidge, shown: np.ndarray, test_errors: np.ndarray) -> None:
    ax.plot(machine.penalties_, machine.loo_scores_, color=INK, lw=2, label="leave-one-out, exact")
    ax.plot(shown, test_errors, "s", ms=5, color="#009E73", label="test rows, measured")
    best = machine.loo_scores_.min()
    ax.plot(machine.penalty_, best, "o", ms=11, mfc="none", mec=INK, mew=1.5)
    ax.annotate(
        f"chosen: {machine.penalty_:.2g}",
        (machine.penalty_, best),
        xytext=(0, -22),
        textcoords="offset points",
        ha="center",
    )
    ax.set_xscale("log")
    ax.set_xlabel("penalty")
    ax.set_ylabel("mean squared error of the sign")
    ax.set_ylim(bottom=0)
    ax.set_title("Kernel ridge: the whole path from one reduction")
    ax.legend(loc="upper center")


def draw_matrix(ax: Any, kernel: Kernel, data: Data, decision: np.ndarray) -> None:
    """Show which test rows are more alike than the average pair, averaged over cells."""
    order = np.lexsort((decision, data.y_test))
    K = CenteredGram(make_gram(kernel, data.X_test[order], Need.PRODUCTS)).dense()
    signs = data.y_test[order]
    spam, ham = np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)
    groups = [*np.array_split(ham, len(ham) // CELL), *np.array_split(spam, len(spam) // CELL)]
    means = np.array([[K[np.ix_(a, b)].mean() for b in groups] for a in groups])
    limit = np.quantile(np.abs(means), 0.97)
    image = ax.imshow(means, cmap="PuOr_r", vmin=-limit, vmax=limit)
    border = len(ham) // CELL
    for line in (ax.axhline, ax.axvline):
        line(border - 0.5, color=INK, lw=1)
    middles = [border / 2 - 0.5, (border + len(groups)) / 2 - 0.5]
    ax.set_xticks(middles, ["not spam", "spam"])
    ax.set_yticks(middles, ["not spam", "spam"], rotation=90, va="center")
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlabel("rows of each class by decision value, lowest first")
    ax.set_title("Centred kernel matrix of the test rows")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.85, extend="both")
    bar.set_label(f"mean similarity, cells of {CELL} by {CELL} rows")
    bar.outline.set_visible(False)


def main() -> None:
    start = time.perf_counter()
    data = load()
    # the scale that scikit-learn calls gamma="scale": sqrt(number of features * variance / 2)
    kernel = Gaussian(float(np.sqrt(data.X.shape[1] * data.X.var() / 2)))
    print(f"Mercer {mercer.__version__} ({choose_backend().name} backend) on Spambase: ", end="")
    print(f"{len(data.y)} training rows, {len(data.y_test)} test rows, {data.X.shape[1]} columns")
    others = busy()
    if others > 0.15:
        print(f"Other programs use {100 * others:.0f} % of the cores: the times below mean little.")
    report, model = fit_by_command()
    svc = classify(data, kernel)
    path = regress(data, kernel)
    file = draw(data, kernel, svc, path)
    print(f"\nReport:  {os.path.relpath(report)} (open it in a browser)")
    print(f"Model:   {os.path.relpath(model)}")
    print(f"Picture: {os.path.relpath(file)}", end=" ")
    print(f"(everything together {time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
