"""Function `parse`, which reads a kernel from text, the names of kernels in texts, and tokens."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf
from typing import Any, TypeAlias

from mercer.kernels.algebra import Kernel, Normalized, PolynomialOf, exp, parts, polynomial
from mercer.kernels.families import (
    AllSubsets,
    Anova,
    Bilinear,
    ChiSquared,
    Constant,
    Coregionalized,
    Cosine,
    Gaussian,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Tanimoto,
)
from mercer.kernels.sequences import Spectrum, Subsequence

# --- parse ---------------------------------------------------------------------------------------
#
# Kernels from text: the command line's and the model file's way in. Nothing is ever executed.
#
# ::
#
#     sum      =  product { "+" product }
#     product  =  power { "*" power }
#     power    =  item [ "**" number ]
#     item     =  atom { "[" columns "]" | "." method "(" arguments ")" }
#     atom     =  number | name [ "(" arguments ")" ] | "(" sum ")"
#     columns  =  column { "," column };   column  =  name | string | number [ ":" number ]
#
# Names are those of the kernel classes, in any case and with or without underscores, and `exp`,
# `normalized`, `polynomial(kernel, coefficients)`. What `repr` writes is read back, functions
# aside.

_MAX_LENGTH = 20_000  # characters
_MAX_DEPTH = 40  # brackets within brackets, and kernels within kernels: far below Python's stack
_MAX_COLUMNS = 10_000  # of one range such as 0:100
# evaluations of parts for one entry: a text of 200 characters can ask for 10^20 of them
_MAX_TERMS = 300_000

Value: TypeAlias = Any  # a Kernel, a number, a string, or a list of values


def parse(
    text: str,
    bare: Callable[[str], Kernel | None] | None = None,
    longest: int = _MAX_LENGTH,
) -> Kernel:
    """Read a kernel from its text.

    Parameters
    ----------
    text : str
        For example ``"gaussian(2) + 0.5 * polynomial(2)[age, income]"``.
    bare : callable, optional
        Makes the kernel of a name that stands without brackets; None of it, or no such function,
        leaves the name to its class and the defaults there.
    longest : int
        Most characters that are looked at.

    Returns
    -------
    Kernel

    Raises
    ------
    ParseError
        With the place in the text.

    Examples
    --------
    >>> parse("gaussian(2) + 0.5 * polynomial(2)[age, income]")
    Gaussian(scale=2.0) + 0.5 * Polynomial(degree=2, offset=1.0).on(['age', 'income'])
    >>> parse("matrn(2)")
    Traceback (most recent call last):
    mercer.kernels.parser.ParseError: there is no kernel 'matrn'; did you mean 'matern'?
        matrn(2)
        ^
    """
    if len(text) > longest:
        raise ParseError(f"the text is longer than {longest} characters", text, longest)
    return _Parser(text, bare).whole()


class _Parser:
    """Recursive descent: one method per line of the grammar."""

    def __init__(self, text: str, bare: Callable[[str], Kernel | None] | None) -> None:
        self.text = text
        self.bare = bare
        self.words = list(tokens(text))
        self.index = 0
        self.depth = 0

    # --- words -------------------------------------------------------------------------------

    @property
    def word(self) -> Token:
        return self.words[self.index]

    def take(self) -> Token:
        word = self.word
        self.index += word.kind != "end"
        return word

    def sees(self, *signs: str) -> bool:
        return self.word.kind == "sign" and self.word.text in signs

    def expect(self, sign: str) -> Token:
        if not self.sees(sign):
            raise self.error(f"{sign!r} is expected here", self.word)
        return self.take()

    def error(self, reason: str, word: Token) -> ParseError:
        return ParseError(reason, self.text, word.position)

    def bracketed(self, opening: str, inside: Callable[[], Value], closing: str) -> Value:
        first = self.expect(opening)
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"brackets are nested deeper than {_MAX_DEPTH}", first)
        value = inside()
        self.expect(closing)
        self.depth -= 1
        return value

    def made(self, word: Token, make: Callable[..., Value], *args: Value, **named: Value) -> Value:
        """Call a constructor or operator; add the position to its errors."""
        try:
            value = make(*args, **named)
        except (TypeError, ValueError, OverflowError) as refusal:
            raise self.error(str(refusal), word) from None
        return value

    def wrapped(
        self, word: Token, make: Callable[..., Value], *args: Value, **named: Value
    ) -> Value:
        """Do the same where a chain such as k[0][0][0] nests without a bracket in a bracket."""
        value = self.made(word, make, *args, **named)
        if isinstance(value, Kernel) and _height(value) > _MAX_DEPTH:
            raise self.error(f"kernels are nested deeper than {_MAX_DEPTH}", word)
        if isinstance(value, Kernel) and _terms(value) > _MAX_TERMS:
            raise self.error(f"the kernel has more than {_MAX_TERMS} terms", word)
        return value

    # --- grammar -----------------------------------------------------------------------------

    def whole(self) -> Kernel:
        first = self.word
        value = self.sum()
        if self.sees("-"):
            raise self.error(
                "kernels cannot be subtracted: the rest need not be a kernel", self.word
            )
        if self.word.kind != "end":
            raise self.error(f"{self.word.text!r} is not expected here", self.word)
        return self.kernel(value, first)

    def kernel(self, value: Value, word: Token) -> Kernel:
        if not isinstance(value, Kernel):
            raise self.error("a kernel is expected here; a number c is written constant(c)", word)
        return value

    def sum(self) -> Value:
        value = self.product()
        while self.sees("+"):
            word = self.take()
            value = self.made(word, lambda a, b: a + b, value, self.product())
        return value

    def product(self) -> Value:
        value = self.power()
        while self.sees("*"):
            word = self.take()
            value = self.made(word, lambda a, b: a * b, value, self.power())
        return value

    def power(self) -> Value:
        first = self.word
        value = self.item()
        if self.sees("**"):
            word = self.take()
            value = self.wrapped(word, pow, self.kernel(value, first), self.number())
        return value

    def item(self) -> Value:
        first = self.word
        value = self.atom()
        while self.sees("[", "."):
            word = self.word
            kernel = self.kernel(value, first)
            if self.sees("["):
                value = self.wrapped(word, kernel.on, self.bracketed("[", self.columns, "]"))
            else:
                value = self.method(kernel)
        return value

    def method(self, kernel: Kernel) -> Kernel:
        self.expect(".")
        word = self.take()
        if word.text not in ("on", "normalized"):
            raise self.error("only .on([columns]) and .normalized() are known here", word)
        positional, named = self.bracketed("(", self.arguments, ")")
        made = self.wrapped(word, getattr(kernel, word.text), *positional, **named)
        return self.kernel(made, word)

    def atom(self) -> Value:
        if self.sees("("):
            return self.bracketed("(", self.sum, ")")
        if self.word.kind == "number" or self.sees("-"):
            return self.number()
        word = self.take()
        if word.kind != "name":
            raise self.error("a kernel or a number is expected here", word)
        if word.text == "inf":
            return inf
        if word.text == "float":  # how `repr` writes infinity
            return self.made(word, float, self.bracketed("(", self.string, ")"))
        return self.named(word)

    def named(self, word: Token) -> Value:
        made = None if self.bare is None or self.sees("(") else self.bare(word.text)
        if made is not None:
            return made
        positional, named = self.bracketed("(", self.arguments, ")") if self.sees("(") else ((), {})
        make = maker(word.text, of_kernel=bool(positional) and isinstance(positional[0], Kernel))
        if make is None:
            raise self.error(unknown(word.text), word)
        return self.wrapped(word, make, *positional, **named)

    def arguments(self) -> tuple[list[Value], dict[str, Value]]:
        positional: list[Value] = []
        named: dict[str, Value] = {}
        while not self.sees(")"):
            name = self.keyword()
            if name is None and named:
                raise self.error("arguments without a name come first", self.word)
            if name is None:
                positional.append(self.argument())
            else:
                named[name] = self.argument()
            if not self.sees(")"):
                self.expect(",")
        return positional, named

    def keyword(self) -> str | None:
        follower = self.words[min(self.index + 1, len(self.words) - 1)]
        if self.word.kind != "name" or follower.text != "=" or follower.kind != "sign":
            return None
        name = self.take().text
        self.expect("=")
        return name

    def argument(self) -> Value:
        if self.sees("["):
            return self.bracketed("[", self.values, "]")
        return self.string() if self.word.kind == "string" else self.sum()

    def values(self) -> list[Value]:
        found: list[Value] = []
        while not self.sees("]"):
            found.append(self.argument())
            if not self.sees("]"):
                self.expect(",")
        return found

    def columns(self) -> list[int | str]:
        found = self.column()
        while self.sees(","):
            self.take()
            found += self.column()
        return found

    def column(self) -> list[int | str]:
        word = self.word
        if word.kind == "string":
            return [self.string()]
        if word.kind == "name":
            return [self.take().text]
        start = self.number()
        stop = start
        if self.sees(":"):
            self.take()
            stop = self.number()
        elif isinstance(start, int):
            return [start]
        if not (isinstance(start, int) and isinstance(stop, int)):
            raise self.error("a column is a name or an integer", word)
        if not 0 <= start < stop <= start + _MAX_COLUMNS:
            raise self.error(f"{start}:{stop} is not a range of columns", word)
        return list(range(start, stop))

    def number(self) -> int | float:
        sign = -1 if self.sees("-") and self.take() else 1
        word = self.take()
        if word.kind != "number":
            raise self.error("a number is expected here", word)
        is_whole = word.text.isdigit()
        magnitude: int | float = self.made(word, int if is_whole else float, word.text)
        return sign * magnitude

    def string(self) -> str:
        word = self.take()
        if word.kind != "string":
            raise self.error("a name in quotation marks is expected here", word)
        try:
            return str(literal_eval(word.text))  # the word is a string literal and nothing else
        except (SyntaxError, ValueError) as refusal:
            raise self.error(str(refusal), word) from None


def _terms(kernel: Kernel) -> int:
    """Return how many kernels one entry takes: some are evaluated again for every use."""
    terms = 1 + sum(map(_terms, parts(kernel)))
    if isinstance(kernel, PolynomialOf):
        return terms * max(len(kernel.coefficients), 1)
    return 3 * terms if isinstance(kernel, Normalized) else terms  # k(x, y), k(x, x), k(y, y)


def _height(kernel: Kernel) -> int:
    return 1 + max((_height(part) for part in parts(kernel)), default=0)


# --- names ---------------------------------------------------------------------------------------
#
# The names of kernels in texts: any case, with or without underscores.

# what scikit-learn, LIBSVM and kernlab call them
_ALIASES = {
    "rbf": "gaussian",
    "rbfdot": "gaussian",
    "radial": "gaussian",
    "squaredexponential": "gaussian",
    "poly": "polynomial",
    "polydot": "polynomial",
    "vanilladot": "linear",
    "dot": "linear",
    "laplace": "laplacian",
    "laplacedot": "laplacian",
    "tanh": "sigmoid",
    "tanhdot": "sigmoid",
    "anovadot": "anova",
    "chi2": "chisquared",
    "jaccard": "tanimoto",
    "rq": "rationalquadratic",
}


def plain(name: str) -> str:
    """Write a name in small letters without underscores; other libraries' names become ours."""
    found = name.lower().replace("_", "")
    return _ALIASES.get(found, found)


KERNELS: dict[str, type[Kernel]] = {
    plain(kernel.__name__): kernel
    for kernel in (
        *(Linear, Polynomial, Bilinear, Cosine, AllSubsets, Anova, Sigmoid, Constant),
        *(Gaussian, Laplacian, Matern, RationalQuadratic),
        *(ChiSquared, Intersection, Tanimoto, Spectrum, Subsequence, Precomputed, Coregionalized),
    )
}


def _normalized(kernel: Kernel) -> Kernel:
    if not isinstance(kernel, Kernel):
        raise TypeError("normalized(...) takes a kernel")
    return kernel.normalized()


_FUNCTIONS: dict[str, Callable[..., Kernel]] = {
    "exp": exp,
    "normalized": _normalized,
    "polynomial": polynomial,
}


def maker(name: str, of_kernel: bool) -> Callable[..., Kernel] | None:
    """Find the constructor of a name; `polynomial` of a kernel differs from that of a number."""
    kernel, function = KERNELS.get(plain(name)), _FUNCTIONS.get(plain(name))
    return function or kernel if of_kernel else kernel or function


def unknown(name: str) -> str:
    """Return a message that there is no such kernel, and suggest a similar one."""
    known = sorted({*KERNELS, *_FUNCTIONS})
    near = get_close_matches(plain(name), [*known, *_ALIASES], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"there is no kernel {name!r}; {hint}"


# --- tokens --------------------------------------------------------------------------------------
#
# The words of kernel texts, and the error that points at one of them.

_WORDS = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<string>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<sign>\*\*|[-+*()\[\],.:=])"
)


@dataclass(frozen=True)
class Token:
    """One word: its kind ("number", "name", "string", "sign" or "end"), text and place."""

    kind: str
    text: str
    position: int


class ParseError(ValueError):
    """A text that is not a kernel; shows where.

    Attributes
    ----------
    reason : str
        The error.
    text : str
        The parsed text.
    position : int
        Position of the error, counted from 0.
    """

    def __init__(self, reason: str, text: str, position: int) -> None:
        super().__init__(f"{reason}\n{_pointed(text, position)}")
        self.reason, self.text, self.position = reason, text, position

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str, int]]:
        return ParseError, (self.reason, self.text, self.position)


def tokens(text: str) -> Iterator[Token]:
    """Split a text into words; ends with a word of the kind "end"."""
    position = 0
    while position < len(text):
        match = _WORDS.match(text, position)
        if match is None:
            raise ParseError(f"{text[position]!r} is unexpected here", text, position)
        kind = str(match.lastgroup)
        if kind != "space":
            yield Token(kind, match[0], position)
        position = match.end()
    yield Token("end", "", len(text))


def _pointed(text: str, position: int) -> str:
    """Show the text with a mark under one character, cut to a window if it is long."""
    start, end = max(0, position - 60), position + 20
    before, after = "..." if start else "", "..." if end < len(text) else ""
    # every character that is not plain would move the mark
    shown = "".join(c if c.isprintable() else " " for c in text[start:end])
    return f"    {before}{shown}{after}\n    {' ' * (len(before) + position - start)}^"
