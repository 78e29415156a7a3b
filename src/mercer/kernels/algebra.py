"""Class `Kernel`, kernel algebra (sum, product, power, exp, maps of rows), text, parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from math import inf
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np

from mercer import expression as ex
from mercer.arguments import NamedArguments
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.expression import Expression, bind_columns, reads_columns
from mercer.html import curve_picture, matrix_picture, page
from mercer.kernels import checks
from mercer.kernels.checks import as_columns
from mercer.kernels.features import FeatureMap, exact_feature_map
from mercer.kernels.series import truncated_feature_map
from mercer.rows.foreign import reading_arrays
from mercer.rows.points import (
    as_points,
    column_names,
    is_objects,
    is_sparse,
    mixed_rows,
    shared_names,
)

# --- base ----------------------------------------------------------------------------------------
#
# A kernel is an immutable value that writes its formula as an expression.
#
# A kernel is independent of storage, devices and solvers. It provides four things: its formula
# (`expression`), the matrix of two blocks of rows (`k(X, Y)`), its diagonal (`k.diag(X)`) and its
# finite feature map, if it has one (`k.features(d)`). Operators build new kernels from it.
#
# To write a custom kernel, give a frozen dataclass its formula:
#
# >>> from dataclasses import dataclass, fields
# >>> from mercer.expression import Expression, Dot, Exp
# >>> @dataclass(frozen=True)
# ... class Exponential(Kernel):
# ...     rate: float = 1.0
# ...     def expression(self) -> Expression:
# ...         return Exp(self.rate * Dot())
# >>> Exponential(0.5)([[0.0, 1.0], [2.0, 0.0]]).round(3).tolist()
# [[1.649, 1.0], [1.0, 7.389]]

K = TypeVar("K", bound="Kernel")

_FAR = 1e15  # entries of rows: below, squared distances do not overflow in float32 either


class Binding(IntEnum):
    """How strongly a kernel's text holds together; weaker ones need brackets."""

    SUM = 1
    PRODUCT = 2
    POWER = 3
    ATOM = 4


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(NamedArguments, ABC):
    """k(x, y), a similarity of rows: base of all kernels.

    Two kernels are equal when they are written alike. `repr` reads back, except for kernels that
    hold a user's function. Kernels combine by `+`, `*` and `**` with kernels and numbers; see
    `mercer.kernels` for the rules.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> k = 0.5 * Gaussian(scale=2.0) + Linear().on([0])
    >>> k
    0.5 * Gaussian(scale=2.0) + Linear().on([0])
    >>> k([[0.0, 0.0], [2.0, 0.0]]).round(4).tolist()
    [[0.5, 0.3033], [0.3033, 4.5]]
    >>> k.with_params(k2__columns=[1], k1__factor=1.0).diag([[0.0, 3.0]]).tolist()
    [10.0]
    """

    binding: ClassVar[Binding] = Binding.ATOM
    __array_ufunc__: ClassVar[None] = None  # so that np.float64(2) * k asks the kernel

    @abstractmethod
    def expression(self) -> Expression:
        """Write the formula of the kernel, for backends to evaluate."""

    @property
    def psd(self) -> bool:
        """Whether every matrix k(X) is positive semidefinite: so if it is for all the parts."""
        return all(part.psd for part in parts(self))

    # --- values ------------------------------------------------------------------------------

    @reading_arrays
    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Return the matrix k(x_i, y_j); Y = X when it is left out.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, or list of str / token lists, n rows
        Y : the same kind with m rows, optional

        Returns
        -------
        array (n, m)
            float32 for float32 data, else float64.
        """
        formula = self.expression()
        rows, columns = (
            formula_points(formula, X),
            None if Y is None else formula_points(formula, Y),
        )
        _refuse_mismatch(rows, columns)
        expression = bind_columns(formula, shared_names(X, Y))
        dtype = _dtype(rows) if columns is None else np.result_type(_dtype(rows), _dtype(columns))
        values = choose_backend().pairs(expression, rows, columns, dtype).dense()
        _refuse_undefined(self, values, rows, columns)
        return values

    @reading_arrays
    def diag(self, X: Any) -> Array:
        """Return k(x_i, x_i) for every row, without the matrix: (n,)."""
        formula = self.expression()
        rows, expression = formula_points(formula, X), bind_columns(formula, column_names(X))
        return choose_backend().diagonal(expression, rows, _dtype(rows))

    @overload
    def features(self, n_features: Any, tol: None = None) -> FeatureMap | None: ...

    @overload
    def features(self, n_features: Any, tol: float) -> FeatureMap: ...

    def features(self, n_features: Any, tol: float | None = None) -> FeatureMap | None:
        """Return phi with k(x, y) = <phi(x), phi(y)>, exactly or within `tol`.

        Parameters
        ----------
        n_features : int, or array-like of shape (n, d)
            Length of the rows, or rows X; `tol` needs X, whose distances determine the map.
        tol : float, optional
            Bound on |k(x, y) - <phi(x), phi(y)>|, for kernels with infinitely many features: the
            Gaussian and the rational quadratic kernel, exponentials, and combinations of them. The
            remainder of a series is a kernel, so that the error of x and y is at most that of x
            with itself, or of y.

        Returns
        -------
        FeatureMap or None
            Without `tol` the finite map, None if there is none; with it a `TruncatedFeatureMap`
            if no finite one exists.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import Gaussian
        >>> Gaussian(1.0).features(2) is None
        True
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(100, 2))
        >>> phi = Gaussian(1.0).features(X, tol=1e-3)
        >>> phi.dimension
        36
        >>> bool(np.abs(phi(X) @ phi(X).T - Gaussian(1.0)(X)).max() < 1e-3)
        True
        """
        if tol is not None:
            return truncated_feature_map(self.expression(), n_features, tol)
        return exact_feature_map(self.expression(), n_features)

    # --- parameters --------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with `deep` also those of the parts, as `k1__scale`."""
        return _deep(self) if deep else _own(self)

    def with_params(self, **params: Any) -> Self:
        """Return a new kernel with some parameters replaced, names as in `get_params`."""
        return _replaced(self, params)

    def __sklearn_clone__(self) -> Self:
        return self  # a value needs no copy

    def _store(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return call(self)

    def _repr_html_(self) -> str:
        return page(repr(self), {}, picture=_picture(self))

    # --- algebra -----------------------------------------------------------------------------

    def __add__(self, other: Kernel | float) -> Kernel:
        return add(self, other) if _is_operand(other) else NotImplemented

    def __radd__(self, other: float) -> Kernel:
        return add(other, self) if _is_operand(other) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        return multiply(self, other) if _is_operand(other) else NotImplemented

    def __rmul__(self, other: float) -> Kernel:
        return multiply(other, self) if _is_operand(other) else NotImplemented

    def __pow__(self, exponent: int) -> Kernel:
        return Power(self, exponent)

    def __neg__(self) -> Kernel:
        return self * -1.0  # which raises an error with the reason

    def __sub__(self, other: Kernel | float) -> Kernel:
        return self + other * -1.0

    def on(self, columns: Any) -> Kernel:
        """Return the kernel on these columns only: numbers, names, a slice, or one of them."""
        return On(self, columns)

    def after(self, phi: Callable[[Any], Any]) -> Kernel:
        """Return k(phi(x), phi(y)); `phi` maps a block of rows to a block of rows."""
        return After(self, phi)

    def scaled_by(self, f: Callable[[Any], Any]) -> Kernel:
        """Return f(x) k(x, y) f(y); `f` maps a block of rows to one number per row."""
        return ScaledBy(self, f)

    def normalized(self) -> Kernel:
        """Return k(x, y) / sqrt(k(x, x) k(y, y)), and 0 where k(x, x) or k(y, y) is 0."""
        return Normalized(self)


def _picture(kernel: Kernel) -> str:
    """Draw k(x, 0.5) and the matrix over numbers from -2 to 2; nothing for rows of another kind."""
    x = np.linspace(-2.0, 2.0, 65)
    try:
        curve = kernel(x[:, None], np.array([[0.5]]))[:, 0]
        matrix = kernel(x[::2, None])
    except (TypeError, ValueError, IndexError):
        return ""
    if not (np.isfinite(curve).all() and np.isfinite(matrix).all()):
        return ""
    return curve_picture(x, curve) + matrix_picture(matrix)


def _is_operand(other: Any) -> bool:
    return isinstance(other, Kernel | Real)


def formula_points(formula: Expression, X: Any) -> Points:
    """Return rows; a kernel on columns may find text in some of them."""
    mixed = mixed_rows(X) if reads_columns(formula) else None
    return as_points(X) if mixed is None else mixed


def _dtype(X: Points) -> Any:
    return np.float64 if is_objects(X) else X.dtype


def _refuse_mismatch(X: Points, Y: Points | None) -> None:
    if Y is None:
        return
    if is_objects(X) != is_objects(Y):
        raise TypeError("one of X and Y holds rows of numbers, the other strings or lists")
    if not is_objects(X) and X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features and Y has {Y.shape[1]}; rows must be equally long"
        )


def _refuse_undefined(kernel: Kernel, values: Array, *tables: Points | None) -> None:
    """Raise where a formula met infinity times zero: distances of numbers that large overflow."""
    largest = max(_largest(X) for X in tables if X is not None)
    if _FAR < largest < np.inf and np.isnan(values).any():
        raise ValueError(
            f"{kernel!r}: some values are not numbers, since rows with entries as large as "
            f"{largest:.0e} are too far apart for float64; scale the features"
        )


def _largest(X: Points) -> float:
    entries = X.data if is_sparse(X) else X
    if is_objects(X) or entries.dtype.kind != "f" or not entries.size:
        return 0.0
    return float(max(entries.max(), -entries.min()))


# --- kernels that are positive semidefinite by a theorem ------------------------------------------

_PROVEN: set[type[Kernel]] = set()


def proven(kind: type[K]) -> type[K]:
    """Mark a class with a theorem behind it: its kernels are valid if their parts are.

    Derived classes are not marked: their author is responsible for their changes.
    """
    _PROVEN.add(kind)
    return kind


def is_proven(kernel: Kernel) -> bool:
    """Return whether the rules of the algebra prove that every k(X) is positive semidefinite.

    `k.psd` also trusts declarations: a custom function or formula has the declared property.

    >>> from mercer.kernels import FromCallable, Gaussian
    >>> is_proven(2 * Gaussian() + 1), is_proven(FromCallable(lambda X, Y: X @ Y.T))
    (True, False)
    """
    return type(kernel) in _PROVEN and kernel.psd and all(map(is_proven, parts(kernel)))


# --- algebra -------------------------------------------------------------------------------------
#
# Kernels made from kernels by arithmetic. Each rule keeps a kernel valid.
#
# ====================  =====================================  ==================================
# rule                  formula                                why the matrix stays PSD
# ====================  =====================================  ==================================
# `c * k`, c >= 0       c k(x, y)                              a cone
# `k1 + k2`             k1(x, y) + k2(x, y)                    a cone; features side by side
# `k1 * k2`             k1(x, y) k2(x, y)                      Schur; tensor product of features
# `k ** p`              k(x, y)^p, p = 1, 2, ...               repeated product
# `polynomial(k, c)`    c_0 + c_1 k + c_2 k^2 + ..., c_i >= 0  sums of products
# `exp(k)`              exp(k(x, y))                           limit of such polynomials
# ====================  =====================================  ==================================
#
# Sums and products flatten, so (a + b) + c has three parts; numbers gather in a product's
# `factor`. Rules that change the rows instead stand below.

_NEGATIVE = "a negative multiple of a kernel is not positive semidefinite"


@proven
@dataclass(frozen=True, repr=False)
class Sum(Kernel):
    """k1 + k2 + ...: the result of the operator `+`."""

    parts: tuple[Kernel, ...]
    binding: ClassVar[Binding] = Binding.SUM

    def __post_init__(self) -> None:
        nested = (p.parts if isinstance(p, Sum) else (p,) for p in map(_kernel, self.parts))
        self._store(parts=tuple(part for group in nested for part in group))

    def expression(self) -> Expression:
        """Write the sum."""
        return ex.add(*(part.expression() for part in self.parts))

    def __repr__(self) -> str:
        return " + ".join(in_parentheses(part, Binding.SUM) for part in self.parts)


@proven
@dataclass(frozen=True, repr=False)
class Product(Kernel):
    """factor * k1 * k2 * ...: the result of the operator `*` for numbers and kernels."""

    parts: tuple[Kernel, ...]
    factor: float = 1.0
    binding: ClassVar[Binding] = Binding.PRODUCT

    def __post_init__(self) -> None:
        factor = checks.nonnegative("k * c", "c", self.factor, _NEGATIVE)
        flat: list[Kernel] = []
        for part in map(_kernel, self.parts):
            if isinstance(part, Product):
                factor *= part.factor
            flat.extend(part.parts if isinstance(part, Product) else (part,))
        self._store(parts=tuple(flat), factor=checks.nonnegative("k * c", "c", factor))

    def expression(self) -> Expression:
        """Write the product."""
        return ex.multiply(self.factor, *(part.expression() for part in self.parts))

    def __repr__(self) -> str:
        factors = [in_parentheses(part, Binding.POWER) for part in self.parts]
        # a single part keeps its factor even when it is one, or the product would not show
        number = [repr(self.factor)] if self.factor != 1.0 or len(factors) == 1 else []
        return " * ".join(number + factors)


@proven
@dataclass(frozen=True, repr=False)
class Power(Kernel):
    """k(x, y)^p: the result of the operator `**`."""

    kernel: Kernel
    exponent: int
    binding: ClassVar[Binding] = Binding.POWER

    def __post_init__(self) -> None:
        reason = (
            "other powers of a kernel need not be kernels (a root of a positive semidefinite "
            "matrix, entry by entry, can have negative eigenvalues)"
        )
        self._store(exponent=checks.whole("k ** p", "p", self.exponent, reason))

    def expression(self) -> Expression:
        """Write the power."""
        return ex.Pow(self.kernel.expression(), float(self.exponent))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)} ** {self.exponent}"


@proven
@dataclass(frozen=True, repr=False)
class Exponential(Kernel):
    """exp(k(x, y)): what `exp` makes."""

    kernel: Kernel

    def expression(self) -> Expression:
        """Write the exponential."""
        return ex.Exp(self.kernel.expression())

    def __repr__(self) -> str:
        return f"exp({self.kernel!r})"


@proven
@dataclass(frozen=True, repr=False)
class PolynomialOf(Kernel):
    """c_0 + c_1 k + c_2 k^2 + ...: what `polynomial` makes."""

    kernel: Kernel
    coefficients: Sequence[float] | Array

    def __post_init__(self) -> None:
        stored = checks.nonnegative_list("polynomial", "coefficients", self.coefficients, _NEGATIVE)
        self._store(coefficients=stored)

    def expression(self) -> Expression:
        """Write the terms that are there, power by power."""
        k = self.kernel.expression()
        terms = [c * (k**i if i > 1 else k) for i, c in enumerate(self.coefficients) if i and c]
        return ex.add(float(self.coefficients[0]), *terms)

    def __repr__(self) -> str:
        return f"polynomial({self.kernel!r}, {self.coefficients!r})"


def exp(k: Kernel) -> Kernel:
    """Return the kernel exp(k(x, y)).

    Parameters
    ----------
    k : Kernel

    Examples
    --------
    >>> from mercer.kernels import Linear, exp
    >>> exp(Linear())([[0.0], [1.0]]).round(3).tolist()
    [[1.0, 1.0], [1.0, 2.718]]
    """
    return Exponential(_kernel(k))


def polynomial(k: Kernel, coefficients: Sequence[float] | Array) -> Kernel:
    """Return the kernel c_0 + c_1 k(x, y) + c_2 k(x, y)^2 + ... with coefficients c_i >= 0.

    Parameters
    ----------
    k : Kernel
    coefficients : sequence of float
        Constant term first.

    Examples
    --------
    >>> from mercer.kernels import Linear, polynomial
    >>> polynomial(Linear(), [1, 0, 2])([[1.0], [3.0]]).tolist()
    [[3.0, 19.0], [19.0, 163.0]]
    """
    return PolynomialOf(_kernel(k), coefficients)


def add(left: Kernel | float, right: Kernel | float) -> Kernel:
    """Add kernels; a number c >= 0 is the constant kernel."""
    return Sum((_lift(left), _lift(right)))


def multiply(left: Kernel | float, right: Kernel | float) -> Kernel:
    """Multiply kernels, or a kernel by a number c >= 0."""
    if not isinstance(left, Kernel):
        return Product((_kernel(right),), left)
    return Product((left, right)) if isinstance(right, Kernel) else Product((left,), right)


def _lift(value: Kernel | float) -> Kernel:
    from mercer.kernels.families import Constant  # noqa: PLC0415  dot needs Kernel, as this file does

    return value if isinstance(value, Kernel) else Constant(value)


def _kernel(value: object) -> Kernel:
    if not isinstance(value, Kernel):
        raise TypeError(
            f"a kernel is needed here, not {value!r}; mercer.kernels.resolve turns names and "
            "functions into kernels"
        )
    return value


# --- inputs --------------------------------------------------------------------------------------
#
# Kernels on rows that are changed first: columns chosen, rows mapped, weighted, normalized.
#
# ============================  ============================  ======================================
# rule                          formula                       why the matrix stays PSD
# ============================  ============================  ======================================
# `k.on(columns)`               k(x_c, y_c)                   a kernel on a part of the row
# `k.after(phi)`                k(phi(x), phi(y))             the same matrix, of other points
# `k.scaled_by(f)`              f(x) k(x, y) f(y)             D K D with D diagonal
# `k.normalized()`              k / sqrt(k(x, x) k(y, y))     the same, with f = k(x, x)^(-1/2)
# ============================  ============================  ======================================


@proven
@dataclass(frozen=True, repr=False)
class On(Kernel):
    """k(x_c, y_c) on the columns c: what `k.on` makes."""

    kernel: Kernel
    columns: Any  # kept as a tuple of numbers and names

    def __post_init__(self) -> None:
        self._store(columns=as_columns(self.columns))

    def expression(self) -> Expression:
        """Choose the columns before everything else."""
        return ex.after(self.kernel.expression(), ex.Columns(self.columns))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)}.on({list(self.columns)!r})"


@proven
@dataclass(frozen=True, repr=False)
class After(Kernel):
    """k(phi(x), phi(y)): what `k.after` makes."""

    kernel: Kernel
    phi: Callable[[Any], Any]

    def __post_init__(self) -> None:
        refuse_uncallable("after", "phi", self.phi)

    def expression(self) -> Expression:
        """Map the rows before everything else."""
        return ex.after(self.kernel.expression(), ex.Mapped(self.phi))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)}.after({name(self.phi)})"


@proven
@dataclass(frozen=True, repr=False)
class ScaledBy(Kernel):
    """f(x) k(x, y) f(y): what `k.scaled_by` makes."""

    kernel: Kernel
    f: Callable[[Any], Any]

    def __post_init__(self) -> None:
        refuse_uncallable("scaled_by", "f", self.f)

    def expression(self) -> Expression:
        """Multiply by f on both sides."""
        return ex.multiply(self.kernel.expression(), ex.RowProduct(ex.RowFunction(self.f)))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)}.scaled_by({name(self.f)})"


@proven
@dataclass(frozen=True, repr=False)
class Normalized(Kernel):
    """k(x, y) / sqrt(k(x, x) k(y, y)): what `k.normalized` makes."""

    kernel: Kernel

    def expression(self) -> Expression:
        """Divide by the norms of both rows in feature space."""
        k = self.kernel.expression()
        if is_homogeneous(k):
            k = ex.rebuild(k, lambda steps: (*steps, ex.NearOne()))
        return ex.multiply(k, ex.RowProduct(ex.SelfValue(k, -0.5)))

    def __repr__(self) -> str:
        return f"{in_parentheses(self.kernel, Binding.ATOM)}.normalized()"


def is_homogeneous(e: Expression) -> bool:
    """Return whether a multiple of x only multiplies e(x, y), which normalizing takes back."""
    if isinstance(e, ex.Mul | ex.Pow):
        return all(is_homogeneous(part) for part in ex.children(e))
    return isinstance(e, ex.Dot | ex.SymmetricSum | ex.Constant)


def numbered(kernel: Kernel, names: Sequence[str] | None) -> Kernel:
    """Return the kernel with column numbers in place of column names.

    Parameters
    ----------
    kernel : Kernel
        Any kernel.
    names : list of str or None
        Names of the columns, in their order.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> numbered(Gaussian(1.0).on("age") + Linear().on(0), ["height", "age"])
    Gaussian(scale=1.0).on([1]) + Linear().on([0])
    """
    if isinstance(kernel, On):
        chosen = ex.Dot((ex.Columns(kernel.columns),))
        bound: Any = ex.bind_columns(chosen, None if names is None else list(names))
        return replace(kernel, columns=bound.steps[0].names)
    if isinstance(kernel, After):
        return kernel  # the inner kernel has its own columns
    changed: dict[str, Any] = {}
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        if isinstance(value, Kernel):
            changed[field.name] = numbered(value, names)
        elif isinstance(value, tuple) and value and all(isinstance(k, Kernel) for k in value):
            changed[field.name] = tuple(numbered(part, names) for part in value)
    new = {name: value for name, value in changed.items() if value != getattr(kernel, name)}
    return replace(kernel, **new) if new else kernel


def refuse_uncallable(owner: str, name: str, value: Any) -> None:
    """Raise unless the argument is a function."""
    if not callable(value):
        raise TypeError(f"{owner}: {name}={value!r} must be a function of a block of rows")


# --- text ----------------------------------------------------------------------------------------
#
# How kernels are written down, so that `eval` (and `mercer.kernels.parse`) read them back.
#
# Functions are the exception: they print their qualified name, which does not read back.


def call(kernel: Kernel) -> str:
    """Write a kernel as the call that makes it."""
    arguments = (f"{f.name}={value(getattr(kernel, f.name))}" for f in fields(kernel))
    return f"{type(kernel).__name__}({', '.join(arguments)})"


def in_parentheses(kernel: Kernel, binding: Binding) -> str:
    """Write a kernel, in brackets if it binds more weakly than asked."""
    return repr(kernel) if kernel.binding >= binding else f"({kernel!r})"


def value(parameter: Any) -> str:
    """Write one parameter."""
    if callable(parameter) and not isinstance(parameter, type):
        return name(parameter)
    if isinstance(parameter, float) and parameter == inf:
        return "float('inf')"  # `inf` alone is not a Python name
    return repr(parameter)


def name(function: Any) -> str:
    """Write the qualified name of a function; an object without one writes itself."""
    qualified = getattr(function, "__qualname__", None)
    return repr(function) if qualified is None else f"{function.__module__}.{qualified}"


# --- parameters by name, through any depth: what grid searches reach ------------------------------
#
# A kernel's parameters are its dataclass fields. Parts of sums and products are called k1, k2, ...;
# a parameter of a part is `k1__scale`.


def parts(kernel: Kernel) -> tuple[Kernel, ...]:
    """Return the kernels that this kernel is directly made of."""
    found: list[Kernel] = []
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        if isinstance(value, Kernel):
            found.append(value)
        elif _is_parts(value):
            found.extend(value)
    return tuple(found)


def _own(kernel: Kernel) -> dict[str, Any]:
    """Return the kernel's own parameters; a tuple of kernels is spread as k1, k2, ..."""
    found: dict[str, Any] = {}
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        found.update(_spread(value) if _is_parts(value) else {field.name: value})
    return found


def _deep(kernel: Kernel) -> dict[str, Any]:
    """Return the kernel's own parameters and, as `name__field`, those of its parts."""
    found = _own(kernel)
    for name, value in tuple(found.items()):
        if isinstance(value, Kernel):
            found.update({f"{name}__{inner}": v for inner, v in _deep(value).items()})
    return found


def _replaced(kernel: K, params: dict[str, Any]) -> K:
    """Return a new kernel with these parameters, names as in `get_params`."""
    values = _own(kernel)
    nested: dict[str, dict[str, Any]] = {}
    for name, value in params.items():
        head, _, tail = name.partition("__")
        if head not in values:
            raise _unknown(kernel, name)
        if tail:
            nested.setdefault(head, {})[tail] = value
        else:
            values[head] = value
    for head, inner in nested.items():
        if not isinstance(values[head], Kernel):
            raise _unknown(kernel, f"{head}__{next(iter(inner))}")
        values[head] = _replaced(values[head], inner)
    return _rebuilt(kernel, values) if params else kernel


def _rebuilt(kernel: K, values: dict[str, Any]) -> K:
    arguments: dict[str, Any] = {}
    for field in fields(kernel):
        old = getattr(kernel, field.name)
        is_parts = _is_parts(old)
        arguments[field.name] = (
            tuple(values[name] for name in _spread(old)) if is_parts else values[field.name]
        )
    return type(kernel)(**arguments)


def _spread(kernels: tuple[Kernel, ...]) -> dict[str, Kernel]:
    return {f"k{i}": kernel for i, kernel in enumerate(kernels, start=1)}


def _is_parts(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(v, Kernel) for v in value)


def _unknown(kernel: Kernel, name: str) -> ValueError:
    valid, kind = ", ".join(_deep(kernel)) or "none", type(kernel).__name__
    if name in kernel.alternatives:
        return ValueError(
            f"{kind}: {name!r} is another way to write a new kernel, {kind}({name}=...), no "
            f"parameter of this one; change one of: {valid}"
        )
    return ValueError(f"{kind} has no parameter {name!r}; it has: {valid}")
