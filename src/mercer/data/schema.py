"""What the rows of a table look like, without the rows: names, kinds, how the file was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mercer.data.cells import MISSING
from mercer.data.column import Parsed
from mercer.data.errors import DataError
from mercer.data.kinds import Kind, kind_named


@dataclass(frozen=True)
class Schema:
    """Names and kinds of columns, and how the file was written that they were read from.

    `read_blocks` reads new rows by the schema of the training rows, so that a column is what it
    was then, whatever the new entries look like.

    Attributes
    ----------
    kinds : dict of str to Kind
        Columns in order.
    parsed : dict of str to {"number", "word", "date"}
        What the entries of a file are read as, before they become that kind.
    format : str
        Of the file: "csv", "parquet", "jsonl", "arff", "libsvm", "npz"; nothing for tables
        made in memory.
    missing : tuple of str
        Words that stand for a missing entry.
    decimal : str
        The decimal point of numbers.

    Examples
    --------
    >>> from mercer.data import Table
    >>> schema = Table.of({"age": [31, 40, 52], "town": ["Ulm", "Bern", "Riga"]}).schema
    >>> schema.names
    ['age', 'town']
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    kinds: dict[str, Kind] = field(default_factory=dict)
    parsed: dict[str, Parsed] = field(default_factory=dict)
    format: str = ""
    missing: tuple[str, ...] = MISSING
    decimal: str = "."

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.kinds)

    def with_columns(self, kinds: Mapping[str, Kind], parsed: Mapping[str, Parsed]) -> Schema:
        """Return the schema for other columns of such a file."""
        return replace(self, kinds=dict(kinds), parsed=dict(parsed))

    def drop(self, *names: str) -> Schema:
        """Leave columns out."""
        kinds = {name: kind for name, kind in self.kinds.items() if name not in names}
        return self.with_columns(kinds, {name: self.parsed[name] for name in kinds})

    def without_identifiers(self) -> Schema:
        """Leave out columns that no model learns from: new rows need not have them."""
        return self.drop(*(n for n, kind in self.kinds.items() if kind is Kind.IDENTIFIER))

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as lists and words, for JSON."""
        return {
            "names": self.names,
            "kinds": [kind.value for kind in self.kinds.values()],
            "parsed": [self.parsed[name] for name in self.kinds],
            "format": self.format,
            "missing": list(self.missing),
            "decimal": self.decimal,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Schema:
        """Make a schema of what `to_dict` returned; what is not of that form is refused."""
        try:
            names, kinds, parsed = ([*values[key]] for key in ("names", "kinds", "parsed"))
            words = [*names, *kinds, *parsed, *values["missing"], values["format"]]
            regular = all(isinstance(word, str) for word in words)
            regular = regular and len(names) == len(kinds) == len(parsed) == len(set(names))
            regular = regular and set(parsed) <= {"number", "word", "date"}
            if not regular or values["decimal"] not in (".", ","):
                raise ValueError("names, kinds and parsed do not fit together")
            return Schema(
                dict(zip(names, map(kind_named, kinds), strict=True)),
                dict(zip(names, parsed, strict=True)),
                values["format"],
                tuple(values["missing"]),
                values["decimal"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"this is no schema of a table ({error})") from error
