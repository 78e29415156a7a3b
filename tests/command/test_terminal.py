"""Text for terminals and CSV files: nothing is lost, nothing drives the terminal."""

import csv
import io

import numpy as np
import pytest

from mercer.command.answers import csv_block, csv_field, csv_header
from mercer.command.results import stem_of
from mercer.command.tables import pairs
from mercer.command.terminal import aligned, did_you_mean, printable


def back(data):
    return list(csv.reader(io.StringIO(data.decode("utf-8"), newline="")))


def test_numbers_read_back_exactly():
    values = np.array([0.1, 1e300, -0.0, 5e-324, 1 / 3, np.pi, 1e16, np.inf])
    read = [float(row[0]) for row in back(csv_block([values]))]
    assert np.array_equal(np.array(read), values)
    assert np.signbit(read[2])


def test_words_read_back_exactly():
    words = ["a", 'say "x"', "a,b", "line\nbreak", " blank ", "\u00fc\u4e2d", ""]
    found = back(csv_block([np.array(words, object), np.arange(len(words))]))
    assert [row[0] for row in found] == words
    assert back(csv_header(words)) == [words]


def test_gaps_are_empty():
    block = csv_block(
        [np.array([1.5, np.nan]), np.array(["a", None], object), np.array(["NaT"] * 2, "M8[us]")]
    )
    assert block == b"1.5,a,\n,,\n"


def test_no_rows_are_no_lines():
    assert csv_block([np.array([])]) == b""


def test_truth_values_and_fixed_width_words():
    assert csv_block([np.array([True, False]), np.array(["x", "yy"])]) == b"True,x\nFalse,yy\n"
    assert csv_field(None) == ""


def test_control_characters_are_escaped():
    assert printable("a\tb\x1b[0m\u202e\udce9") == r"a\tb\x1b[0m\u202e\udce9"
    assert "\n" not in aligned([("a\nb", "c\nd")])


def test_near_names():
    assert did_you_mean("tagret", ["target", "age"]) == "did you mean 'target'?"
    assert did_you_mean("zzz", [f"x{j}" for j in range(100)]).endswith(", ...")


@pytest.mark.parametrize(
    ("data", "stem"),
    [("a/b.csv", "b"), ("b.tar.csv.xz", "b.tar"), ("-", "model"), (".csv", ".csv"), ("x", "x")],
)
def test_names_of_models(data, stem):
    assert stem_of(data) == stem


def test_pairs_are_refused_in_words():
    with pytest.raises(Exception, match="must be NAME=VALUE"):
        pairs(["zip"], "--kind")


def test_formulas_of_spreadsheets():
    labels = np.array(["=1+1", "+x", "-x", "@x", "\tx", "x=1", '="a"'], object)
    assert [row[0] for row in back(csv_block([labels]))] == labels.tolist()
    safe = [row[0] for row in back(csv_block([labels], spreadsheet=True))]
    assert safe == ["'=1+1", "'+x", "'-x", "'@x", "'\tx", "x=1", '\'="a"']
    signs = np.array(["+", "-", "-1", "+1e5", "-a"], object)
    assert csv_block([signs], spreadsheet=True) == b"+\n-\n-1\n+1e5\n'-a\n"
    assert csv_block([np.array([-1.5]), np.array([-2])], spreadsheet=True) == b"-1.5,-2\n"
    assert csv_header(["=x", "y"], spreadsheet=True) == b"'=x,y\n"
