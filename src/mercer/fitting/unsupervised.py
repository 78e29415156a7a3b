"""Functions `cluster`, `project` and `topics` for tables, and their models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.metrics import silhouette_score
from sklearn.pipeline import Pipeline

from mercer.approximation import Approximation
from mercer.array_types import Array
from mercer.data import Kind, Table, TablePreparation, check
from mercer.fitting.fit import certificate_of, versions
from mercer.fitting.model import (
    Settings,
    expression_of,
    imports_of,
    pipeline_lines,
    table_imports,
    table_lines,
)
from mercer.fitting.phases import Phases
from mercer.fitting.rows import read_table, words_of
from mercer.kernels import Linear, resolve
from mercer.machines.bayes.bag_of_words import BagOfWords
from mercer.machines.clustering.kmeans import KMeans
from mercer.machines.clustering.spectral import SpectralClustering
from mercer.machines.decomposition.pca import PCA
from mercer.machines.mixture.discrete_mixtures import MultinomialMixture
from mercer.machines.mixture.gaussian_mixture import GaussianMixture
from mercer.rows.points import is_sparse

if TYPE_CHECKING:
    from mercer.data import Findings, Schema


# --- models --------------------------------------------------------------------------------------
#
# Results of `cluster`, `project` and `topics`.


@dataclass(frozen=True, eq=False)
class UnsupervisedModel:
    """Base class of unsupervised models.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "prepare" and "machine", fitted to all rows.
    schema : Schema
        Columns that new rows require.
    findings : Findings
        Findings of `mercer.data.check`.
    certificate : Certificate
        Certificate of the estimator.
    notes : tuple of str
        Decisions of the fit.
    python : str
        Python program that reproduces the model.
    settings : Settings
        Seed, versions, digest, seconds.
    table : Table or None
        Rows for reports. Model files do not contain them.
    """

    pipeline: Any
    schema: Schema
    findings: Findings
    certificate: Any
    notes: tuple[str, ...]
    python: str
    settings: Settings
    table: Table | None

    @property
    def machine(self) -> Any:
        """The fitted estimator, without preprocessing."""
        return self.pipeline[-1]


@dataclass(frozen=True, eq=False)
class ClusterModel(UnsupervisedModel):
    """Clusters of the rows of a table.

    Attributes
    ----------
    labels : (n,) int array
        Cluster of each row.
    sizes : (k,) int array
        Number of rows of each cluster.
    criterion : str
        Criterion that selected the number of clusters.
    candidates : tuple of (int, float)
        Numbers of clusters and their values of the criterion.
    profiles : tuple of tuple of str
        Distinctive columns of each cluster as sentences.
    coordinates : (n, 2) array
        First two principal components of the rows, for plots.
    """

    labels: Array
    sizes: Array
    criterion: str
    candidates: tuple[tuple[int, float], ...]
    profiles: tuple[tuple[str, ...], ...]
    coordinates: Array


@dataclass(frozen=True, eq=False)
class ProjectionModel(UnsupervisedModel):
    """Projection of the rows of a table.

    Attributes
    ----------
    coordinates : (n, k) array
        Coordinates of each row.
    explained : (k,) array
        Fraction of the variance in feature space that each coordinate explains.
    loadings : tuple of tuple of (str, float)
        For a linear kernel, the columns with the largest weights of each coordinate.
    """

    coordinates: Array
    explained: Array
    loadings: tuple[tuple[tuple[str, float], ...], ...]


@dataclass(frozen=True, eq=False)
class TopicModel(UnsupervisedModel):
    """Topics of texts.

    Attributes
    ----------
    topics : tuple of tuple of (str, float)
        Distinctive words of each topic with their probabilities.
    shares : (k,) array
        Fraction of the texts of each topic.
    weights : (n, k) array
        Probability of each topic for each text.
    candidates : tuple of (int, float)
        Numbers of topics and their perplexities.
    """

    topics: tuple[tuple[tuple[str, float], ...], ...]
    shares: Array
    weights: Array
    candidates: tuple[tuple[int, float], ...]


# --- common --------------------------------------------------------------------------------------
#
# Shared steps of `cluster`, `project` and `topics`: read, check, preprocess, finish.


@dataclass(frozen=True, eq=False)
class Prepared:
    """A preprocessed table.

    Attributes
    ----------
    table : Table
        The rows.
    findings : Findings
        Findings about the table.
    preparation : TablePreparation
        Fitted preprocessing step.
    rows : array or CSR matrix
        Preprocessed rows.
    kinds, drop : mapping, tuple
        Kinds and dropped columns specified by the user.
    phases : Phases
        Clock and progress.
    """

    table: Table
    findings: Any
    preparation: TablePreparation
    rows: Any
    kinds: Mapping[str, Any]
    drop: tuple[str, ...]
    phases: Phases


def prepared(table: Any, kinds: Mapping[str, Any] | None, drop: Sequence[str]) -> Prepared:
    """Read, check and prepare."""
    phases = Phases(None, None)
    with phases.phase("check", "checking the table"):
        found = read_table(table, kinds or {}, drop)
        findings = check(found)
    with phases.phase("prepare", "preprocessing columns"):
        preparation = TablePreparation()
        rows = preparation.fit_transform(found)
    return Prepared(found, findings, preparation, rows, kinds or {}, tuple(drop), phases)


def finished(data: Prepared, machine: Any, notes: Sequence[str], seed: int) -> dict[str, Any]:
    """Return the shared fields of unsupervised models."""
    with data.phases.phase("certify", "certifying the solution"):
        certificate = certificate_of(machine)
    source = data.table.source
    program = [
        "from sklearn.pipeline import Pipeline",
        *imports_of(machine),
        *table_imports(source),
        "",
        *table_lines(source, words_of(data.kinds), data.drop),
        *pipeline_lines(machine),
        "model.fit(table)",
    ]
    return {
        "pipeline": Pipeline([("prepare", data.preparation), ("machine", machine)]),
        "schema": data.table.schema,
        "findings": data.findings,
        "certificate": certificate,
        "notes": (*data.preparation.describe(), *notes),
        "python": "\n".join(program) + "\n",
        "settings": settings_of(data.table, seed, data.phases),
        "table": data.table,
    }


def settings_of(table: Table, seed: int, phases: Phases) -> Settings:
    """Return the settings of a model that was fitted to all rows of a table."""
    rows = len(table)
    return Settings(
        seed, versions(), table.digest, table.source, rows, rows, 0, {}, dict(phases.seconds)
    )


# --- profiles ------------------------------------------------------------------------------------
#
# Distinctive columns of clusters, as sentences.

_CLEAR = 0.5  # least difference: in standard deviations, or of fractions
_MOST = 4  # sentences per cluster


def profiles_of(table: Table, labels: Array, k: int) -> tuple[tuple[str, ...], ...]:
    """Return the columns in which each cluster differs most from all rows.

    Parameters
    ----------
    table : Table
        The rows.
    labels : (n,) int array
        Cluster of each row.
    k : int
        Number of clusters.

    Returns
    -------
    tuple of tuple of str
        Sentences on each cluster, largest differences first.
    """
    said: list[list[tuple[float, str]]] = [[] for _ in range(k)]
    for name in table.columns:
        values = table[name]
        if values.dtype.kind == "f":
            _numbers(name, values, labels, said)
        elif table.kinds[name] in (Kind.CATEGORY, Kind.BINARY):
            _words(name, values, labels, said)
    return tuple(
        tuple(text for _, text in sorted(one, key=lambda pair: -pair[0])[:_MOST]) for one in said
    )


def _numbers(name: str, values: Array, labels: Array, said: list[list[tuple[float, str]]]) -> None:
    there = ~np.isnan(values)
    if not there.any() or not np.nanstd(values) > 0:
        return
    mean, spread = float(np.nanmean(values)), float(np.nanstd(values))
    for number, sentences in enumerate(said):
        mine = values[there & (labels == number)]
        if len(mine) and abs(own := (float(mine.mean()) - mean) / spread) >= _CLEAR:
            word = "high" if own > 0 else "low"
            text = f"{name} is {word}: mean {mine.mean():.4g}, for all rows {mean:.4g}"
            sentences.append((abs(own), text))


def _words(name: str, values: Array, labels: Array, said: list[list[tuple[float, str]]]) -> None:
    words = np.array([str(entry) for entry in values.tolist()], dtype=object)
    levels, codes = np.unique(words, return_inverse=True)
    share = np.bincount(codes, minlength=len(levels)) / len(words)
    for number, sentences in enumerate(said):
        mine = codes[labels == number]
        if not len(mine):
            continue
        own = np.bincount(mine, minlength=len(levels)) / len(mine)
        best = int(np.argmax(own - share))
        if (lead := float(own[best] - share[best])) >= _CLEAR / 2:
            text = f"{name} is {levels[best]} in {own[best]:.0%}, of all rows in {share[best]:.0%}"
            sentences.append((2 * lead, text))


# --- cluster methods -----------------------------------------------------------------------------
#
# Clustering methods by name.

_MEASURED = (Kind.NUMBER, Kind.DATE)
_SAMPLE = 2000  # subsample for the silhouette
_ASKED = "request"


@dataclass(frozen=True)
class Wanted:
    """Arguments of a clustering method.

    Attributes
    ----------
    clusters : int or None
        Number of clusters. If None, chosen from the data.
    kernel : Kernel, str or None
        Kernel. If None, the default of the method.
    approximation : Approximation, str or None
        Approximate feature map.
    most : int
        Largest number of clusters to try.
    seed : int
        Random seed.
    """

    clusters: int | None
    kernel: Any
    approximation: Any
    most: int
    seed: int


@dataclass(frozen=True)
class GroupedRows:
    """Result of a clustering method.

    Attributes
    ----------
    machine : estimator
        Fitted estimator.
    labels : array
        Cluster of each row.
    criterion : str
        Criterion that selected the number of clusters.
    candidates : tuple of (int, float)
        Numbers of clusters that were compared, and their values.
    """

    machine: Any
    labels: Array
    criterion: str
    candidates: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Method:
    """A clustering method.

    Attributes
    ----------
    fit : callable
        Maps preprocessed rows and `Wanted` to `Grouping`.
    takes_kernel : bool
        Whether the method uses a kernel.
    check : callable
        Raises if the method does not support the columns.
    """

    fit: Callable[[Any, Wanted], GroupedRows]
    takes_kernel: bool = True
    check: Callable[[TablePreparation], None] = lambda preparation: None


def _by_kmeans(rows: Any, wanted: Wanted) -> GroupedRows:
    """Select the number of clusters with the largest mean silhouette."""
    kernel = resolve("linear" if wanted.kernel is None else wanted.kernel, rows)
    if wanted.clusters is not None:
        machine = _kmeans(wanted.clusters, kernel, wanted).fit(rows)
        said = f"{wanted.clusters} clusters, by {_ASKED}."
        return GroupedRows(machine, np.asarray(machine.labels_), said)
    order = np.random.default_rng(wanted.seed).permutation(rows.shape[0])
    some = np.sort(order[:_SAMPLE])
    distances = _distances(kernel, rows[some])
    machines, found = {}, []
    for number in range(2, wanted.most + 1):
        machines[number] = _kmeans(number, kernel, wanted).fit(rows)
        labels = machines[number].labels_[some]
        if len(np.unique(labels)) > 1:
            value = silhouette_score(distances, labels, metric="precomputed")
            found.append((number, float(value)))
    if not found:
        raise ValueError("cluster: all rows are equal, so there are no clusters")
    best, value = max(found, key=lambda pair: pair[1])
    said = f"{best} clusters, by the largest mean silhouette ({value:.3f}"
    said += f", on {len(some)} rows)." if len(some) < rows.shape[0] else ")."
    return GroupedRows(machines[best], np.asarray(machines[best].labels_), said, tuple(found))


def _kmeans(number: int, kernel: Any, wanted: Wanted) -> KMeans:
    features = wanted.approximation
    return KMeans(number, kernel, approximation=features, random_state=wanted.seed)


def _by_eigenvectors(rows: Any, wanted: Wanted) -> GroupedRows:
    """Select the number of clusters with the largest eigenvalue gap."""
    k = wanted.clusters
    machine = SpectralClustering(
        "eigengap" if k is None else k, "gaussian" if wanted.kernel is None else wanted.kernel,
        approximation=wanted.approximation, max_clusters=wanted.most, random_state=wanted.seed,
    ).fit(rows)  # fmt: skip
    values = np.asarray(machine.eigenvalues_)
    gaps = [] if k is not None else list(enumerate((values[:-1] - values[1:]).tolist(), 1))
    how = "the largest eigenvalue gap" if k is None else _ASKED
    pairs = tuple((number, float(gap)) for number, gap in gaps if 2 <= number <= wanted.most)
    said = f"{machine.n_clusters_} clusters, by {how}."
    return GroupedRows(machine, np.asarray(machine.labels_), said, pairs)


def _by_mixture(rows: Any, wanted: Wanted) -> GroupedRows:
    """Select the number of clusters with the smallest BIC."""
    k, dense = wanted.clusters, np.asarray(rows.toarray() if is_sparse(rows) else rows)
    number: Any = "bic" if k is None else k
    machine = GaussianMixture(
        number, covariance="full", max_components=wanted.most, random_state=wanted.seed
    ).fit(dense)
    found = () if k is not None else tuple(enumerate(map(float, machine.criteria_), 1))
    how = "the smallest BIC" if k is None else _ASKED
    said = f"{machine.n_components_} clusters by {how}."
    return GroupedRows(machine, np.asarray(machine.predict(dense)), said, found)


def _refuse_levels(preparation: TablePreparation) -> None:
    """Raise for columns of 0 and 1, which can have zero variance within a mixture component."""
    other = [block.name for block in preparation.blocks_ if block.kind not in _MEASURED]
    if other:
        raise ValueError(
            f"cluster: method='mixture' requires numbers, but the table has {', '.join(other)}; "
            "drop these columns or use method='kmeans'"
        )


def _distances(kernel: Any, rows: Any) -> Array:
    """Return distances in feature space."""
    K = np.asarray(kernel(rows, rows))
    squares = np.diag(K)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * K, 0.0))
    np.fill_diagonal(distances, 0.0)
    return distances


METHODS = {
    "kmeans": Method(_by_kmeans),
    "spectral": Method(_by_eigenvectors),
    "mixture": Method(_by_mixture, takes_kernel=False, check=_refuse_levels),
}


# --- cluster -------------------------------------------------------------------------------------
#
# The public function `cluster`.


def cluster(
    table: Any,
    *,
    clusters: int | None = None,
    method: str = "kmeans",
    kernel: Any = None,
    approximation: Approximation | str | None = "auto",
    kinds: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    max_clusters: int = 10,
    random_state: int = 0,
) -> ClusterModel:
    """Cluster the rows of a table and describe each cluster.

    Parameters
    ----------
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Input rows.
    clusters : int or None
        Number of clusters. If None, chosen by the largest mean silhouette ("kmeans"), the largest
        eigenvalue gap ("spectral") or the smallest BIC ("mixture").
    method : {"kmeans", "spectral", "mixture"}
        `KMeans`, `SpectralClustering` or `GaussianMixture`, which supports only numbers and dates.
    kernel : Kernel, str or None
        Kernel of "kmeans" (default: linear) and "spectral" (default: Gaussian).
    approximation : Approximation, str or None
        Approximate feature map, such as `Nystrom(1000)` or "random_features:2000". None or "none"
        uses the exact kernel; "auto" uses it within the size limits.
    kinds : mapping of str to Kind or str, optional
        Column kinds. Replaces the inferred kinds.
    drop : sequence of str
        Columns to ignore, such as known labels.
    max_clusters : int
        Largest number of clusters to try.
    random_state : int
        Random seed.

    Returns
    -------
    ClusterModel
        Labels in the order of the rows, the criterion, and profiles of the clusters.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(0, 1, 60), rng.normal(9, 1, 40)])
    >>> found = mercer.cluster({"x": x, "y": x + rng.normal(size=100)})
    >>> sorted(found.sizes.tolist()), found.certificate.ok
    ([40, 60], True)
    """
    if method not in METHODS:
        raise ValueError(f"cluster: method={method!r} must be one of {', '.join(METHODS)}")
    way = METHODS[method]
    if kernel is not None and not way.takes_kernel:
        raise ValueError(f"cluster: method={method!r} does not use a kernel; remove kernel")
    if approximation != "auto" and not way.takes_kernel:
        raise ValueError(f"cluster: method={method!r} does not use a kernel; remove approximation")
    data = prepared(table, kinds, drop)
    n = len(data.table)
    if n < 3 or (clusters is not None and not 1 <= clusters <= n):
        raise ValueError(
            f"cluster: {n} rows do not allow clusters={clusters!r}; at least 3 rows are needed"
        )
    rows: Any = data.rows
    way.check(data.preparation)
    with data.phases.phase("choose", "comparing numbers of clusters"):
        most = min(max_clusters, n - 1)
        found = way.fit(rows, Wanted(clusters, kernel, approximation, most, random_state))
    counts = np.bincount(found.labels)
    notes = [found.criterion, f"Sizes of the clusters: {', '.join(map(str, counts.tolist()))}."]
    notes.append("The clusters are evaluated on the rows that they were fitted to.")
    plane = PCA(min(2, *rows.shape)).fit_transform(rows)
    shared = finished(data, found.machine, notes, random_state)
    return ClusterModel(
        **shared, labels=found.labels, sizes=counts, criterion=found.criterion,
        candidates=found.candidates, profiles=profiles_of(data.table, found.labels, len(counts)),
        coordinates=_two(plane),
    )  # fmt: skip


def _two(plane: Array) -> Array:
    """Return two coordinates. The second is zero if there is only one."""
    return plane if plane.shape[1] == 2 else np.column_stack([plane, np.zeros(len(plane))])


# --- project -------------------------------------------------------------------------------------
#
# The public function `project`.

_PROJECT_SHOWN = 8  # columns per coordinate


def project(
    table: Any,
    *,
    components: int = 2,
    kernel: Any = "linear",
    approximation: Approximation | str | None = "auto",
    kinds: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    random_state: int = 0,
) -> ProjectionModel:
    """Project the rows of a table to linear or kernel principal components.

    Parameters
    ----------
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Input rows.
    components : int
        Number of coordinates.
    kernel : Kernel or str
        Kernel function. "linear" is ordinary PCA.
    approximation : Approximation, str or None
        Approximate feature map, such as `Nystrom(1000)` or "random_features:2000". None or "none"
        uses the exact kernel; "auto" uses it within the size limits.
    kinds : mapping of str to Kind or str, optional
        Column kinds. Replaces the inferred kinds.
    drop : sequence of str
        Columns to ignore, such as a label.
    random_state : int
        Random seed.

    Returns
    -------
    ProjectionModel
        Coordinates in the order of the rows, and explained variance.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> x = np.random.default_rng(0).normal(size=100)
    >>> found = mercer.project({"x": x, "twice": 2 * x, "other": x**2}, components=2)
    >>> found.coordinates.shape, found.explained.round(2).tolist()
    ((100, 2), [0.68, 0.32])
    """
    data = prepared(table, kinds, drop)
    n = len(data.table)
    if isinstance(components, bool) or not 1 <= components <= n:
        raise ValueError(
            f"project: components={components!r} must be an integer from 1 to {n} (rows)"
        )
    resolved = resolve(kernel, data.rows)
    with data.phases.phase("train", "computing components"):
        machine = PCA(components, resolved, approximation=approximation, random_state=random_state)
        coordinates = machine.fit_transform(data.rows)
    explained = np.asarray(machine.explained_variance_ratio_)
    share = "linear principal components" if isinstance(resolved, Linear) else "components"
    notes = [
        f"{components} {share} of the kernel {resolved} explain {explained.sum():.1%} of the "
        "variance of the preprocessed rows."
    ]
    loadings: tuple[Any, ...] = ()
    if isinstance(resolved, Linear):
        names = data.preparation.get_feature_names_out()
        loadings = tuple(
            tuple((str(names[j]), float(one[j])) for j in np.argsort(-np.abs(one))[:_PROJECT_SHOWN])
            for one in np.asarray(machine.components_)
        )
    shared = finished(data, machine, notes, random_state)
    return ProjectionModel(
        **shared, coordinates=np.asarray(coordinates), explained=explained, loadings=loadings
    )


# --- topics --------------------------------------------------------------------------------------
#
# The public function `topics`.

_NUMBERS = (2, 3, 5, 8, 12, 20)
_COMMON = 0.5  # words in more than this fraction of the texts are dropped
_FEW_TEXTS = 50  # with fewer texts, numbers of topics are not compared
_DEFAULT = 5  # topics without a comparison
_ENOUGH = 0.01  # relative tolerance of the perplexity
_TOPICS_SHOWN = 10  # words per topic


def topics(
    texts: Any,
    column: str | None = None,
    *,
    topics: int | None = None,
    stop_words: Any = "common",
    random_state: int = 0,
) -> TopicModel:
    """Find topics in texts. A topic is a distribution over words that occur together.

    Parameters
    ----------
    texts : list of str, or a table or path
        Texts, or a table with a text column.
    column : str or None
        Text column. If None, the column of kind text.
    topics : int or None
        Number of topics. If None, the smallest number whose perplexity on held-out words is
        within 1% of the minimum.
    stop_words : {"common", "english"}, list of str or None
        Words to ignore: words in more than half of the texts, scikit-learn's English stop words,
        a list, or none.
    random_state : int
        Random seed.

    Returns
    -------
    TopicModel
        Words of each topic, and topics of each text.

    Examples
    --------
    >>> import mercer
    >>> kitchen, sky = "salt pepper oil salt", "rain wind snow rain"
    >>> found = mercer.topics([kitchen, sky] * 20, topics=2, stop_words=None)
    >>> sorted(sorted(word for word, _ in topic[:3]) for topic in found.topics)
    [['oil', 'pepper', 'salt'], ['rain', 'snow', 'wind']]
    """
    phases = Phases(None, None)
    with phases.phase("check", "reading texts"):
        table, name, rows = _texts(texts, column)
        findings = check(table)
    with phases.phase("prepare", "counting words"):
        words = _counter(rows, stop_words)
        counts = words.fit_transform(rows)
        notes = _said(rows, words, counts, stop_words)
    with phases.phase("choose", "comparing numbers of topics"):
        number, candidates, why = _number(counts, topics, random_state)
    with phases.phase("train", "finding topics"):
        machine = MultinomialMixture(number, random_state=random_state).fit(counts)
    with phases.phase("certify", "certifying the solution"):
        certificate = certificate_of(machine)
    names = words.get_feature_names_out()
    return TopicModel(
        Pipeline([("prepare", words), ("machine", machine)]), table[[name]].schema, findings,
        certificate, (*notes, why), _program(table.source, name, words, machine),
        settings_of(table[[name]], random_state, phases), table,
        topics=_top_words(machine, counts, names), shares=np.asarray(machine.weights_),
        weights=np.asarray(machine.transform(counts)), candidates=candidates,
    )  # fmt: skip


def _texts(texts: Any, column: str | None) -> tuple[Table, str, list[str]]:
    """Return the table, the text column and the texts. Missing texts are empty."""
    plain = isinstance(texts, list | tuple) or getattr(texts, "ndim", 2) == 1
    if plain:
        if not len(texts) or not all(isinstance(one, str) for one in texts):
            raise TypeError("topics: texts must be a table or a non-empty list of strings")
        column = column or "text"
        table = Table.of({column: list(texts)}, kinds={column: "text"})
    else:
        table = read_table(texts, {}, ())
    found = [name for name, kind in table.kinds.items() if kind is Kind.TEXT]
    if column is None and len(found) != 1:
        raise ValueError(
            f"topics: the table has {len(found)} text columns ({', '.join(found[:5])}); select "
            "one with column="
        )
    name = found[0] if column is None else column
    if name not in table.columns or table[name].dtype != object:
        raise ValueError(f"topics: column={name!r} is not a text column of the table")
    return table, name, ["" if one is None else str(one) for one in table[name].tolist()]


def _counter(rows: list[str], asked: Any) -> BagOfWords:
    """Return a fitted word counter with one feature per word."""
    left_out = asked
    if isinstance(asked, str) and asked == "common":
        found = BagOfWords(binary=True)
        share = np.asarray(found.fit_transform(rows).sum(axis=0)).ravel() / len(rows)
        left_out = sorted(w for w, j in found.vocabulary_.items() if share[j] > _COMMON) or None
    number = len(BagOfWords(stop_words=left_out).fit(rows).vocabulary_)
    if not number:
        raise ValueError("topics: the texts have no words other than stop words; change stop_words")
    return BagOfWords(stop_words=left_out, n_features=number)


def _said(rows: list[str], words: BagOfWords, counts: Any, asked: Any) -> list[str]:
    empty = int((np.asarray(counts.sum(axis=1)).ravel() == 0).sum())
    notes = [f"{len(rows)} texts, {len(words.vocabulary_)} distinct words."]
    if asked == "common" and words.stop_words:
        shown = ", ".join(words.stop_words[:8])
        notes.append(
            f"{len(words.stop_words)} words in more than {_COMMON:.0%} of the texts were dropped: "
            f"{shown}{', ...' if len(words.stop_words) > 8 else ''}."
        )
    if empty:
        notes.append(f"{empty} texts have no words other than stop words.")
    return notes


def _number(
    counts: Any, asked: int | None, seed: int
) -> tuple[int, tuple[tuple[int, float], ...], str]:
    """Choose the number of topics by the perplexity of half of the words of held-out texts."""
    if asked is not None:
        return int(asked), (), f"{asked} topics, as specified."
    n = counts.shape[0]
    if n < _FEW_TEXTS:
        number = min(_DEFAULT, n)
        return number, (), f"{number} topics: {n} texts are too few for a comparison."
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    test, train = np.sort(order[: n // 5]), np.sort(order[n // 5 :])
    given, rest = _halves(counts[test], rng)
    found = []
    for number in _NUMBERS:
        machine = MultinomialMixture(number, random_state=seed).fit(counts[train])
        found.append((number, float(machine.perplexity(rest, given=given))))
    least = min(value for _, value in found)
    best = next(number for number, value in found if value <= least * (1 + _ENOUGH))
    why = (
        f"{best} topics: the smallest number whose perplexity on half of the words of {len(test)} "
        f"held-out texts is within {_ENOUGH:.0%} of the minimum ({least:.4g})."
    )
    return best, tuple(found), why


def _halves(counts: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Split the words of each text at random."""
    whole = sparse.csr_array(counts)
    part = rng.binomial(whole.data.astype(np.int64), 0.5).astype(np.float64)
    given = sparse.csr_array((part, whole.indices, whole.indptr), shape=whole.shape)
    rest = sparse.csr_array((whole.data - part, whole.indices, whole.indptr), shape=whole.shape)
    return given, rest


def _top_words(
    machine: Any, counts: Any, names: Array
) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Return words that are frequent in a topic and more frequent than in all texts."""
    overall = np.asarray(counts.sum(axis=0)).ravel() + 1e-9
    overall = overall / overall.sum()
    found = []
    for chances in np.asarray(machine.components_):
        weight = chances * np.log(np.maximum(chances / overall, 1e-300))
        order = np.argsort(-weight, kind="stable")[:_TOPICS_SHOWN]
        found.append(tuple((str(names[j]), float(chances[j])) for j in order if weight[j] > 0))
    return tuple(found)


def _program(source: str, name: str, words: BagOfWords, machine: Any) -> str:
    lines = [
        "from sklearn.pipeline import Pipeline",
        "from mercer import BagOfWords, MultinomialMixture",
        *(["from mercer.data import read"] if source else []),
        "",
        f"table = read({source!r})" if source else "# table: the Table that was given",
        f"texts = [text or '' for text in table[{name!r}].tolist()]",
        "model = Pipeline([",
        f'    ("prepare", {expression_of(words)}),',
        f'    ("machine", {expression_of(machine)}),',
        "])",
        "model.fit(texts)",
    ]
    return "\n".join(lines) + "\n"
