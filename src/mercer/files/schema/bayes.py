"""Schema of Bayes classifiers, nearest means and neighbors, rectangles, and bags of words."""

from mercer.files.schema.records import FITTED, JUDGED, Fields, machine, record
from mercer.machines.base.targets import DistinctRows
from mercer.machines.bayes.bag_of_words import BagOfWords
from mercer.machines.bayes.columns import Values
from mercer.machines.bayes.counts import ClassCounts, Layout, LazySolution
from mercer.machines.bayes.decision import BayesDecision, JointTable
from mercer.machines.bayes.gaussian_classifier import GaussianClassifier
from mercer.machines.bayes.naive_bayes import NaiveBayes
from mercer.machines.bayes.problem import (
    ClassModel,
    ClassTables,
    ColumnMoments,
    GaussianClasses,
    Scatter,
    Spread,
)
from mercer.machines.neighbors.nearest_mean import NearestMean
from mercer.machines.neighbors.nearest_neighbors import NearestNeighbors
from mercer.machines.neighbors.problem import Means, Neighbourhoods
from mercer.machines.neighbors.search import (
    MatrixSearch,
    MatrixSimilarity,
    RowSearch,
    RowSimilarity,
)
from mercer.machines.rectangle import AxisAlignedRectangle


def _lazy(value: LazySolution) -> Fields:
    return {"problem": value.problem, "solution": value.solution}


def _make_lazy(found: Fields) -> LazySolution:
    made = LazySolution(found["problem"])
    made._solution = found["solution"]
    return made


def _values(value: Values) -> Fields:
    return {"listed": value.listed}


def _make_values(found: Fields) -> Values:
    listed = found["listed"]
    return Values(listed, {each: i for i, each in enumerate(listed)})


def _make_search(found: Fields) -> RowSearch:
    unit = found.get("unit")  # a file from before 0.16 has none
    return RowSearch(found["source"], 1.0 if unit is None else unit)


def _make_distinct(found: Fields) -> DistinctRows:
    group = found["group"]
    if len(group) and not -1 <= int(group.min()) <= int(group.max()) < len(found["first"]):
        raise ValueError("rows belong to missing groups")
    return DistinctRows(**found)


def _table(value: JointTable) -> Fields:
    return {"table": value.counts, "names": value.names, "values": value.values}


def _make_table(found: Fields) -> JointTable:
    return JointTable(**found)


record(
    LazySolution,
    "problem: @counted\nsolution: Solution",
    state=_lazy,
    make=_make_lazy,
    closed=True,
)
record(Values, "listed: tuple(param)", state=_values, make=_make_values, closed=True)
record(Layout, "kinds: words[d]")
record(ColumnMoments, "weight, mean, scatter: F[c,g]")
record(
    ClassCounts,
    """
    weight: f8[c]
    values: tuple(Values)[v]
    tables: tuple(f8[c,_])[v]
    hits, seen, counts: f8[c,_] | i8[c,_]
    moments: ColumnMoments{c=c}
    """,
)
record(
    ClassTables,
    """
    tables: f8[c,_]
    starts: i8[_]
    hits, seen: f8[c,h] | i8[c,h]
    counts: f8[c,_] | i8[c,_]
    moments: ColumnMoments{c=c}
    alpha: float
    floors: f8[_]
    prior: F[c]
    """,
    group="counted",
)
record(
    ClassModel,
    """
    prior: F[c]
    tables: F[c,_]
    ones, zeros: F[c,h]
    words: F[c,_]
    mean, variance: F[c,g]
    """,
    group="answer",
)
record(Scatter, "weight: f8[c]\nmean: f8[c,d]\nscatter: f8[c,d,d] | f8[c,d]")
record(
    GaussianClasses,
    "moments: Scatter\nround, shared, unbiased: bool\nfloor: float",
    group="counted",
)
record(
    Spread,
    "mean: f8[c,d]\nscale: f8[d]\nvalues: f8[m,_]\nvectors: none | f8[m,_,_]",
    group="answer",
)
record(Means, "coef: f8[n,c]\nsquared: f8[c]", group="answer")
record(Neighbourhoods, "index: i8[_,_]", group="answer")
record(
    DistinctRows, "first: i8[m]\nweight: f8[m]\ngroup: i8[n]\nmerged?: bool", make=_make_distinct
)
record(RowSearch, "source: Source{n=n,d=d}\nunit?: float", make=_make_search, group="search")
record(MatrixSearch, "matrix: f[_,_]\nrows: i8[n]<d\ngiven: int=d", group="search")
record(RowSimilarity, "source: Source{n=n,d=d}", group="search")
record(MatrixSimilarity, "matrix: f[_,_]\nrows: i8[n]<d\ngiven: int=d", group="search")

machine(
    JointTable,
    "table: f8\nnames: tuple(text)\nvalues: tuple(tuple(param))",
    state=_table,
    make=_make_table,
)
machine(
    NaiveBayes,
    """
    classes_: labels[c]
    kinds_: words[d]
    _layout: Layout
    alpha_: number
    alphas_?, cv_losses_?: F[_]
    _held: ClassCounts{c=c}
    class_count_: f8[c]
    prior_: F[c]
    _asked: LazySolution
    _judgement: Certificate
    """,
)
machine(
    GaussianClassifier,
    """
    classes_: labels[c]
    _held: Scatter{c=c,d=d}
    class_count_: f8[c]
    prior_: F[c]
    _asked: LazySolution
    _judgement: Certificate
    """,
)
machine(
    BayesDecision,
    JUDGED
    + """
    classes_: labels[c]
    _place: dict(int)
    counts_: f8[v,c]
    values_: list(tuple(param))[v]
    prior_: F[c]
    likelihood_, posterior_: F[v,c]
    _unseen: F[c]
    evidence_: F[v]
    joint_: JointTable
    """,
)
machine(
    NearestMean,
    FITTED
    + """
    classes_: labels[c]
    _expansion: @expansion{d=d,k=c}
    squared_lengths_: f8[c]
    dual_coef_: f8[n,c]
    """,
)
machine(
    NearestNeighbors,
    FITTED
    + """
    by?: param
    classes_: labels[c]
    _search: @search{d=d,n=n}
    _weights: f8[n]
    _rows: DistinctRows
    n_neighbors_: int
    loo_errors_?: F[_]
    _codes: i8[n]<c
    """,
)
machine(
    AxisAlignedRectangle,
    "classes_: labels[c]\nlow_, high_: F[d] | f4[d]\nn_inside_: int\nconsistent_: bool",
)
machine(
    BagOfWords,
    "full_: bool\nvocabulary_: none | dict(int)\nidf_?: f8[_]\ntoken_pattern: pattern",
)
