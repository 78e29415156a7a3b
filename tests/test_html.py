"""What notebooks show: short, escaped, and without anything from outside."""

import numpy as np
import pytest

import mercer
from mercer import SVC
from mercer.html import matrix_picture
from mercer.kernels import Gaussian, Linear, Precomputed, Sigmoid, Spectrum
from mercer.selection import tune

X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def machine():
    return SVC(Gaussian(1.0)).fit(X, Y)


def test_solutions_are_short(machine):
    assert repr(machine.solution_).startswith("Solution(Dual, SOLVED, ")
    assert len(repr(machine.solution_)) < 100


@pytest.mark.parametrize("name", ["solution_", "certificate_", "kernel_"])
def test_pages_hold_nothing_from_outside(machine, name):
    page = getattr(machine, name)._repr_html_()
    assert page.startswith("<div>")
    assert page.endswith("</div>")
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in page


def test_a_tuning_has_a_page():
    page = tune(SVC(Gaussian(1.0)), X, Y, grid={"C": [0.1, 1.0]}, cv=3)._repr_html_()
    assert "2 points, 3 folds" in page


@pytest.mark.parametrize("kernel", [Gaussian(1.0) + Linear(), Sigmoid(1.0), Linear().on([0])])
def test_kernels_of_numbers_have_a_picture(kernel):
    page = kernel._repr_html_()
    assert "<polyline" in page
    assert "data:image/png;base64," in page


@pytest.mark.parametrize("kernel", [Spectrum(3), Precomputed(), Linear().on(["age"])])
def test_other_kernels_have_their_text(kernel):
    page = kernel._repr_html_()
    assert "<img" not in page
    assert type(kernel).__name__ in page or "Linear" in page


def test_pictures_are_images():
    pytest.importorskip("PIL")
    import base64
    import io

    from PIL import Image

    data = matrix_picture(np.array([[1.0, -1.0], [0.0, 0.5]])).split("base64,")[1].split("'")[0]
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert image.shape == (2, 2, 3)
    assert image[0, 0, 0] > image[0, 0, 2]  # red: positive
    assert image[0, 1, 2] > image[0, 1, 0]  # blue: negative


def test_front_door_has_selection():
    assert mercer.tune is tune
    assert {"tune", "choose", "Tuned"} <= set(dir(mercer))


def test_a_fitted_machine_says_how_it_ended(machine):
    for page in (machine._repr_html_(), machine._repr_mimebundle_()["text/html"]):
        assert "SVC: certified" in page
        assert "solved to the tolerance asked for" in page
        assert machine.certificate_.statement in page
    assert "certified" not in SVC()._repr_html_()


def test_no_page_where_scikit_learn_shows_none(machine):
    from sklearn import config_context

    with config_context(display="text"):
        assert not hasattr(machine, "_repr_html_")
        assert list(machine._repr_mimebundle_()) == ["text/plain"]


def test_what_takes_long_to_judge_is_not_judged_to_be_shown():
    X = np.random.default_rng(0).normal(size=(3100, 2))
    machine = SVC(Gaussian(1.0), C=0.1).fit(X, X[:, 0] > 0)
    assert "made when certificate_ is first read" in machine._repr_html_()
    assert "made when certificate_ is first read" in machine._repr_mimebundle_()["text/html"]
    assert {"certificate_", "predict", "support_"} <= set(dir(machine))
    assert not isinstance(machine._judgement, mercer.Certificate)
    assert machine.certificate_.ok
    assert machine.certificate_.statement in machine._repr_html_()
