"""What kind a column is, by its entries and, for identifiers, its name."""

import numpy as np
import pytest

from mercer.data import Kind, Table
from mercer.data.kinds import date_of, has_decimal_comma, number_of

N = 200
RNG = np.random.default_rng(0)
COLUMNS = {
    "size": (RNG.normal(size=N), "number"),
    "count": (np.arange(N), "number"),
    "zero_one": (RNG.integers(0, 2, N), "binary"),
    "yes_no": (RNG.choice(["yes", "no"], N), "binary"),
    "town": (RNG.choice(["Ulm", "Bern", "Riga"], N), "category"),
    "code": ([f"row{k}" for k in range(N)], "identifier"),
    "note": ([f"some words of row {k}" for k in range(N)], "text"),
    "id": (np.arange(N) + 7, "identifier"),
    "user_id": (RNG.permutation(N), "identifier"),
    "userId": (RNG.permutation(N), "identifier"),
    "grid": (RNG.permutation(N), "number"),
    "acid": (RNG.permutation(N), "number"),
    "shop_id": (RNG.integers(0, 5, N), "number"),
    "id.": (RNG.normal(size=N), "number"),
    "constant": (np.full(N, 3.0), "number"),
    "nothing": ([None] * N, "number"),
    "day": (np.datetime64("2020-01-01") + np.arange(N), "date"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_kinds(name):
    values, kind = COLUMNS[name]
    assert Table.of({name: values}).kinds[name] is Kind(kind)


def test_many_different_words_are_categories_in_a_large_table():
    words = [f"w{k % 90}" for k in range(360)]
    assert Table.of({"a": words}).kinds["a"] is Kind.CATEGORY
    assert Table.of({"a": [*words[:-1], None]}).kinds["a"] is Kind.IDENTIFIER
    assert Table.of({"a": words[:100]}).kinds["a"] is Kind.IDENTIFIER


def test_numbers_dates_and_decimal_commas():
    assert [number_of(w) for w in (" 1.5 ", "+2", ".5", "5.", "-1e-3")] == [1.5, 2, 0.5, 5, -0.001]
    assert [number_of(w) for w in ("0x10", "1_0", "1,5", "٣", "nan", "", "1e", "--1")] == [None] * 8
    assert number_of("1e400") == np.inf == number_of("Infinity")
    assert date_of("2024-02-29T12:30:15.123456789Z").microsecond == 123456
    assert [
        date_of(w) for w in ("2023-02-29", "2024-1-1", "20240101", "2024-01/01", "0000-01-01")
    ] == [None] * 5
    assert has_decimal_comma("1.234,5") and not has_decimal_comma("1,234.5")
