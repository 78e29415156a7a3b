"""Pictures of programs hold what the programs say."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from mercer.plots import ForcesDisplay, ImageSetDisplay
from mercer.theory import SmoothProgram, double_well_program, projection_program


def axes():
    return Figure(layout="constrained").subplots()


def test_the_gap_is_between_the_point_and_the_line():
    program = double_well_program()
    shown = ImageSetDisplay.from_program(program, (-1.5, 1.5), ax=axes())
    solution = program.solve()
    assert shown.point_.get_xydata()[0] == pytest.approx([solution.x[0], solution.primal])
    assert shown.bound_.get_xydata()[0] == pytest.approx([0.0, solution.dual], abs=1e-9)
    for line, drawn in zip(shown.lines, shown.lines_, strict=True):
        x, height = drawn.get_data()
        assert height == pytest.approx(line.intercept - line.mu * np.asarray(x))
        assert (shown.f - line.at(shown.g)).min() > -1e-6
    labels = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert "duality gap" in labels
    assert "a gap of 0.9267" in shown.text


def test_a_convex_program_has_no_gap_in_its_picture():
    program = projection_program([2.0, 0.0], [[1, 1]], [1.0])
    shown = ImageSetDisplay.from_program(program, (-1, 3), resolution=30, ax=axes())
    assert "no gap" in shown.text
    assert shown.image_.get_offsets().shape == (900, 2)
    labels = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert "duality gap" not in labels


def test_an_equality_and_a_line_that_supports_nothing():
    program = projection_program([1.0], A_eq=[[1.0]], b_eq=[0.0])
    shown = ImageSetDisplay.from_program(program, (-1, 2), multipliers=[-1.0], ax=axes())
    assert shown.equality
    assert [line.mu for line in shown.lines] == [1.0, -1.0]
    free = SmoothProgram(lambda x: x[0] ** 2, [lambda x: x[0] - 1], n=1, convex=True)
    idle = ImageSetDisplay.from_program(free, (-1, 2), ax=axes())  # the constraint is not active
    assert [line.mu for line in idle.lines] == pytest.approx([0.0, 0.5, 1.0])


def test_arrows_are_the_forces_and_inactive_walls_have_none():
    program = projection_program([2.0, 1.0], [[1, 0], [0, 1]], [1.0, 3.0])
    shown = ForcesDisplay.from_program(program, (-1, 4), resolution=30, ax=axes())
    assert len(shown.walls_) == 2
    assert len(shown.arrows_) == 2
    total = sum(np.array([arrow.U[0], arrow.V[0]]) for arrow in shown.arrows_)
    np.testing.assert_allclose(total, 0.0, atol=1e-9)
    np.testing.assert_allclose(shown.forces.sum(axis=0), 0.0, atol=1e-9)
    rest = ForcesDisplay.from_program(projection_program([0.0, 0.0]), (-1, 1), ax=axes())
    assert not rest.arrows_  # nothing pulls where it is flat


def test_programs_that_have_no_such_picture():
    with pytest.raises(ValueError, match="two variables"):
        ForcesDisplay.from_program(double_well_program(), (-1, 1))
    with pytest.raises(ValueError, match="one constraint"):
        ImageSetDisplay.from_program(projection_program([1.0, 1.0]), (-1, 1))
