"""Progress of long work, for people who look at a terminal or a log."""

import numpy as np
import pytest

import mercer
from mercer import SVC
from mercer.kernels import Gaussian
from mercer.progress import ProgressLines, is_shown, seconds_left, show, shown
from mercer.selection import tune

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), RNG.integers(0, 2, 60)


@pytest.fixture
def at_once(monkeypatch):
    """Let every line be due."""
    monkeypatch.setattr("mercer.progress._FIRST", 0.0)
    monkeypatch.setattr("mercer.progress._NEXT", 0.0)


def test_nothing_is_shown_unless_asked_for(at_once, capsys):
    SVC(Gaussian(1.0)).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    assert not is_shown()


def test_fits_say_where_they_are(at_once, capsys):
    with mercer.config(progress=True):
        SVC(Gaussian(1.0), C=1e3).fit(X, Y)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("SVC: step ")
    assert "(goal" in said.err


def test_a_tuning_speaks_for_its_fits(at_once, capsys):
    with mercer.config(progress=True):
        tune(SVC(Gaussian(1.0)), X, Y, grid={"C": [1.0, 10.0]}, cv=3)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("tune: ") for line in lines)
    assert "/2 points" in lines[-1]


def test_an_error_ends_the_display(at_once):
    def fail():
        with mercer.config(progress=True), shown("work"):
            assert is_shown()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        fail()
    assert not is_shown()
    show("nobody listens")


def test_lines_are_rare(capsys):
    lines = ProgressLines("work")
    for _ in range(1000):
        lines.show("going on", None)
    assert capsys.readouterr().err == ""


def test_the_end_is_estimated_from_the_least_measure():
    seconds = np.arange(1.0, 21.0)
    measures = 10.0 ** (-0.1 * seconds) * np.where(seconds % 2, 1.0, 5.0)  # it hovers
    left = seconds_left(seconds, measures, 10.0**-3)
    assert 5 < left < 15
    assert np.isnan(seconds_left([0.0, 1.0], [1.0, 1.0], 1e-3))
    assert np.isnan(seconds_left(seconds, np.ones(20), 1e-3))


@pytest.mark.parametrize("value", [1, "yes", None])
def test_the_setting_is_checked(value):
    with pytest.raises(ValueError, match="progress"), mercer.config(progress=value):
        pass
