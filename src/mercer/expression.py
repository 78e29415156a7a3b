"""Expressions: formulas of kernels as trees of frozen values, which backends evaluate.

A kernel writes an expression, a backend evaluates it; neither knows the other's classes. An
expression is a tree of frozen values:

leaves that look at a pair of rows
    `Dot`, `SqDist`, `AbsDist`, `MinSum`, `ChiSq`, `SubsetProduct`, `SymmetricSum`
    (pairwise statistics), and `Opaque` (a function on two blocks of rows);
leaves that look at each row alone
    `RowProduct(u)` = u(x) u(y) and `RowSum(u)` = u(x) + u(y);
operations on numbers
    `Constant`, `Add`, `Mul`, `Pow`, `Exp`, `Sqrt`, `Tanh`, `Ratio`, `MaternProfile`.

Every leaf carries `steps`: what is done to the rows before they are compared (columns chosen,
stretched, mapped), first step first. Composing a kernel with a map only prepends steps, so the
algebra of inputs needs no nodes of its own.

What belongs here: the shape of formulas, and rewriting them. What does not: arithmetic on data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

from mercer.array_types import FrozenArray

# --- what is done to rows before they are compared -------------------------------------------


@dataclass(frozen=True)
class Columns:
    """Keep these columns, by number or by name."""

    names: tuple[int | str, ...]


@dataclass(frozen=True)
class Stretch:
    """Multiply each column by its factor, or all columns by one (an array without dimensions)."""

    factors: FrozenArray


@dataclass(frozen=True)
class LinearMap:
    """Multiply rows by a matrix from the right."""

    matrix: FrozenArray


@dataclass(frozen=True)
class Mapped:
    """Replace the block of rows by `function(block)`."""

    function: Callable[[Any], Any]


# Binary exponent up to which squares of numbers, and sums of many, keep their distance from both
# ends of the range of float64.
SQUARABLE = 448


@dataclass(frozen=True)
class NearOne:
    """Multiply rows whose squares would overflow or vanish by powers of two, each by its own.

    For kernels that do not depend on the lengths of rows; rows of ordinary size stay as they are.
    """


@dataclass(frozen=True)
class Squarable:
    """Refuse rows whose squares overflow or vanish.

    Attributes
    ----------
    owner : str
        The kernel, which does not change when all rows are multiplied by one number.
    """

    owner: str


Step: TypeAlias = Columns | Stretch | LinearMap | Mapped | NearOne | Squarable
Steps: TypeAlias = tuple[Step, ...]

# --- expressions -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """Base of all nodes; gives the operators in which kernels write their formulas."""

    def __add__(self, other: Expression | float) -> Expression:
        return add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Expression | float) -> Expression:
        return add(self, multiply(-1.0, other))

    def __mul__(self, other: Expression | float) -> Expression:
        return multiply(self, other)

    __rmul__ = __mul__

    def __pow__(self, exponent: float) -> Expression:
        return Pow(self, float(exponent))


@dataclass(frozen=True)
class Constant(Expression):
    """The same number for every pair."""

    value: float


@dataclass(frozen=True)
class Statistic(Expression):
    """Base of the pairwise statistics; `needs_nonnegative` restricts the rows they accept."""

    steps: Steps = ()
    needs_nonnegative: ClassVar[bool] = False


class Dot(Statistic):
    """Sum of x_i y_i."""


class SqDist(Statistic):
    """Sum of (x_i - y_i)^2."""


class AbsDist(Statistic):
    """Sum of |x_i - y_i|."""


class MinSum(Statistic):
    """Sum of min(x_i, y_i), for nonnegative rows."""

    needs_nonnegative = True


class ChiSq(Statistic):
    """Sum of (x_i - y_i)^2 / (x_i + y_i) with 0/0 = 0, for nonnegative rows."""

    needs_nonnegative = True


class SubsetProduct(Statistic):
    """Product of (1 + x_i y_i): the sum over all subsets of columns of their products."""


@dataclass(frozen=True)
class SymmetricSum(Statistic):
    """Sum over all sets of `degree` different columns of the product of their x_i y_i."""

    degree: int = 1


@dataclass(frozen=True)
class Opaque(Expression):
    """A function of two blocks of rows that returns their matrix; its inside is unknown.

    A function with a method `self_values` gives e(x, x) for every row of a block by it.
    """

    function: Callable[[Any, Any], Any]
    steps: Steps = ()


@dataclass(frozen=True)
class SelfValue:
    """Row term: e(x, x) ** power; a negative power of zero (or a subnormal number) is 0."""

    expression: Expression
    power: float = 1.0


@dataclass(frozen=True)
class RowFunction:
    """Row term: a user's function on a block of rows, one number per row."""

    function: Callable[[Any], Any]
    steps: Steps = ()


RowTerm: TypeAlias = SelfValue | RowFunction


@dataclass(frozen=True)
class RowProduct(Expression):
    """Return u(x) u(y)."""

    row: RowTerm


@dataclass(frozen=True)
class RowSum(Expression):
    """Return u(x) + u(y)."""

    row: RowTerm


@dataclass(frozen=True)
class Add(Expression):
    """Sum of terms."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Mul(Expression):
    """Product of factors."""

    factors: tuple[Expression, ...]


@dataclass(frozen=True)
class Pow(Expression):
    """The base to a constant power; a non-integer power needs a positive base."""

    base: Expression
    exponent: float


@dataclass(frozen=True)
class Exp(Expression):
    """Exponential."""

    of: Expression


@dataclass(frozen=True)
class Sqrt(Expression):
    """Square root of a nonnegative expression."""

    of: Expression


@dataclass(frozen=True)
class Tanh(Expression):
    """Hyperbolic tangent."""

    of: Expression


@dataclass(frozen=True)
class Ratio(Expression):
    """Quotient, with 0/0 = 1."""

    above: Expression
    below: Expression


@dataclass(frozen=True)
class MaternProfile(Expression):
    """Matern correlation 2^(1-nu)/Gamma(nu) r^nu K_nu(r) of r >= 0, for any nu; 1 at r = 0."""

    of: Expression
    nu: float


# --- building --------------------------------------------------------------------------------


def lift(value: Expression | float) -> Expression:
    """Make a number a `Constant`."""
    return value if isinstance(value, Expression) else Constant(float(value))


def add(*terms: Expression | float) -> Expression:
    """Sum with nested sums flattened and constants folded."""
    flat = _flatten(terms, Add, "terms")
    constant = sum(t.value for t in flat if isinstance(t, Constant))
    rest = tuple(t for t in flat if not isinstance(t, Constant))
    if constant or not rest:
        rest = (*rest, Constant(float(constant)))
    return rest[0] if len(rest) == 1 else Add(rest)


def multiply(*factors: Expression | float) -> Expression:
    """Product with nested products flattened and constants folded to the front."""
    flat = _flatten(factors, Mul, "factors")
    constant = 1.0
    for factor in flat:
        if isinstance(factor, Constant):
            constant *= factor.value
    rest = tuple(f for f in flat if not isinstance(f, Constant))
    if constant != 1.0 or not rest:
        rest = (Constant(constant), *rest)
    return rest[0] if len(rest) == 1 else Mul(rest)


def _flatten(
    parts: Iterable[Expression | float], kind: type[Expression], field: str
) -> list[Expression]:
    flat: list[Expression] = []
    for part in map(lift, parts):
        flat.extend(getattr(part, field) if isinstance(part, kind) else (part,))
    return flat


# --- walking and rewriting -------------------------------------------------------------------


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct sub-expressions, in order (a row term's inner expression is not one)."""
    found: list[Expression] = []
    for field in fields(expression):
        value = getattr(expression, field.name)
        if isinstance(value, Expression):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(v for v in value if isinstance(v, Expression))
    return tuple(found)


def walk(expression: Expression) -> Iterator[Expression]:
    """Visit every node, parents first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def mapped_width(expression: Expression) -> int:
    """Return how many numbers its maps make of a row, at most; zero where none says."""
    steps = [step for node in walk(expression) for step in getattr(node, "steps", ())]
    maps = [step.function for step in steps if isinstance(step, Mapped)]
    return max((int(getattr(phi, "dimension", 0)) for phi in maps), default=0)


def rebuild(expression: Expression, leaf: Callable[[Steps], Steps]) -> Expression:
    """Apply `leaf` to the steps of every leaf, row terms too; what stays the same is shared."""

    def rewrite(value: Any) -> Any:
        if isinstance(value, Expression | SelfValue | RowFunction):
            changed = {f.name: rewrite(getattr(value, f.name)) for f in fields(value)}
            if "steps" in changed:
                changed["steps"] = leaf(changed["steps"])
            same = all(getattr(value, name) is new for name, new in changed.items())
            return value if same else type(value)(**changed)
        if isinstance(value, tuple):
            items = tuple(rewrite(v) for v in value)
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        return value

    rewritten: Expression = rewrite(expression)
    return rewritten


def after(expression: Expression, step: Step) -> Expression:
    """Return the expression on rows that first went through `step`."""
    return rebuild(expression, lambda steps: (step, *steps))


def reads_columns(expression: Expression) -> bool:
    """Return whether all parts that look at rows choose columns of theirs first."""
    found: list[Steps] = []

    def note(steps: Steps) -> Steps:
        found.append(steps)
        return steps

    rebuild(expression, note)
    return bool(found) and all(steps and isinstance(steps[0], Columns) for steps in found)


def bind_columns(expression: Expression, names: list[str] | None) -> Expression:
    """Replace column names by their numbers, given the names of the columns of `X`.

    Only the first step looks at the user's own columns, so only there can a name stand.
    """

    def number(name: int | str) -> int:
        if isinstance(name, int):
            return name
        if names is None:
            raise ValueError(
                f"the kernel speaks of a column {name!r}, but X has no column names: "
                "pass a DataFrame or use column numbers in k.on(...)"
            )
        if name not in names:
            known = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise ValueError(f"the kernel speaks of a column {name!r}; X has the columns {known}")
        if names.count(name) > 1:
            raise ValueError(f"the kernel speaks of a column {name!r}; X has several of that name")
        return names.index(name)

    def bind(steps: Steps) -> Steps:
        if steps and isinstance(steps[0], Columns):
            return (Columns(tuple(number(n) for n in steps[0].names)), *steps[1:])
        return steps

    return rebuild(expression, bind)
