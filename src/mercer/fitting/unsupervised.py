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
# What `cluster`, `project` and `topics` return.


@dataclass(frozen=True, eq=False)
class UnsupervisedModel:
    """What models without a target have in common.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "prepare" and "machine", fitted to all rows.
    schema : Schema
        Columns that new rows need.
    findings : Findings
        What `mercer.data.check` found.
    certificate : Certificate
        That of the machine.
    notes : tuple of str
        What was decided, in sentences.
    python : str
        A program that makes the same model.
    settings : Settings
        Seed, versions, digest, seconds.
    table : Table or None
        The rows, kept for reports.
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
        """The fitted machine, behind the preparation."""
        return self.pipeline[-1]


@dataclass(frozen=True, eq=False)
class ClusterModel(UnsupervisedModel):
    """Rows in groups.

    Attributes
    ----------
    labels : (n,) int array
        The cluster of each row.
    sizes : (k,) int array
        How many rows each has.
    criterion : str
        Which figure chose the number of clusters, in words.
    candidates : tuple of (int, float)
        Numbers of clusters, and the figure of each.
    profiles : tuple of tuple of str
        What sets each cluster apart, in sentences.
    coordinates : (n, 2) array
        Rows in the plane of their first two principal components, for a picture.
    """

    labels: Array
    sizes: Array
    criterion: str
    candidates: tuple[tuple[int, float], ...]
    profiles: tuple[tuple[str, ...], ...]
    coordinates: Array


@dataclass(frozen=True, eq=False)
class ProjectionModel(UnsupervisedModel):
    """Rows as points with few coordinates.

    Attributes
    ----------
    coordinates : (n, k) array
        Of each row.
    explained : (k,) array
        Share of the variance (in feature space) that each coordinate has.
    loadings : tuple of tuple of (str, float)
        For a linear kernel, the columns that weigh most in each coordinate; empty otherwise.
    """

    coordinates: Array
    explained: Array
    loadings: tuple[tuple[tuple[str, float], ...], ...]


@dataclass(frozen=True, eq=False)
class TopicModel(UnsupervisedModel):
    """Texts by what they are about.

    Attributes
    ----------
    topics : tuple of tuple of (str, float)
        For each topic the words that set it apart, with their probabilities.
    shares : (k,) array
        How much of the texts each topic has.
    weights : (n, k) array
        The probability of each topic for each text.
    candidates : tuple of (int, float)
        Numbers of topics, and the figure that chose.
    """

    topics: tuple[tuple[tuple[str, float], ...], ...]
    shares: Array
    weights: Array
    candidates: tuple[tuple[int, float], ...]


# --- common --------------------------------------------------------------------------------------
#
# What `cluster`, `project` and `topics` do alike: read, check, prepare, finish.


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table whose columns have become numbers.

    Attributes
    ----------
    table : Table
        The rows.
    findings : Findings
        What was found in them.
    preparation : TablePreparation
        Fitted.
    rows : array or CSR matrix
        The numbers.
    kinds, drop : mapping, tuple
        What the user asked for.
    phases : Phases
        The clock.
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
    with phases.phase("check", "the table is checked"):
        found = read_table(table, kinds or {}, drop)
        findings = check(found)
    with phases.phase("prepare", "columns become numbers"):
        preparation = TablePreparation()
        rows = preparation.fit_transform(found)
    return Prepared(found, findings, preparation, rows, kinds or {}, tuple(drop), phases)


def finished(data: Prepared, machine: Any, notes: Sequence[str], seed: int) -> dict[str, Any]:
    """Return the fields that all models without a target have."""
    with data.phases.phase("certify", "the answer is certified"):
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
    """Return how a model of all rows of a table came about."""
    rows = len(table)
    return Settings(
        seed, versions(), table.digest, table.source, rows, rows, 0, {}, dict(phases.seconds)
    )


# --- profiles ------------------------------------------------------------------------------------
#
# What sets a group of rows apart from all rows, in sentences.

_CLEAR = 0.5  # standard deviations, or difference of shares, from which on it is worth saying
_MOST = 4  # sentences of a cluster


def profiles_of(table: Table, labels: Array, k: int) -> tuple[tuple[str, ...], ...]:
    """Return, for each cluster, the columns in which it differs most from all rows.

    Parameters
    ----------
    table : Table
        The rows.
    labels : (n,) int array
        The cluster of each.
    k : int
        How many clusters there are.

    Returns
    -------
    tuple of tuple of str
        The clearest differences first.
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
            text = f"{name} is {word}: mean {mine.mean():.4g}, of all rows {mean:.4g}"
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
# The ways to put rows into groups, by name: how each is fitted, and what it takes.

_MEASURED = (Kind.NUMBER, Kind.DATE)
_SAMPLE = 2000  # rows whose distances the silhouette is made of
_ASKED = "what was asked for"


@dataclass(frozen=True)
class Wanted:
    """What is asked of a method.

    Attributes
    ----------
    clusters : int or None
        How many groups; None lets the data decide.
    kernel : Kernel, str or None
        None is that of the method.
    approximation : Approximation, str or None
        Features in place of the kernel.
    most : int
        The largest number that is tried.
    seed : int
        Of random choices.
    """

    clusters: int | None
    kernel: Any
    approximation: Any
    most: int
    seed: int


@dataclass(frozen=True)
class GroupedRows:
    """Rows in groups.

    Attributes
    ----------
    machine : estimator
        Fitted.
    labels : array
        The group of each row.
    criterion : str
        How the number of groups was chosen, in words.
    candidates : tuple of (int, float)
        Numbers that were compared, and their values.
    """

    machine: Any
    labels: Array
    criterion: str
    candidates: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Method:
    """A way to put rows into groups.

    Attributes
    ----------
    fit : callable
        From prepared rows and `Wanted` to `Grouping`.
    takes_kernel : bool
        Whether a kernel means something.
    check : callable
        Raises where the method has no meaning for the columns of a preparation.
    """

    fit: Callable[[Any, Wanted], GroupedRows]
    takes_kernel: bool = True
    check: Callable[[TablePreparation], None] = lambda preparation: None


def _by_kmeans(rows: Any, wanted: Wanted) -> GroupedRows:
    """Take the number of the largest mean silhouette."""
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
        raise ValueError("cluster: all rows are alike; there is nothing to put into groups")
    best, value = max(found, key=lambda pair: pair[1])
    said = f"{best} clusters, by the largest mean silhouette ({value:.3f}"
    said += f", on {len(some)} rows)." if len(some) < rows.shape[0] else ")."
    return GroupedRows(machines[best], np.asarray(machines[best].labels_), said, tuple(found))


def _kmeans(number: int, kernel: Any, wanted: Wanted) -> KMeans:
    features = wanted.approximation
    return KMeans(number, kernel, approximation=features, random_state=wanted.seed)


def _by_eigenvectors(rows: Any, wanted: Wanted) -> GroupedRows:
    """Take the number of the largest gap of eigenvalues."""
    k = wanted.clusters
    machine = SpectralClustering(
        "eigengap" if k is None else k, "gaussian" if wanted.kernel is None else wanted.kernel,
        approximation=wanted.approximation, max_clusters=wanted.most, random_state=wanted.seed,
    ).fit(rows)  # fmt: skip
    values = np.asarray(machine.eigenvalues_)
    gaps = [] if k is not None else list(enumerate((values[:-1] - values[1:]).tolist(), 1))
    how = "the largest gap of eigenvalues" if k is None else _ASKED
    pairs = tuple((number, float(gap)) for number, gap in gaps if 2 <= number <= wanted.most)
    said = f"{machine.n_clusters_} clusters, by {how}."
    return GroupedRows(machine, np.asarray(machine.labels_), said, pairs)


def _by_mixture(rows: Any, wanted: Wanted) -> GroupedRows:
    """Take the number of the smallest BIC."""
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
    """Refuse columns of 0 and 1 for a mixture: they have no variance within a group."""
    other = [block.name for block in preparation.blocks_ if block.kind not in _MEASURED]
    if other:
        raise ValueError(
            f"cluster: method='mixture' describes numbers, and the table has {', '.join(other)}; "
            "drop these columns, or take method='kmeans'"
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
# Rows of a table in groups.


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
    """Put the rows of a table into groups, and say what sets each apart.

    Parameters
    ----------
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Rows.
    clusters : int or None
        How many groups. None lets the data decide: for "kmeans" the largest mean silhouette, for
        "spectral" the largest gap of eigenvalues, for "mixture" the smallest BIC.
    method : {"kmeans", "spectral", "mixture"}
        `KMeans`, `SpectralClustering` or `GaussianMixture`, which takes numbers and dates only.
    kernel : Kernel, str or None
        For "kmeans" (None: linear) and "spectral" (None: Gaussian).
    approximation : Approximation, str or None
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None or
        "none" for the kernel itself. "auto" takes the kernel itself as long as that is not refused.
    kinds : mapping of str to Kind or str, optional
        Kinds of columns, in place of those inferred.
    drop : sequence of str
        Columns that are left out, such as a known grouping.
    max_clusters : int
        The largest number that is tried.
    random_state : int
        The seed.

    Returns
    -------
    ClusterModel
        Labels in the order of the rows, how the number was chosen, what sets each group apart.

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
        raise ValueError(f"cluster: kernel has no meaning for method={method!r}; leave it out")
    if approximation != "auto" and not way.takes_kernel:
        raise ValueError(
            f"cluster: approximation has no meaning for method={method!r}, which has no kernel; "
            "leave it out"
        )
    data = prepared(table, kinds, drop)
    n = len(data.table)
    if n < 3 or (clusters is not None and not 1 <= clusters <= n):
        raise ValueError(f"cluster: {n} rows cannot be put into clusters={clusters!r} groups")
    rows: Any = data.rows
    way.check(data.preparation)
    with data.phases.phase("choose", "numbers of clusters are compared"):
        most = min(max_clusters, n - 1)
        found = way.fit(rows, Wanted(clusters, kernel, approximation, most, random_state))
    counts = np.bincount(found.labels)
    notes = [found.criterion, f"Sizes of the clusters: {', '.join(map(str, counts.tolist()))}."]
    notes.append("How well a cut describes the rows is judged on the rows themselves.")
    plane = PCA(min(2, *rows.shape)).fit_transform(rows)
    shared = finished(data, found.machine, notes, random_state)
    return ClusterModel(
        **shared, labels=found.labels, sizes=counts, criterion=found.criterion,
        candidates=found.candidates, profiles=profiles_of(data.table, found.labels, len(counts)),
        coordinates=_two(plane),
    )  # fmt: skip


def _two(plane: Array) -> Array:
    """Return two coordinates, the second zero where there is but one."""
    return plane if plane.shape[1] == 2 else np.column_stack([plane, np.zeros(len(plane))])


# --- project -------------------------------------------------------------------------------------
#
# Rows of a table as points with few coordinates.

_PROJECT_SHOWN = 8  # columns of a coordinate


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
    """Give the rows of a table few coordinates: principal components, linear or of a kernel.

    Parameters
    ----------
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Rows.
    components : int
        How many coordinates.
    kernel : Kernel or str
        What similarity is; "linear" is ordinary PCA.
    approximation : Approximation, str or None
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None or
        "none" for the kernel itself. "auto" takes the kernel itself as long as that is not refused.
    kinds : mapping of str to Kind or str, optional
        Kinds of columns, in place of those inferred.
    drop : sequence of str
        Columns that are left out, such as a label.
    random_state : int
        The seed.

    Returns
    -------
    ProjectionModel
        Coordinates in the order of the rows, and how much of the variance they have.

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
            f"project: components={components!r} must be a whole number from 1 to the {n} rows"
        )
    resolved = resolve(kernel, data.rows)
    with data.phases.phase("train", "components are found"):
        machine = PCA(components, resolved, approximation=approximation, random_state=random_state)
        coordinates = machine.fit_transform(data.rows)
    explained = np.asarray(machine.explained_variance_ratio_)
    share = "linear principal components" if isinstance(resolved, Linear) else "components"
    notes = [
        f"{components} {share} of the kernel {resolved} have {explained.sum():.1%} of the variance "
        "of the prepared rows."
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
# What texts are about.

_NUMBERS = (2, 3, 5, 8, 12, 20)
_COMMON = 0.5  # of the texts: words in more of them tell little
_FEW_TEXTS = 50  # below, a share of them is too few to judge by
_DEFAULT = 5  # topics where nothing can be judged
_ENOUGH = 0.01  # a number of topics is taken if more lower the perplexity by no more than this
_TOPICS_SHOWN = 10  # words of a topic


def topics(
    texts: Any,
    column: str | None = None,
    *,
    topics: int | None = None,
    stop_words: Any = "common",
    random_state: int = 0,
) -> TopicModel:
    """Find what texts are about: topics are lists of words that come together.

    Parameters
    ----------
    texts : list of str, or a table or path
        Texts, or a table with a column of them.
    column : str or None
        Which column; None takes the one of kind text.
    topics : int or None
        How many. None takes the fewest that are about as good as any at predicting half of the
        words of texts held out from the other half.
    stop_words : {"common", "english"}, list of str or None
        Words to leave out: those in more than half of the texts, scikit-learn's English ones,
        these, or none.
    random_state : int
        The seed.

    Returns
    -------
    TopicModel
        Words of each topic, and the topics of each text.

    Examples
    --------
    >>> import mercer
    >>> kitchen, sky = "salt pepper oil salt", "rain wind snow rain"
    >>> found = mercer.topics([kitchen, sky] * 20, topics=2, stop_words=None)
    >>> sorted(sorted(word for word, _ in topic[:3]) for topic in found.topics)
    [['oil', 'pepper', 'salt'], ['rain', 'snow', 'wind']]
    """
    phases = Phases(None, None)
    with phases.phase("check", "texts are read"):
        table, name, rows = _texts(texts, column)
        findings = check(table)
    with phases.phase("prepare", "words are counted"):
        words = _counter(rows, stop_words)
        counts = words.fit_transform(rows)
        notes = _said(rows, words, counts, stop_words)
    with phases.phase("choose", "numbers of topics are compared"):
        number, candidates, why = _number(counts, topics, random_state)
    with phases.phase("train", "topics are found"):
        machine = MultinomialMixture(number, random_state=random_state).fit(counts)
    with phases.phase("certify", "the answer is certified"):
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
    """Return the table, which column has the texts, and the texts; gaps are empty texts."""
    plain = isinstance(texts, list | tuple) or getattr(texts, "ndim", 2) == 1
    if plain:
        if not len(texts) or not all(isinstance(one, str) for one in texts):
            raise TypeError("topics: texts must be strings, at least one, or a table")
        column = column or "text"
        table = Table.of({column: list(texts)}, kinds={column: "text"})
    else:
        table = read_table(texts, {}, ())
    found = [name for name, kind in table.kinds.items() if kind is Kind.TEXT]
    if column is None and len(found) != 1:
        raise ValueError(
            f"topics: the table has {len(found)} columns of text ({', '.join(found[:5])}); name "
            "one by column="
        )
    name = found[0] if column is None else column
    if name not in table.columns or table[name].dtype != object:
        raise ValueError(f"topics: column={name!r} is no column of words of the table")
    return table, name, ["" if one is None else str(one) for one in table[name].tolist()]


def _counter(rows: list[str], asked: Any) -> BagOfWords:
    """Return what counts words: with as many columns as there are words to count."""
    left_out = asked
    if isinstance(asked, str) and asked == "common":
        found = BagOfWords(binary=True)
        share = np.asarray(found.fit_transform(rows).sum(axis=0)).ravel() / len(rows)
        left_out = sorted(w for w, j in found.vocabulary_.items() if share[j] > _COMMON) or None
    number = len(BagOfWords(stop_words=left_out).fit(rows).vocabulary_)
    if not number:
        raise ValueError("topics: no text has a word that counts; see stop_words")
    return BagOfWords(stop_words=left_out, n_features=number)


def _said(rows: list[str], words: BagOfWords, counts: Any, asked: Any) -> list[str]:
    empty = int((np.asarray(counts.sum(axis=1)).ravel() == 0).sum())
    notes = [f"{len(rows)} texts, {len(words.vocabulary_)} different words."]
    if asked == "common" and words.stop_words:
        shown = ", ".join(words.stop_words[:8])
        notes.append(
            f"{len(words.stop_words)} words in more than {_COMMON:.0%} of the texts were left out: "
            f"{shown}{', ...' if len(words.stop_words) > 8 else ''}."
        )
    if empty:
        notes.append(f"{empty} texts have no word that counts.")
    return notes


def _number(
    counts: Any, asked: int | None, seed: int
) -> tuple[int, tuple[tuple[int, float], ...], str]:
    """Choose the number of topics by how well half of the words of new texts are predicted."""
    if asked is not None:
        return int(asked), (), f"{asked} topics, as asked for."
    n = counts.shape[0]
    if n < _FEW_TEXTS:
        number = min(_DEFAULT, n)
        return number, (), f"{number} topics: {n} texts are too few to compare numbers."
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
        f"{best} topics: the fewest whose perplexity on the other half of the words of "
        f"{len(test)} texts held out is within {_ENOUGH:.0%} of the least ({least:.4g})."
    )
    return best, tuple(found), why


def _halves(counts: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Divide the words of each text at random."""
    whole = sparse.csr_array(counts)
    part = rng.binomial(whole.data.astype(np.int64), 0.5).astype(np.float64)
    given = sparse.csr_array((part, whole.indices, whole.indptr), shape=whole.shape)
    rest = sparse.csr_array((whole.data - part, whole.indices, whole.indptr), shape=whole.shape)
    return given, rest


def _top_words(
    machine: Any, counts: Any, names: Array
) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Return the words that are frequent in a topic and more so than in all texts."""
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
