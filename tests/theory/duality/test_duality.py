"""Duality: programs against closed forms, brute force over active sets, and machines."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from mercer import SVC
from mercer.kernels import Linear
from mercer.theory import (
    DualValue,
    ProgramStatus,
    QuadraticProgram,
    SmoothFunction,
    SmoothProgram,
    double_well_program,
    hard_margin_program,
    image_set,
    least_squares_projection,
    projection_program,
    relative_entropy_projection,
    supporting_line,
)

seeds = st.integers(0, 2**31)
few = settings(max_examples=30, deadline=None)


def random_program(seed, rank=None):
    """Draw a feasible quadratic program: the constraints are those of some point."""
    draw = np.random.default_rng(seed)
    n, s, k = draw.integers(1, 5), draw.integers(0, 6), draw.integers(0, 3)
    B = draw.normal(size=(n if rank is None else min(rank, n), n))
    inside = draw.normal(size=n)
    A, E = draw.normal(size=(s, n)), draw.normal(size=(min(k, n - 1), n))
    b = A @ inside + draw.exponential(size=s)
    return QuadraticProgram(B.T @ B, draw.normal(size=n), A, b, E, E @ inside), inside


def brute_force(program):
    """Return the least objective over all sets of constraints taken as equations."""
    best, s = np.inf, program.n_inequalities
    for chosen in chain.from_iterable(combinations(range(s), r) for r in range(s + 1)):
        A = np.vstack([program.A_eq, program.A_ub[list(chosen)]])
        b = np.concatenate([program.b_eq, program.b_ub[list(chosen)]])
        system = np.block([[program.P, A.T], [A, np.zeros((len(A), len(A)))]])
        found = np.linalg.lstsq(system, np.concatenate([-program.q, b]), rcond=None)[0]
        x = found[: program.n]
        off = np.abs(system @ found - np.concatenate([-program.q, b])).max()
        if off < 1e-8 and program.inequalities(x).max(initial=-1.0) < 1e-9:
            best = min(best, program.objective(x))
    return best


# --- quadratic programs --------------------------------------------------------------------------


@few
@given(seeds)
def test_answers_are_those_of_brute_force(seed):
    program, _ = random_program(seed)
    solution = program.solve()
    assert solution.status is ProgramStatus.OPTIMAL
    assert solution.primal == pytest.approx(brute_force(program), abs=1e-7)
    assert abs(solution.gap) <= 1e-7 * (1 + abs(solution.primal))
    assert solution.kkt.ok
    assert "this is an optimum" in str(solution)
    np.testing.assert_allclose(
        program.forces(solution.x, solution.lam, solution.nu).sum(0), 0, atol=1e-6
    )


@few
@given(seeds, st.integers(0, 2))
def test_flat_objectives_are_solved_or_fall_for_ever(seed, rank):
    program, _ = random_program(seed, rank)
    solution = program.solve()
    assert solution.status in (ProgramStatus.OPTIMAL, ProgramStatus.UNBOUNDED)
    if rank == 0:  # a linear program
        other = linprog(
            program.q,
            program.A_ub,
            program.b_ub,
            program.A_eq,
            program.b_eq,
            bounds=(None, None),
        )
        # feasible as drawn; SciPy calls some that fall for ever infeasible instead
        assert (other.status in (2, 3)) == (solution.status is ProgramStatus.UNBOUNDED)
        if other.status == 0:
            assert solution.primal == pytest.approx(other.fun, abs=1e-6)


@few
@given(seeds)
def test_weak_duality_holds_for_any_multipliers_and_any_feasible_point(seed):
    program, inside = random_program(seed)
    draw = np.random.default_rng(seed)
    lam = draw.exponential(size=program.n_inequalities) * 10.0 ** draw.integers(-2, 3)
    nu = draw.normal(size=program.n_equalities)
    bound = program.dual(lam, nu)
    assert bound.exact
    assert bound.value <= program.objective(inside) + 1e-9 * (1 + abs(bound.value))
    # the closed form is the infimum, and it is taken where it says
    assert program.lagrangian(bound.x, lam, nu) == pytest.approx(bound.value, rel=1e-6, abs=1e-6)
    found = minimize(lambda x: program.lagrangian(x, lam, nu), np.zeros(program.n))
    assert bound.value <= found.fun + 1e-6 * (1 + abs(found.fun))
    # and it is concave
    other = 2 * draw.exponential(size=program.n_inequalities)
    middle = program.dual((lam + other) / 2, nu).value
    ends = (bound.value + program.dual(other, nu).value) / 2
    assert middle >= ends - 1e-7 * (1 + abs(ends))


@few
@given(seeds)
def test_what_is_infeasible_is_proven_to_be(seed):
    program, _ = random_program(seed)
    draw = np.random.default_rng(seed)
    a = draw.normal(size=program.n)
    A, b = np.vstack([program.A_ub, a, -a]), np.append(program.b_ub, [0.0, -1.0])  # a'x in [1, 0]
    broken = QuadraticProgram(program.P, program.q, A, b, program.A_eq, program.b_eq)
    solution = broken.solve()
    assert solution.status is ProgramStatus.INFEASIBLE
    assert solution.primal == np.inf
    lam, nu = solution.lam, solution.nu
    assert lam.min() >= 0
    # the constraints, added up with these prices, say 0 <= a negative number
    np.testing.assert_allclose(A.T @ lam + program.A_eq.T @ nu, 0.0, atol=1e-8)
    assert b @ lam + program.b_eq @ nu < -1e-9
    assert not broken.slater().holds


@few
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=4), st.floats(-2, 2), seeds)
def test_projections_on_half_spaces(point, offset, seed):
    """x = p - max(0, a'p - c) a / a'a, and the multiplier is max(0, a'p - c) / a'a."""
    p = np.array(point)
    a = np.random.default_rng(seed).normal(size=len(p)) + 0.1
    solution = projection_program(p, [a], [offset]).solve()
    price = max(0.0, a @ p - offset) / (a @ a)
    np.testing.assert_allclose(solution.x, p - price * a, atol=1e-8)
    np.testing.assert_allclose(solution.lam, [price], atol=1e-8)
    assert solution.primal == pytest.approx(price**2 * (a @ a) / 2, abs=1e-8)


@few
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5))
def test_projections_on_the_simplex(point):
    n = len(point)
    program = projection_program(point, -np.eye(n), np.zeros(n), np.ones((1, n)), [1.0])
    solution = program.solve()
    np.testing.assert_allclose(solution.x, least_squares_projection(point), atol=1e-7)
    assert solution.status is ProgramStatus.OPTIMAL


@pytest.mark.parametrize("seed", range(4))
def test_the_widest_margin_is_that_of_the_machine(seed):
    """Three points, and ten: w, b and the dual coefficients."""
    draw = np.random.default_rng(seed)
    count = 3 if seed < 2 else 10
    X = draw.normal(size=(count, 2))
    y = np.where(np.arange(count) < count // 2, -1, 1)
    X[y > 0] += 4.0
    solution = hard_margin_program(X, y).solve()
    machine = SVC(Linear(), C=np.inf, tol=1e-10).fit(X, y)
    alpha = np.zeros(count)
    alpha[machine.support_] = np.abs(np.ravel(machine.dual_coef_))
    np.testing.assert_allclose(solution.lam, alpha, atol=1e-6)
    w = (alpha * y) @ X
    np.testing.assert_allclose(solution.x, [*w, np.ravel(machine.intercept_)[0]], atol=1e-6)
    # the dual of the text: sum alpha - |sum alpha y x|^2 / 2
    assert solution.dual == pytest.approx(alpha.sum() - w @ w / 2)
    assert solution.primal == pytest.approx(solution.dual)
    inseparable = hard_margin_program([[0.0], [1.0], [2.0]], [1, -1, 1]).solve()
    assert inseparable.status is ProgramStatus.INFEASIBLE


@pytest.mark.parametrize("length", [1e-100, 1e-8, 1.0, 1e8, 1e100])
@pytest.mark.parametrize("price", [1e-50, 1.0, 1e50])
def test_units_do_not_matter(length, price):
    P, q = price * np.eye(2), -price * length * np.array([2.0, 0.0])
    program = QuadraticProgram(P, q, [[1, 1]], [length])
    solution = program.solve()
    assert solution.status is ProgramStatus.OPTIMAL
    np.testing.assert_allclose(solution.x / length, [1.5, -0.5], atol=1e-9)
    np.testing.assert_allclose(solution.lam / (length * price), [0.5], atol=1e-9)


@pytest.mark.parametrize("curves", [(1, 1e-12), (1, 1e12), (1e-100, 1e100)])
def test_curvatures_far_apart_are_not_taken_for_flat(curves):
    solution = QuadraticProgram(np.diag(curves), [1, 1], [[1, 1]], [10.0]).solve()
    assert solution.status is ProgramStatus.OPTIMAL
    np.testing.assert_allclose(solution.x, -1 / np.array(curves))


def test_rows_of_zeros_repeated_rows_and_dependent_equalities():
    empty = QuadraticProgram([[1.0]], [1.0], [[0.0]], [0.0]).solve()
    assert empty.status is ProgramStatus.OPTIMAL
    assert (
        QuadraticProgram([[1.0]], [1.0], [[0.0]], [-1.0]).solve().status is ProgramStatus.INFEASIBLE
    )
    twice = projection_program([0.0, 0.0], A_eq=[[1, 1], [2, 2]], b_eq=[1, 2]).solve()
    np.testing.assert_allclose(twice.x, [0.5, 0.5])
    same = projection_program([2.0], [[1.0], [1.0]], [1.0, 1.0]).solve()
    assert same.status is ProgramStatus.OPTIMAL
    assert same.lam.sum() == pytest.approx(1.0)
    fixed = projection_program([5.0], A_eq=[[1.0]], b_eq=[2.0]).solve()
    assert (fixed.x, fixed.nu) == (pytest.approx([2.0]), pytest.approx([3.0]))


# --- conditions ----------------------------------------------------------------------------------


def test_each_condition_is_named_when_it_is_broken():
    program = projection_program([2.0, 0.0], [[1, 0], [0, 1]], [1.0, 1.0], [[1, 1]], [1.0])
    x, lam, nu = [1.0, 0.0], [1.0, 0.0], [0.0]
    assert program.kkt(x, lam, nu).violated == ()
    assert program.kkt(x, [0.5, 0.0], nu).violated == ("stationarity",)
    assert "inequalities" in program.kkt([1.5, -0.5], lam, nu).violated
    assert "equalities" in program.kkt([1.0, 0.5], lam, nu).violated
    assert program.kkt(x, [0.0, -1.0], [1.0]).violated == ("signs", "slackness")
    assert "slackness" in program.kkt(x, [1.0, 0.5], nu).violated
    assert "do not hold: stationarity" in str(program.kkt(x, [0.5, 0.0], nu))
    for wrong in ([0.0, 1.0], [1.0, 1.0]):
        judged = program.judge(wrong, lam, nu)
        assert judged.status is not ProgramStatus.OPTIMAL
    assert program.judge([0.5, 0.5], lam, nu).status is ProgramStatus.GAP  # feasible, not optimal
    assert program.judge([3.0, 3.0], lam, nu).primal == np.inf


def test_multiples_of_constraints_do_not_matter():
    for factor in (1e-9, 1.0, 1e9):
        program = projection_program([2.0, 0.0], [[factor, 0]], [factor])
        assert program.kkt([1.0, 0.0], [1 / factor]).ok
        assert not program.kkt([1.001, 0.0], [1 / factor]).ok


# --- smooth programs -----------------------------------------------------------------------------


def test_a_linear_objective_on_a_disc():
    """min x + y in the disc of radius sqrt 2: at (-1, -1), with the multiplier 1/2."""
    program = SmoothProgram(lambda x: x[0] + x[1], [lambda x: x @ x - 2], n=2, convex=True)
    solution = program.solve()
    assert solution.status is ProgramStatus.OPTIMAL
    np.testing.assert_allclose(solution.x, [-1, -1], atol=1e-6)
    np.testing.assert_allclose(solution.lam, [0.5], atol=1e-6)
    # theta(lam) = -1/(2 lam) - 2 lam
    for lam in (0.1, 0.5, 3.0):
        assert program.dual([lam]).value == pytest.approx(-1 / (2 * lam) - 2 * lam, rel=1e-6)
    assert program.dual([0.0]).value == -np.inf
    slater = program.slater()
    assert slater.holds
    assert program.inequalities(slater.x).max() < 0
    assert "no duality gap" in slater.statement


@few
@given(seeds)
def test_smooth_and_quadratic_programs_agree(seed):
    program, _ = random_program(seed)
    smooth = SmoothProgram(
        SmoothFunction(program.objective, program.gradient),
        [lambda x, i=i: program.inequalities(x)[i] for i in range(program.n_inequalities)],
        [lambda x, j=j: program.equalities(x)[j] for j in range(program.n_equalities)],
        n=program.n,
        convex=True,
    )
    exact, found = program.solve(), smooth.solve(tol=1e-5)
    assert found.status is ProgramStatus.OPTIMAL
    np.testing.assert_allclose(found.x, exact.x, atol=1e-5)
    assert found.dual == pytest.approx(exact.dual, abs=1e-5)


def test_relative_entropy_keeps_probabilities_positive_without_being_asked():
    """Shashua, lecture 2: minimize D(f || p) under the sum alone; the multiplier is sum f - 1."""
    f = np.array([3.0, 1.0, 0.5])
    program = SmoothProgram(
        SmoothFunction(lambda p: -f @ np.log(p) + p.sum(), lambda p: 1 - f / p),
        [],
        [SmoothFunction(lambda p: p.sum() - 1, np.ones_like)],
        n=3,
        convex=True,
        bounds=(1e-3, 2.0),
    )
    solution = program.solve()
    assert solution.status is ProgramStatus.OPTIMAL
    np.testing.assert_allclose(solution.x, relative_entropy_projection(f), atol=1e-6)
    assert solution.nu[0] == pytest.approx(f.sum() - 1, abs=1e-5)


def test_without_slaters_condition_multipliers_run_away():
    """min x subject to x^2 <= 0: theta(lam) = -1/(4 lam) comes near to p* = 0, and never there."""
    program = SmoothProgram(lambda x: x[0], [lambda x: x[0] ** 2], n=1, convex=True)
    assert not program.slater().holds
    for lam in (1.0, 10.0, 1000.0):
        assert program.dual([lam]).value == pytest.approx(-1 / (4 * lam), rel=1e-5)
    assert not program.kkt([0.0], [1e3]).ok
    solution = program.solve()
    assert abs(solution.x[0]) < 1e-6
    assert solution.lam[0] > 1e5


def test_what_is_not_found_is_not_called_infeasible():
    program = SmoothProgram(lambda x: x[0], [lambda x: x[0] ** 2 + 1], n=1, convex=True)
    assert program.solve().status is ProgramStatus.NOT_FOUND
    falls = SmoothProgram(lambda x: x[0], n=1, convex=True)
    assert falls.solve().status is ProgramStatus.INACCURATE
    assert falls.dual().value == -np.inf


# --- a real gap ----------------------------------------------------------------------------------


@pytest.mark.parametrize("tilt", [0.2, 1.0])
def test_two_valleys_have_a_gap(tilt):
    """p* by the roots of the derivative, d* = 0 in closed form, both by brute force on a grid."""
    program = double_well_program(tilt)
    solution = program.solve()
    roots = np.roots([4.0, 0.0, -4.0, -tilt])
    roots = np.append(roots[np.abs(roots.imag) < 1e-12].real, 0.0)
    primal = min(program.objective([r]) for r in roots if r <= 0)
    assert solution.primal == pytest.approx(primal, abs=1e-9)
    assert solution.dual == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(solution.lam, [tilt], atol=1e-4)
    assert solution.status is ProgramStatus.GAP
    assert "duality gap" in str(solution)
    x = np.linspace(-2, 2, 4001)
    f = (x**2 - 1) ** 2 - tilt * x
    assert f[x <= 0].min() == pytest.approx(primal, abs=1e-6)
    bounds = [(f + mu * x).min() for mu in np.linspace(0, 10 * tilt, 501)]
    assert max(bounds) == pytest.approx(0.0, abs=1e-6)  # no multiplier proves more


def test_a_concave_objective_on_an_interval():
    """min -x^2 on [0, 2] with x <= 1: p* = -1, theta(mu) = min(-mu, mu - 4), d* = -2."""
    program = SmoothProgram(
        lambda x: -(x[0] ** 2), [lambda x: x[0] - 1], n=1, convex=False, bounds=(0, 2)
    )
    for mu in (0.0, 1.0, 2.0, 5.0):
        assert program.dual([mu]).value == pytest.approx(min(-mu, mu - 4), abs=1e-8)
    solution = program.solve()
    assert (solution.primal, solution.dual) == (pytest.approx(-1.0), pytest.approx(-2.0))
    np.testing.assert_allclose(solution.lam, [2.0], atol=1e-6)
    # the conditions hold here, and prove nothing: they are not sufficient without convexity
    assert solution.kkt.ok
    assert "not sufficient" in solution.kkt.statement
    assert solution.status is ProgramStatus.GAP


def test_a_gap_in_the_plane_with_an_equality():
    program = SmoothProgram(
        lambda x: (x[0] ** 2 - 1) ** 2 + x[1] ** 2,
        equalities=[lambda x: x[0] + x[1]],
        n=2,
        convex=False,
        bounds=(-2, 2),
        resolution=41,
    )
    solution = program.solve()
    # on the line x1 = -x0: x^4 - x^2 + 1, least at x^2 = 1/2
    assert solution.primal == pytest.approx(0.75, abs=1e-6)
    x = np.linspace(-2, 2, 401)
    f = (x[:, None] ** 2 - 1) ** 2 + x**2
    best = max((f + nu * (x[:, None] + x)).min() for nu in np.linspace(-2, 2, 81))
    assert solution.dual == pytest.approx(best, abs=1e-4)
    assert solution.gap > 0.5


# --- the plane of g and f ------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.0, 2.0])
def test_supporting_lines_are_below_the_image_set_and_touch_it(mu):
    program = double_well_program()
    image, line = image_set(program, (-2, 2), 801), supporting_line(program, mu)
    assert (image.f - line.at(image.g)).min() > -1e-9
    assert line.at(line.touches[0]) == pytest.approx(line.touches[1])
    assert line.at(0.0) == line.intercept == pytest.approx(program.dual([mu]).value)


def test_a_convex_program_touches_where_its_answer_is():
    program = projection_program([2.0, 0.0], [[1, 1]], [1.0])
    solution = program.solve()
    line = supporting_line(program, solution.lam[0])
    np.testing.assert_allclose(line.touches, [0.0, solution.primal], atol=1e-8)
    image = image_set(program, (-2, 3), 60)
    assert (image.f - line.at(image.g)).min() > -1e-9
    flat = QuadraticProgram([[0.0]], [-1.0], [[1.0]], [0.0])
    assert supporting_line(flat, 0.5).touches is None
    assert supporting_line(flat, 0.5).intercept == -np.inf
    assert supporting_line(flat, 1.0).intercept == 0.0


# --- refusals ------------------------------------------------------------------------------------


def test_programs_that_cannot_be():
    with pytest.raises(ValueError, match="symmetric"):
        QuadraticProgram([[1, 1], [0, 1]], [0, 0])
    with pytest.raises(ValueError, match="come together"):
        QuadraticProgram([[1.0]], [0.0], A_ub=[[1.0]])
    with pytest.raises(ValueError, match="b_eq"):
        QuadraticProgram([[1.0]], [0.0], A_eq=[[1.0, 2.0]], b_eq=[1.0])
    with pytest.raises(ValueError, match="q must hold finite"):
        QuadraticProgram([[1.0]], [np.nan])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        QuadraticProgram([[-1.0]], [0.0]).solve()
    assert QuadraticProgram([[-1.0]], [0.0]).dual().value == -np.inf
    program = projection_program([1.0], [[1.0]], [0.0])
    with pytest.raises(ValueError, match=r"lam\[0\]=-1 is negative"):
        program.dual([-1.0])
    with pytest.raises(ValueError, match="lam must be 1"):
        program.dual([1.0, 2.0])
    with pytest.raises(ValueError, match="x must be 1"):
        program.kkt([1.0, 2.0])
    with pytest.raises(ValueError, match="tol"):
        program.solve(tol=0)
    with pytest.raises(ValueError, match="needs bounds"):
        SmoothProgram(np.sum, n=1, convex=False)
    with pytest.raises(ValueError, match="low < high"):
        SmoothProgram(np.sum, n=1, convex=True, bounds=(1, 0))
    with pytest.raises(ValueError, match="points; at most"):
        SmoothProgram(np.sum, n=3, convex=False, bounds=(0, 1), resolution=100)
    with pytest.raises(TypeError, match="a function of x"):
        SmoothProgram(3.0, n=1, convex=True)
    with pytest.raises(ValueError, match="one constraint"):
        image_set(projection_program([1.0]), (0, 1))
    with pytest.raises(TypeError, match="needs a QuadraticProgram"):
        supporting_line("program", 1.0)
    with pytest.raises(ValueError, match="labels"):
        hard_margin_program([[1.0]], [2])


@pytest.mark.parametrize("size", [1e-150, 1e-9, 1.0, 1e100])
def test_quadratic_programs_do_not_depend_on_the_unit(size):
    """Walls through the origin say nothing of how long the answer is."""
    program = projection_program([0.0, 0.0, size], [[0.2, -0.1, 0.7]], [0.0])
    solution = program.solve()
    assert solution.status is ProgramStatus.OPTIMAL
    price = 0.7 * size / 0.54
    np.testing.assert_allclose(solution.lam, [price], rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-150, 1e-12, 1.0, 1e100])
def test_smooth_programs_do_not_depend_on_the_unit(unit):
    program = SmoothProgram(
        lambda x: unit * ((x - 1) @ (x - 1)), [lambda x: unit * (x[0] - 0.5)], n=2, convex=True
    )
    solution = program.solve()
    assert solution.status is ProgramStatus.OPTIMAL
    np.testing.assert_allclose(solution.x, [0.5, 1.0], atol=1e-6)


def test_a_search_that_ends_on_a_slope_bounds_nothing(monkeypatch):
    program = SmoothProgram(lambda x: (x - 1) @ (x - 1), n=2, convex=True)
    stuck = DualValue(2.0, np.zeros(2), exact=False)
    monkeypatch.setattr(program, "infimum", lambda lam, nu: stuck)
    assert program.judge([0.0, 0.0]).status is ProgramStatus.INACCURATE


def test_functions_that_are_no_numbers_are_refused_in_words():
    with pytest.raises(ValueError, match="must return one number"):
        SmoothProgram(lambda x: x, n=2, convex=True).solve()
    box = {"n": 1, "convex": False, "bounds": (-1, 1), "resolution": 5}
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match=r"finite in the whole box|at which it is a number"),
    ):
        SmoothProgram(lambda x: np.log(x[0]), **box).solve()
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="finite in the whole box"):
        SmoothProgram(lambda x: np.sqrt(x[0] + 0.5), **box).solve()


@pytest.mark.parametrize(
    ("objective", "constraints", "n"),
    [
        (lambda x: x[0], [lambda x: x[0] ** 2], 1),
        (lambda x: 1e-3 * x[0], [lambda x: 1e8 * x[0] ** 2], 1),
        (lambda x: -1e6 * x[0], [SmoothFunction(lambda x: x[0] ** 4, lambda x: 4 * x**3)], 1),
        (lambda x: (x[0] - 1) ** 2, [lambda x: max(x[0], 0.0) ** 3], 1),
        # two disks that touch: their normals are parallel, and the slope is across
        (
            lambda x: x[1],
            [lambda x: (x[0] - 1) ** 2 + x[1] ** 2 - 1, lambda x: (x[0] + 1) ** 2 + x[1] ** 2 - 1],
            2,
        ),
    ],
)
def test_conditions_do_not_hold_where_no_multiplier_exists(objective, constraints, n):
    solution = SmoothProgram(objective, constraints, n=n, convex=True).solve()
    assert "multipliers" in solution.kkt.violated, str(solution)
    assert not solution.kkt.ok


def test_multipliers_of_disks_of_any_size_hold():
    for radius in (1e-3, 1.0, 1e3):
        disk = SmoothProgram(
            lambda x: x[0] + 2 * x[1],
            [lambda x, r=radius: (x[0] - 3) ** 2 + x[1] ** 2 - r**2],
            n=2,
            convex=True,
            start=(3.0, 0.0),
        )
        solution = disk.solve()
        assert solution.kkt.ok, str(solution)
        assert solution.lam[0] == pytest.approx(np.sqrt(5) / (2 * radius), rel=1e-4)
