"""Names that other libraries give to parameters, and what to write here instead.

One table for all machines, so that it can be read as a whole; `{value}` stands for what was passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mercer.arguments import NamedArguments, arguments_of, first_argument
from mercer.foreign_arrays import answer_in_kind
from mercer.kernels import Kernel
from mercer.kernels.language.names import KERNELS, plain
from mercer.machines.base.notebook import Displayed

OTHER_NAMES: Mapping[str, Mapping[str, str]] = {
    "Machine": {
        "verbose": "progress is shown for all work: mercer.set_config(progress=True)",
        "n_jobs": "threads are set for all work: mercer.set_config(threads={value})",
        "copy": "what is passed in is never changed",
        "copy_X": "what is passed in is never changed",
    },
    "NestedKernels": {
        "gamma": (
            "it belongs to the kernel: kernel=Gaussian(gamma={value}), which is Gaussian(scale=1 "
            "/ sqrt(2 gamma)); kernel='gaussian' is gamma='scale'"
        ),
        "degree": "it belongs to the kernel: kernel=Polynomial(degree={value}, offset=1.0)",
        "coef0": (
            "it belongs to the kernel: kernel=Polynomial(degree, offset={value}) or "
            "Sigmoid(slope, offset={value})"
        ),
        "kernel_params": "parameters belong to the kernel, for example kernel=Gaussian(scale=2.0)",
        "metric": "similarity is a kernel here: kernel='linear' has Euclidean distances",
        "cache_size": "memory is bounded for all fits: mercer.set_config(memory='2 GB')",
        "shrinking": "it is always used where it helps",
        "random_state": "the answer does not depend on chance, so that no seed is needed",
        "fit_intercept": "the constant of f is called bias: bias={value}",
    },
    "SVC": {
        "decision_function_shape": (
            "it is called multiclass, and `predict` always follows it: multiclass={value}"
        ),
        "break_ties": "`predict` is always the argmax of `decision_function`",
        "alpha": "the weight of the slack is C, of which 1 / alpha is a multiple",
        "penalty": (
            "the weight of the slack is C, that of the norm is one half; squared slack is "
            "slack='l2'"
        ),
        "loss": "the slack counts as it is or squared: slack='l1' or 'l2'",
    },
    "SVR": {
        "alpha": "the weight of the slack is C, of which 1 / alpha is a multiple",
        "loss": "the slack counts as it is or squared: tube='l1' or 'l2'",
    },
    "OneClassSVM": {
        "contamination": "the share of training rows left outside is bounded by nu={value}",
    },
    "KernelRidge": {
        "alpha": (
            "it is called penalty: penalty={value}; scikit-learn's has no constant, bias=False"
        ),
        "alphas": "pass penalty='loo', penalties={value}: exact leave-one-out picks the best",
        "C": "the weight of the squared norm is penalty, 1 / C here",
    },
    "GaussianProcess": {
        "alpha": "it is called noise: noise={value}",
        "penalty": "it is called noise: noise={value}, the variance of the noise",
        "optimizer": "pass optimize=True to maximise the marginal likelihood, False to leave it",
        "n_restarts_optimizer": "pass starts, one more than restarts",
        "normalize_y": "pass bias=True for a constant beside f; scale y before the fit",
    },
    "MultiTaskGaussianProcess": {
        "alpha": "it is called noise: noise={value}",
        "penalty": "it is called noise: noise={value}, the variance of the noise",
        "B": "it is called task_covariance",
        "tasks": "the covariance of the tasks is task_covariance; y has one column for each task",
    },
    "GaussianProcessClassifier": {
        "optimizer": "pass optimize=True to maximise the evidence, False to leave the kernel",
        "n_restarts_optimizer": "pass starts, one more than restarts",
        "max_iter_predict": "Newton's method needs few steps; solvers.LaplaceMode bounds them",
        "multi_class": "with more than two classes each is asked against the rest",
    },
    "LogisticRegression": {
        "C": "the weight of the squared norm is penalty = 1 / C, with C={value}",
        "alpha": "the weight of the squared norm is penalty; with a mean of losses it is n * alpha",
        "max_iter": (
            "Newton's method needs few steps; solver=NewtonRisk(max_iter={value}) bounds them"
        ),
        "tol": "it belongs to the solver: solver=NewtonRisk(tol={value})",
        "multi_class": (
            "with more than two classes it is the softmax; loss='squared' is one against the rest"
        ),
        "l1_ratio": "the penalty is the squared norm of the kernel's space; there is no other",
    },
    "FisherDiscriminant": {
        "shrinkage": "it is called penalty, in units of the scatter within classes",
        "priors": "it is called prior: prior={value}",
        "tol": "directions without scatter are held down by penalty",
        "store_covariance": "scatter lives in the kernel's space; there is no such matrix to store",
    },
    "NearestNeighbors": {
        "weights": "neighbours vote alike or by similarity: votes='plain' or 'similarity'",
        "algorithm": "neighbours are found exactly, by blocks of the kernel matrix",
        "leaf_size": "neighbours are found exactly, by blocks of the kernel matrix",
        "p": "distances are those of the kernel's space; kernel='linear' has p = 2",
    },
    "NearestMean": {
        "shrink_threshold": "means are not shrunk",
    },
    "PCA": {
        "svd_solver": "solver=Eigh() or Lanczos() of mercer.solvers; None chooses by size",
        "fit_inverse_transform": "`inverse_transform` is always there; preimage says how",
        "alpha": "the penalty of learned pre-images is chosen by leave-one-out",
        "remove_zero_eig": "components without variance are always dropped",
        "max_iter": "the tolerance of eigenpairs is tol",
    },
    "CCA": {
        "scale": "columns are taken as they are; put StandardScaler before it",
        "reg": "it is called penalty, a share of the variance of each view",
        "regularization": "it is called penalty, a share of the variance of each view",
        "kernel": "there are two views: kernel_x={value}, kernel_y={value}",
        "max_iter": "all pairs come from one eigenproblem, without iteration",
        "tol": "all pairs come from one eigenproblem, without iteration",
    },
    "KMeans": {
        "k": "it is called n_clusters: n_clusters={value}",
        "algorithm": "the exact accelerated passes are chosen by size",
        "tol": "passes end when no point moves",
    },
    "SpectralClustering": {
        "affinity": (
            "it is called kernel: 'gaussian', 'precomputed', any kernel; 'nearest_neighbors' is "
            "neighbors=10"
        ),
        "n_neighbors": "it is called neighbors: neighbors={value}",
        "assign_labels": "it is called assign: assign='kmeans', ...",
        "n_components": "there is one eigenvector for each cluster",
        "eigen_tol": "it is called tol: tol={value}",
    },
    "Perceptron": {
        "max_iter": "it is called max_epochs: max_epochs={value}",
        "eta0": "the size of a step does not change a perceptron's labels",
        "tol": "it ends after an epoch without mistakes",
        "penalty": "the perceptron has none; LogisticRegression and SVC do",
    },
    "MixtureMachine": {
        "k": "it is called n_components: n_components={value}",
        "init_params": "starts are drawn by k-means++; n_init says how many",
        "warm_start": "fit again: starts are cheap, and the best of n_init is kept",
    },
    "GaussianMixture": {
        "covariance_type": (
            "it is called covariance: 'full', 'shared' (tied), 'diagonal' (diag) or 'spherical'"
        ),
        "reg_covar": "it is called floor, the smallest variance, columns having variance one",
        "means_init": "starts are drawn by k-means++; n_init says how many",
    },
    "BernoulliMixture": {
        "alpha": "it is called smoothing: smoothing={value}",
    },
    "MultinomialMixture": {
        "n_topics": "it is called n_components: n_components={value}",
        "doc_topic_prior": "it is called document_smoothing: document_smoothing={value}",
        "topic_word_prior": "it is called smoothing: smoothing={value}",
    },
    "MDS": {
        "dissimilarity": "it is called metric: metric='precomputed' for a matrix",
        "metric_mds": "classical scaling is what there is: eigenvectors, no iteration",
        "n_init": "classical scaling has one answer, and no starts",
        "max_iter": "classical scaling has one answer, without iteration",
        "eps": "classical scaling has one answer, without iteration",
        "kernel": "similarities belong to PCA(kernel={value})",
        "random_state": "the answer does not depend on chance, so that no seed is needed",
    },
    "ProbabilisticPCA": {
        "kernel": "a model of densities lives in the space of the rows; PCA takes a kernel",
        "svd_method": "method='closed' (eigenpairs) or 'em' (which takes missing entries)",
    },
    "GraphDiffusion": {
        "n_neighbors": "it is called neighbors: neighbors={value}",
        "gamma": "it belongs to the kernel: kernel=Gaussian(scale=(0.5 / gamma) ** 0.5)",
        "max_iter": "the equations are solved; there is nothing to repeat",
        "tol": "the equations are solved, and the certificate bounds the error of every value",
        "n_jobs": "threads are those of mercer.config(threads={value})",
    },
    "ManifoldMachine": {
        "n_neighbors": "it is called neighbors: neighbors={value}",
        "alpha": "the weight of the squared norm is penalty (LaplacianRidge) or 1 / C",
        "gamma": "the weight along the graph is intrinsic_penalty; a scale belongs to the kernel",
    },
    "UnmixingMachine": {
        "fun": "it is called contrast: contrast={value}",
        "whiten": "components always have variance one",
        "whiten_solver": "rows are whitened by PCA, which chooses by size",
        "w_init": "starts are random; n_init says how many",
        "kernel": "directions are sought in the space of the rows; transform them by PCA first",
    },
    "NetworkMachine": {
        "hidden_layer_sizes": "it is called encoder_sizes: encoder_sizes={value}",
        "latent_dim": "it is called n_components: n_components={value}",
        "alpha": "it is called penalty: penalty={value}",
        "learning_rate_init": "it is called learning_rate: learning_rate={value}",
        "n_iter_no_change": "it is called patience: patience={value}",
        "epochs": "it is called max_iter, passes with a batch_size: max_iter={value}",
        "solver": "batch_size=None is L-BFGS on all rows, a number Adam on so many at a time",
        "kernel": "the maps are networks; PCA takes a kernel",
    },
    "NaiveBayes": {
        "class_prior": "it is called prior: prior={value}",
        "priors": "it is called prior: prior={value}",
        "fit_prior": "prior=None takes the shares of the classes, prior='uniform' equal ones",
        "binarize": "it is called threshold: threshold={value}",
    },
    "GaussianClassifier": {
        "priors": "it is called prior: prior={value}",
        "reg_param": "it is called floor, the smallest variance",
        "store_covariance": "covariances are always kept",
    },
    "Tuned": {
        "estimator": "it is called machine: machine={value}",
        "param_grid": "it is called grid: grid={value}",
        "param_distributions": (
            "give values to try: grid={...}, and search=Halve() or Race() to spare work"
        ),
        "return_train_score": "it is called train_scores: train_scores={value}",
    },
}


class Machine(Displayed, NamedArguments):
    """Base of machines: constructors answer other libraries' names with the ones here.

    Methods that take rows take arrays of other libraries, too, and answer in their kind.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        answer_in_kind(cls)

    @classmethod
    def what_stands_for(cls, name: str) -> str | None:
        """Return what to write in place of another library's name; base classes speak last."""
        found = (OTHER_NAMES.get(base.__name__, {}).get(name) for base in cls.__mro__)
        return next((hint for hint in found if hint is not None), None)

    @classmethod
    def check_first(cls, given: Any) -> None:
        """Raise if the kernel is not passed by name, where it was the first argument until 0.7."""
        kind: Any = cls
        first = first_argument(kind)
        named = isinstance(given, str) and plain(given.strip()) in KERNELS
        if (named or isinstance(given, Kernel)) and not first.startswith("kernel"):
            takers = [name for name in ("kernel", "kernel_x") if name in arguments_of(kind)]
            if not takers:
                return
            name = takers[0]
            raise TypeError(
                f"{cls.__name__}: the first argument is {first}, as in scikit-learn; pass the "
                f"kernel by name: {cls.__name__}({name}={given!r})"
            )
