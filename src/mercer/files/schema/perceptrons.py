"""Schema of perceptrons, fitted to rows or to a stream."""

from mercer.backends.contract import LinearFunctions
from mercer.files.schema.records import machine, record
from mercer.machines.perceptron.perceptron import Perceptron
from mercer.machines.perceptron.problem import Separator
from mercer.machines.perceptron.solvers import AtRandom, Memory, Oldest, Smallest
from mercer.machines.perceptron.streams import (
    FeatureStream,
    GivenStream,
    KernelStream,
    LinearStream,
)

for _kind in (Oldest, Smallest, AtRandom):
    record(_kind, group="removal")
record(
    LinearFunctions,
    """
    weights: f8[w,k]
    bias: f8[k]
    has_bias: bool
    late: none | f8[w,k]
    late_bias: none | f8[k]
    tally: none | f8[_] | i8[_]
    """,
)
record(
    Memory,
    """
    coef, late: f8[m,k]
    bias, late_bias: f8[k]
    has_bias, one_by_one: bool
    age: i8[m]
    squares: f8[m]
    budget: none | int
    removal: @removal
    steps, mistakes, forgotten: int
    log: none | list(tuple(int))
    """,
)
record(
    LinearStream,
    """
    rules: LinearFunctions{w=d,k=k}
    forgotten: int
    """,
    group="stream",
)
record(
    FeatureStream,
    """
    rules: LinearFunctions{k=k}
    forgotten: int
    features: @phi{d=d}
    """,
    group="stream",
)
record(
    KernelStream,
    "expression: expression\npoints: rows[m,d]\nmemory: Memory{m=m,k=k}\nlongest: float",
    group="stream",
)
record(GivenStream, "rows: i8[m]\nmemory: Memory{m=m,k=k}\nlongest: float", group="stream")
record(
    Separator,
    """
    coef, mean_coef: none | f8[n,k]
    intercept, mean_intercept: none | f8[k]
    weights, mean_weights: none | f8[w,k]
    mistakes, forgotten: int
    log: none | i8[_,_]
    """,
    group="answer",
)
machine(
    Perceptron,
    """
    classes_: labels[c]
    kernel_: kernel
    _solution?: none | Solution
    _judgement?: Certificate
    _numbers: dict(int)
    _stream: @stream
    """,
)
