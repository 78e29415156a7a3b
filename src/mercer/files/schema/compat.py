"""Schema of the drop-ins for scikit-learn."""

from __future__ import annotations

from typing import Any

from sklearn.neighbors import BallTree, KDTree

from mercer.compat import sklearn as compat
from mercer.compat.sklearn.base import Rows
from mercer.compat.sklearn.cluster import InnerKMeans
from mercer.compat.sklearn.linear_model import InnerLogisticRegression
from mercer.files.schema.clustering import MEANS
from mercer.files.schema.records import FITTED, Fields, machine, record
from mercer.files.schema.regression import LOGISTIC

record(Rows, "matrix: bool")

_SVM = """
    _gamma: number
    machine_: @machine
    _reader: Rows | none
    _sparse: bool
    shape_fit_: shape[n,_]
    fit_status_: int
    support_: i4[s]<n
    dual_coef_: f8[p,s] | csr[p,s]
    intercept_: f8[_]
    support_vectors_: f[0,0] | rows[s,_]
"""
_CLASSES = (
    _SVM
    + """
    classes_: labels[c]
    n_support_, _n_support: i4[c]
    _dual_coef_, _found_coef: f8[p,s] | csr[p,s]
    _intercept_: f8[_]
    class_weight_: f8[c]
    n_iter_: i4[_]
    _probA?, _probB?: f8[_]
"""
)
# what constructors of scikit-learn's classes set that are no parameters of them
_LIBSVM = frozenset({"C", "nu", "epsilon", "probability", "class_weight", "random_state"})
_ONE = _SVM + "n_support_: i4[1]\nn_iter_: int\n"
for _name, _text in (
    ("SVC", _CLASSES),
    ("NuSVC", _CLASSES),
    ("SVR", _ONE),
    ("NuSVR", _ONE),
    ("OneClassSVM", _ONE + "offset_: f8[1]"),
):
    _kind = getattr(compat, _name)
    _unused = _LIBSVM - set(_kind._get_param_names())
    machine(_kind, _text, name=f"sklearn.{_name}", forgets=_unused)

_LINEAR = "solution_?: Solution\n_judgement?: Certificate\nn_iter_: int | i[_]\n"


def _check_linear(made: Any) -> None:
    classes, functions = len(made.classes_), made.coef_.shape[0]
    if functions != (1 if classes == 2 and made.multi_class != "crammer_singer" else classes):
        raise ValueError(f"{classes} classes do not have {functions} function(s)")


machine(
    compat.LinearSVC,
    _LINEAR + "classes_: labels[c]\ncoef_: f[_,d] | csr[_,d]\nintercept_: f[_] | float",
    name="sklearn.LinearSVC",
    check=_check_linear,
)
machine(
    compat.LinearSVR,
    _LINEAR + "coef_: f[d] | csr[_,d]\nintercept_: f[_] | float",
    name="sklearn.LinearSVR",
)
machine(
    compat.LogisticRegression,
    """
    machine_?: @machine
    classes_: labels[c]
    coef_: f[_,d] | csr[_,d]
    intercept_: f[_]
    n_iter_: i[_]
    """,
    name="sklearn.LogisticRegression",
)
machine(
    compat.KernelRidge,
    "machine_: @machine\ndual_coef_: f[n] | f[n,_]\nX_fit_: rows[n,d]\n_known: bool",
    name="sklearn.KernelRidge",
)
machine(
    compat.KernelPCA,
    """
    gamma_: none | int | number
    machine_: @machine
    _known: bool
    X_fit_: rows[n,d]
    eigenvalues_: f[k]
    eigenvectors_: f[n,k]
    dual_coef_?: f[n,_]
    X_transformed_fit_?: f[n,_]
    """,
    name="sklearn.KernelPCA",
)
machine(InnerLogisticRegression, LOGISTIC, name="sklearn.LogisticRegression.machine")
machine(
    InnerKMeans,
    FITTED + MEANS,
    name="sklearn.KMeans.machine",
    forgets=frozenset({"_relaxation"}),
)
machine(
    compat.KMeans,
    """
    _n_init, n_iter_: int
    machine_: @machine
    cluster_centers_: f[k,d]
    labels_: i4[n]<k
    inertia_: number
    _n_features_out?: int
    """,
    name="sklearn.KMeans",
)
machine(
    compat.SpectralClustering,
    """
    _source?: tuple(kernel | rows[_,_] | param)
    machine_?: @machine
    labels_: i[n]
    affinity_matrix_?: f[n,n] | csr[n,n]
    """,
    name="sklearn.SpectralClustering",
)
machine(
    compat.LinearDiscriminantAnalysis,
    """
    classes_: labels[c]
    priors_: f[c]
    means_: f[c,d]
    xbar_?: f[d]
    _max_components: int
    solution_?: Solution
    _judgement?: Certificate
    covariance_?: f[d,d]
    scalings_?: f[d,_]
    explained_variance_ratio_?: f[_]
    coef_: f[_,d]
    intercept_: f[_]
    _n_features_out?: int
    """,
    name="sklearn.LinearDiscriminantAnalysis",
)
machine(
    compat.QuadraticDiscriminantAnalysis,
    """
    machine_?: @machine
    classes_: labels[c]
    priors_: f[c]
    means_: f[c,d]
    covariance_?: list(f[d,d])
    scalings_: list(f[_])[c]
    rotations_: list(f[d,_])[c]
    """,
    name="sklearn.QuadraticDiscriminantAnalysis",
)
machine(
    compat.CCA,
    """
    _predict_1d: bool
    _x_mean, _x_std: f[d]
    _y_mean, _y_std: f[t]
    machine_: @machine
    n_iter_: list(int)
    x_weights_, x_loadings_, x_rotations_: f[d,k]
    y_weights_, y_loadings_, y_rotations_: f[t,k]
    coef_: f[t,d]
    intercept_: f[t]
    _n_features_out: int
    """,
    name="sklearn.CCA",
    forgets=frozenset({"deflation_mode", "mode", "algorithm"}),  # of scikit-learn's constructor
)


# --- probabilities --------------------------------------------------------------------------------

_COUNTS = "classes_: labels[c]\nclass_count_: f8[c]\nclass_log_prior_: F[c]\n"
_WORDS = _COUNTS + "feature_count_: f8[c,d]\nfeature_log_prob_: F[c,d]\n"
for _name, _text in (
    ("MultinomialNB", _WORDS),
    ("BernoulliNB", _WORDS),
    ("ComplementNB", _WORDS + "feature_all_: f8[d]"),
    (
        "CategoricalNB",
        _COUNTS
        + """
        category_count_: list(f8[c,_])[d]
        feature_log_prob_: list(F[c,_])[d]
        n_categories_: i8[d]
        """,
    ),
    (
        "GaussianNB",
        """
        classes_: labels[c]
        epsilon_: number
        theta_, var_: f[c,d]
        class_count_, class_prior_: f8[c]
        _judgement?: none | Certificate
        """,
    ),
):
    machine(getattr(compat, _name), _text, name=f"sklearn.{_name}")
machine(
    compat.GaussianMixture,
    """
    converged_: bool
    weights_: f[k]
    means_: f[k,d]
    covariances_, precisions_, precisions_cholesky_: f[k,d,d] | f[d,d] | f[k,d] | f[k]
    n_iter_: int
    lower_bound_: number
    lower_bounds_?: list(number)
    _judgement?: none | Certificate
    """,
    name="sklearn.GaussianMixture",
)


# --- neighbors: scikit-learn's trees are made again, not stored ----------------------------------

_TREES = {"kd_tree": KDTree, "ball_tree": BallTree}


def _make_neighbors(found: Fields) -> Any:
    kind = compat.KNeighborsClassifier
    names = kind._get_param_names()
    made: Any = kind(**{name: found[name] for name in names if name in found})
    vars(made).update(found)
    method = found.get("_fit_method")
    if method is None:
        return made
    counts = [len(c) for c in found["classes_"]] if isinstance(found["classes_"], list) else []
    codes = found["_y"]
    if codes.ndim != 1 + bool(counts) or (codes < 0).any():
        raise ValueError("the labels of rows belong to other problems than the classes")
    if counts and (codes.shape[1] != len(counts) or (codes >= counts).any()):
        raise ValueError("the labels of rows are not among the classes")
    if method not in ("brute", *_TREES):
        raise ValueError(f"unknown search {method!r:.60}")
    made._tree = None
    if method in _TREES:
        options = found["effective_metric_params_"]
        metric = found["effective_metric_"]
        made._tree = _TREES[method](found["_fit_X"], made.leaf_size, metric=metric, **options)
    return made


machine(
    compat.KNeighborsClassifier,
    """
    radius: none
    outputs_2d_: bool
    classes_: labels[c] | list(labels[_])
    effective_metric_params_: dict(param)
    effective_metric_, _fit_method: text
    _fit_X: rows[n,d]
    n_samples_fit_: int=n
    _rows?: f8[n,d]
    _search?: RowSearch{n=n,d=d}
    _machine?: @machine
    _y: i8[n]<c | i8[n,_]
    """,
    name="sklearn.KNeighborsClassifier",
    forgets=frozenset({"_tree"}),
    make=_make_neighbors,
)
