"""Programs after scikit-learn's example gallery, before and after `mercer.compat.sklearn.patch()`.

Each program is what the example of its name does without the pictures, written for scikit-learn
alone; it imports inside, so that it finds the classes that are swapped in. Both ways take turns,
and the least processor time of each counts: of all threads, and whatever else the machine does.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable

import numpy as np

from mercer.compat.sklearn import patch, unpatch

NOTE = """Programs like the examples of these names in scikit-learn's gallery, without their
plots, unchanged before and after `mercer.compat.sklearn.patch()`; `plot_face_recognition` uses
digits instead of faces. Times are processor times of all threads, the least of several runs. The
results are scores of the programs. Short programs mostly measure the overhead of a call."""


def plot_iris_svc() -> str:
    from sklearn import datasets, svm

    X, y = datasets.load_iris(return_X_y=True)
    X = X[:, :2]
    models = [
        svm.SVC(kernel="linear", C=1.0),
        svm.LinearSVC(C=1.0, max_iter=10000),
        svm.SVC(kernel="rbf", gamma=0.7, C=1.0),
        svm.SVC(kernel="poly", degree=3, gamma="auto", C=1.0),
    ]
    grid = _grid(X, 100)
    fitted = [model.fit(X, y) for model in models]
    for model in fitted:
        model.predict(grid)
    return "accuracy " + ", ".join(f"{model.score(X, y):.2f}" for model in fitted)


def plot_rbf_parameters() -> str:
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    grid = {"gamma": np.logspace(-9, 3, 13), "C": np.logspace(-2, 10, 13)}
    cv = StratifiedShuffleSplit(n_splits=5, test_size=0.2, random_state=42)
    search = GridSearchCV(SVC(), param_grid=grid, cv=cv).fit(X, y)
    return f"best score {search.best_score_:.3f}"


def plot_separating_hyperplane_unbalanced() -> str:
    from sklearn import svm
    from sklearn.datasets import make_blobs

    X, y = make_blobs(
        [1000, 100], 2, centers=[[0.0, 0.0], [2.0, 2.0]], random_state=0, cluster_std=(1.5, 0.5)
    )
    plain = svm.SVC(kernel="linear", C=1.0).fit(X, y)
    weighted = svm.SVC(kernel="linear", class_weight={1: 10}).fit(X, y)
    grid = _grid(X, 30)
    plain.decision_function(grid), weighted.decision_function(grid)
    return f"rows for 1: {plain.predict(X).sum()}, {weighted.predict(X).sum()}"


def plot_svm_regression() -> str:
    from sklearn.svm import SVR

    X = np.sort(5 * np.random.RandomState(0).rand(40, 1), axis=0)
    y = np.sin(X).ravel()
    y[::5] += 3 * (0.5 - np.random.RandomState(1).rand(8))
    models = [
        SVR(kernel="rbf", C=100, gamma=0.1, epsilon=0.1),
        SVR(kernel="linear", C=100, gamma="auto"),
        SVR(kernel="poly", C=100, gamma="auto", degree=3, epsilon=0.1, coef0=1),
    ]
    return "R^2 " + ", ".join(f"{model.fit(X, y).score(X, y):.3f}" for model in models)


def plot_kernel_ridge_regression() -> str:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVR

    rng = np.random.RandomState(42)
    X = 5 * rng.rand(10000, 1)
    y = np.sin(X).ravel()
    y[::5] += 3 * (0.5 - rng.rand(X.shape[0] // 5))
    plot = np.linspace(0, 5, 20000)[:, None]
    svr = GridSearchCV(
        SVR(kernel="rbf", gamma=0.1), {"C": [1e0, 1e1, 1e2, 1e3], "gamma": np.logspace(-2, 2, 5)}
    )
    ridge = GridSearchCV(
        KernelRidge(kernel="rbf", gamma=0.1),
        {"alpha": [1e0, 0.1, 1e-2, 1e-3], "gamma": np.logspace(-2, 2, 5)},
    )
    for search in (svr, ridge):
        search.fit(X[:100], y[:100]).predict(plot)
    for size in (1000, 2000):
        for search in (svr, ridge):
            search.best_estimator_.fit(X[:size], y[:size]).predict(X[:1000])
    return f"scores {svr.best_score_:.3f}, {ridge.best_score_:.3f}"


def plot_kernel_pca() -> str:
    from sklearn.datasets import make_circles
    from sklearn.decomposition import KernelPCA
    from sklearn.model_selection import train_test_split

    X, y = make_circles(n_samples=1_000, factor=0.3, noise=0.05, random_state=0)
    train, test, _, _ = train_test_split(X, y, stratify=y, random_state=0)
    pca = KernelPCA(None, kernel="rbf", gamma=10, fit_inverse_transform=True, alpha=0.1)
    back = pca.fit(train).inverse_transform(pca.transform(test))
    return f"error of the way back {np.mean((back - test) ** 2):.4f}"


def plot_digits_classification() -> str:
    from sklearn import datasets, svm
    from sklearn.model_selection import train_test_split

    X, y = datasets.load_digits(return_X_y=True)
    X, Z, y, t = train_test_split(X, y, test_size=0.5, shuffle=False)
    return f"accuracy {svm.SVC(gamma=0.001).fit(X, y).score(Z, t):.4f}"


def plot_face_recognition() -> str:
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA
    from sklearn.model_selection import GridSearchCV, train_test_split
    from sklearn.svm import SVC

    X, y = load_digits(return_X_y=True)
    X, Z, y, t = train_test_split(X, y, test_size=0.25, random_state=42)
    pca = PCA(n_components=40, svd_solver="randomized", whiten=True, random_state=0).fit(X)
    grid = {"C": [1e3, 1e4, 1e5], "gamma": [0.0005, 0.005, 0.02]}
    search = GridSearchCV(SVC(kernel="rbf", class_weight="balanced"), grid)
    return f"accuracy {search.fit(pca.transform(X), y).score(pca.transform(Z), t):.4f}"


def plot_oneclass() -> str:
    from sklearn import svm

    rng = np.random.RandomState(0)
    X = np.r_[0.3 * rng.randn(100, 2) + 2, 0.3 * rng.randn(100, 2) - 2]
    machine = svm.OneClassSVM(nu=0.1, kernel="rbf", gamma=0.1).fit(X)
    machine.decision_function(_grid(X, 100))
    return f"outliers {(machine.predict(X) == -1).sum()} of 200"


def plot_lda() -> str:
    from sklearn.covariance import OAS
    from sklearn.datasets import make_blobs
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rng, scores = np.random.RandomState(0), np.zeros(3)
    columns = range(1, 76, 8)
    for d in columns:
        for _ in range(10):
            X, y = make_blobs(220, n_features=1, centers=[[-2], [2]], random_state=rng)
            X = np.hstack([X, rng.randn(220, d - 1)])
            for k, options in enumerate(
                ({"shrinkage": None}, {"shrinkage": "auto"}, {"covariance_estimator": OAS()})
            ):
                machine = LinearDiscriminantAnalysis(solver="lsqr", **options)
                scores[k] += machine.fit(X[:20], y[:20]).score(X[20:], y[20:])
    return "accuracy " + ", ".join(f"{s:.3f}" for s in scores / (10 * len(columns)))


def plot_kmeans_digits() -> str:
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    X, _ = load_digits(return_X_y=True)
    centres = PCA(n_components=10, random_state=0).fit(X).components_
    found = [
        KMeans(init="k-means++", n_clusters=10, n_init=4, random_state=0).fit(X),
        KMeans(init="random", n_clusters=10, n_init=4, random_state=0).fit(X),
        KMeans(init=centres, n_clusters=10, n_init=1).fit(X),
    ]
    return "inertia / 1000 " + ", ".join(f"{k.inertia_ / 1000:.0f}" for k in found)


def plot_cluster_comparison() -> str:
    from sklearn.cluster import SpectralClustering
    from sklearn.datasets import make_circles, make_moons
    from sklearn.metrics import adjusted_rand_score

    scores = []
    for make in (make_circles, make_moons):
        options = {"factor": 0.5} if make is make_circles else {}
        X, y = make(n_samples=500, noise=0.05, random_state=170, **options)
        machine = SpectralClustering(2, affinity="nearest_neighbors", random_state=0)
        scores.append(adjusted_rand_score(y, machine.fit_predict(X)))
    return "Rand index " + ", ".join(f"{s:.2f}" for s in scores)


def plot_logistic_multinomial() -> str:
    from sklearn.datasets import make_blobs
    from sklearn.linear_model import LogisticRegression

    X, y = make_blobs(1_000, centers=[[-5, 0], [0, 1.5], [5, -1]], random_state=40)
    X = X @ np.array([[0.4, 0.2], [-0.4, 1.2]])
    machine = LogisticRegression().fit(X, y)
    machine.predict(_grid(X, 100))
    return f"accuracy {machine.score(X, y):.3f}"


def plot_compare_cross_decomposition() -> str:
    from sklearn.cross_decomposition import CCA

    rng = np.random.RandomState(0)
    hidden = rng.normal(size=(500, 2))
    latents = np.repeat(hidden, 2, axis=1)
    X, Y = (latents + rng.normal(size=(500, 4)) for _ in range(2))
    cca = CCA(n_components=2).fit(X[::2], Y[::2])
    U, V = cca.transform(X[1::2], Y[1::2])
    return "correlations " + ", ".join(f"{np.corrcoef(U[:, k], V[:, k])[0, 1]:.3f}" for k in (0, 1))


PROGRAMS: tuple[Callable[[], str], ...] = (
    plot_iris_svc,
    plot_rbf_parameters,
    plot_separating_hyperplane_unbalanced,
    plot_svm_regression,
    plot_kernel_ridge_regression,
    plot_kernel_pca,
    plot_digits_classification,
    plot_face_recognition,
    plot_oneclass,
    plot_lda,
    plot_kmeans_digits,
    plot_cluster_comparison,
    plot_logistic_multinomial,
    plot_compare_cross_decomposition,
)


def main(turns: int = 3, programs: tuple[Callable[[], str], ...] = PROGRAMS) -> str:
    """Run every program both ways in turn, and write the table."""
    lines = [
        "| program | times faster | before, s | after, s | result before | result after |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for program in programs:
        seconds: dict[bool, list[float]] = {False: [], True: []}
        answers: dict[bool, str] = {}
        for _ in range(turns):
            for swapped in (False, True):
                answers[swapped], spent = _run(program, swapped)
                seconds[swapped].append(spent)
        before, after = min(seconds[False]), min(seconds[True])
        lines.append(
            f"| `{program.__name__}` | **{before / after:.1f}** | {before:.3f} | {after:.3f} | "
            f"{answers[False]} | {answers[True]} |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines)


def _run(program: Callable[[], str], swapped: bool) -> tuple[str, float]:
    """Run a program once; its imports are done before the clock starts."""
    if swapped:
        patch(verbose=False)
    gc.collect()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            started = time.process_time()
            answer = program()
            return answer, time.process_time() - started
    finally:
        unpatch()


def _grid(X: np.ndarray, side: int) -> np.ndarray:
    """Return the points of a mesh over two columns, as the examples draw them."""
    low, high = X.min(axis=0) - 1, X.max(axis=0) + 1
    a, b = np.meshgrid(*(np.linspace(low[k], high[k], side) for k in (0, 1)))
    return np.c_[a.ravel(), b.ravel()]


if __name__ == "__main__":
    main()
