"""Every bound of the theory against ten thousand draws: how often does what it promises fail?

Each simulation knows the true error of every hypothesis exactly, and takes the one that does worst,
not one that a learner happens to find. A bound that holds for all hypotheses at once must survive
that. The guide has a table of these figures; print them with `pytest -s`.
"""

import math
from itertools import product

import numpy as np
import pytest

from mercer import SVC, AxisAlignedRectangle
from mercer.kernels import Linear
from mercer.theory import (
    agnostic_sample_size,
    double_sampling_error,
    double_sampling_size,
    finite_class_error,
    hoeffding,
    machine_bound,
    margin_dimension,
    margin_error,
    novikoff,
    realisable_sample_size,
    rectangle_sample_size,
    relative_entropy,
    sauer,
    vc_error,
)

DRAWS = 10_000


def in_parts(draws=DRAWS, part=1000):
    """Count up to the number of draws in parts that fit into memory."""
    return [part] * (draws // part)


# --- boxes -----------------------------------------------------------------------------------


def box_errors(rng, m, draws):
    """True errors of the tightest box: uniform points of the unit square, target [0.2, 0.8]^2."""
    errors = []
    for part in in_parts(draws, min(draws, 1000)):
        X = rng.uniform(size=(part, m, 2))
        inside = np.all((X > 0.2) & (X < 0.8), axis=2)
        low = np.where(inside[..., None], X, np.inf).min(axis=1)
        high = np.where(inside[..., None], X, -np.inf).max(axis=1)
        held = np.prod(np.maximum(high - low, 0.0), axis=1)
        errors.append(0.36 - np.where(np.isfinite(held), held, 0.0))
    return np.concatenate(errors)


def test_the_machine_is_the_simulated_learner():
    X = np.random.default_rng(3).uniform(size=(30, 2))
    machine = AxisAlignedRectangle().fit(X, np.all((X > 0.2) & (X < 0.8), axis=1))
    held = np.prod(machine.high_ - machine.low_)
    np.testing.assert_allclose(0.36 - held, box_errors(np.random.default_rng(3), 30, 1)[0])
    assert machine.consistent_


def rectangle(delta, error=0.1, share=1.0):
    m = int(share * rectangle_sample_size(error, delta).value)
    return np.mean(box_errors(np.random.default_rng(0), m, DRAWS) > error)


def double_sampling(delta, error=0.2):
    m = int(double_sampling_size(4, error, delta).value)
    assert double_sampling_error(4, m, delta).value <= error
    return np.mean(box_errors(np.random.default_rng(5), m, DRAWS) > error)


# --- finite classes: thresholds on uniform points --------------------------------------------


def thresholds(count):
    return (np.arange(count) + 0.5) / count


def worst_consistent(rng, m, count, target=0.51):
    """The largest true error of a threshold that agrees with all m examples."""
    t = thresholds(count)
    X = rng.uniform(size=(DRAWS, m))
    below = np.where(target > X, X, 0.0).max(axis=1)
    above = np.where(target <= X, X, 1.0).min(axis=1)
    consistent = (t > below[:, None]) & (t <= above[:, None])
    return np.where(consistent, np.abs(t - target), 0.0).max(axis=1)


def observed_errors(rng, m, count, noise):
    """True and observed errors of all thresholds, (count,) and (DRAWS, count), with noisy labels.

    The examples between two neighbouring thresholds are interchangeable: their numbers, and the
    numbers of positive ones, are multinomial, and say all.
    """
    t, target = thresholds(count), 0.5
    weight = np.diff(np.concatenate([[0.0], t, [1.0]]))
    middle = np.cumsum(weight) - weight / 2
    share = np.where(np.abs(middle - target) < weight / 2, 0.5, middle > target)
    positive = noise + (1 - 2 * noise) * share  # probability of a positive label in each cell
    cells = rng.multinomial(m, weight, size=DRAWS)
    ones = rng.binomial(cells, positive)
    wrong = np.cumsum(ones, axis=1)[:, :-1] + np.cumsum((cells - ones)[:, ::-1], axis=1)[:, -2::-1]
    return noise + (1 - 2 * noise) * np.abs(t - target), wrong / m


def realisable(delta, error=0.1, share=1.0):
    m = int(share * realisable_sample_size(50, error, delta).value)
    return np.mean(worst_consistent(np.random.default_rng(1), m, 50) > error)


def finite_consistent(delta, m=60):
    bound = finite_class_error(50, m, delta)
    assert not bound.vacuous
    return np.mean(worst_consistent(np.random.default_rng(2), m, 50) > bound.value)


def agnostic(delta, error=0.1):
    m = int(agnostic_sample_size(20, error, delta).value)
    true, observed = observed_errors(np.random.default_rng(3), m, 20, noise=0.2)
    return np.mean(true[observed.argmin(axis=1)] > true.min() + error)


def finite_any(delta, m=200):
    true, observed = observed_errors(np.random.default_rng(4), m, 20, noise=0.3)
    above = finite_class_error(20, m, delta, 0.1).value - 0.1
    assert above < 0.2
    return np.mean((true - observed).max(axis=1) > above)


def test_cells_are_examples():
    """The multinomial draw has the mean and the spread of examples drawn one by one."""
    rng = np.random.default_rng(0)
    true, observed = observed_errors(rng, 50, 8, noise=0.2)
    x = rng.uniform(size=(4000, 50))
    y = (x >= 0.5) ^ (rng.uniform(size=x.shape) < 0.2)
    one_by_one = np.stack([((x >= t) != y).mean(axis=1) for t in thresholds(8)], axis=1)
    np.testing.assert_allclose(observed.mean(axis=0), true, atol=0.003)
    np.testing.assert_allclose(one_by_one.mean(axis=0), true, atol=0.005)
    np.testing.assert_allclose(np.cov(observed.T), np.cov(one_by_one.T), atol=4e-4)


# --- one hypothesis, all thresholds, large deviations ----------------------------------------


def one_mean(delta, n=100, p=0.5, share=1.0):
    observed = np.random.default_rng(6).binomial(n, p, DRAWS) / n
    return np.mean([p > q + share * (hoeffding(n, delta, q).value - q) for q in observed])


def all_thresholds(delta, n=1000, noise=0.2):
    """The largest true less observed error over all thresholds of the line: VC dimension 1."""
    above = vc_error(1, n, delta).value
    assert above < 0.35
    rng, failures = np.random.default_rng(7), 0
    for part in in_parts():
        x = np.sort(rng.uniform(size=(part, n)), axis=1)
        y = (x >= 0.5) ^ (rng.uniform(size=x.shape) < noise)
        # a threshold just above the i-th point calls it and all below it negative; on the way to
        # the next point the observed error stays, and the true one is largest at one of the ends
        wrong = np.cumsum(2 * y - 1, axis=1, dtype=np.int32) + (~y).sum(axis=1, keepdims=True)
        ends = np.stack([x, np.column_stack([x[:, 1:], np.ones(part)])])
        true = noise + (1 - 2 * noise) * np.abs(ends - 0.5).max(axis=0)
        failures += np.count_nonzero((true - wrong / n).max(axis=1) > above)
    return failures / DRAWS


def large_deviations(delta, n=100, p=0.3):
    """P(mean >= a) <= exp(-n D(a || p)): a is where this is delta."""
    low, high = p, 1.0
    for _ in range(60):
        a = (low + high) / 2
        small = math.exp(-n * relative_entropy([a, 1 - a], [p, 1 - p])) <= delta
        low, high = (low, a) if small else (a, high)
    return np.mean(np.random.default_rng(8).binomial(n, p, DRAWS) / n >= high)


# --- margins: two arcs of the unit circle, hyperplanes through the origin ---------------------

ARC = 1.2  # positive examples at angles from -ARC to ARC, negative ones opposite


def arc_error(angle):
    """The true error of the hyperplane whose normal points to this angle."""
    return np.clip((np.abs(angle) + ARC - np.pi / 2) / (2 * ARC), 0.0, 1.0)


def hard_margin(delta, n=2000):
    """The hard margin machine in closed form: its normal halves the angle between the extremes."""
    rng, failures = np.random.default_rng(9), 0
    lengths, none = np.ones(n), np.zeros(n)
    for part in in_parts():
        angles = rng.uniform(-ARC, ARC, size=(part, n))  # negative ones turned over
        low, high = angles.min(axis=1), angles.max(axis=1)
        margins, errors = np.cos((high - low) / 2), arc_error((low + high) / 2)
        bounds = [margin_error(none, g**-2.0, lengths, delta) for g in margins]
        assert not bounds[0].vacuous
        failures += sum(e > b.value for e, b in zip(errors, bounds, strict=True))
    return failures / DRAWS


def worst_hyperplane(delta, n=400, noise=0.1):
    """Labels with noise; of 24 hyperplanes, with slacks, the one that exceeds its bound most."""
    rng, failures = np.random.default_rng(10), 0
    normals = [(phi, size) for phi in np.linspace(-2.4, 2.4, 8) for size in (1.0, 2.0, 8.0)]
    for part in in_parts():
        x = rng.uniform(-ARC, ARC, size=(part, n)).astype(np.float32)
        y = np.where(rng.uniform(size=x.shape) < noise, np.float32(-1), np.float32(1))
        excess = np.full(part, -np.inf)
        across, along = y * np.cos(x), y * np.sin(x)
        for phi, size in normals:
            outputs = (
                np.float32(size * np.cos(phi)) * across + np.float32(size * np.sin(phi)) * along
            )
            slack = np.clip(1 - outputs, 0, 1).mean(axis=1, dtype=np.float64)
            rest = margin_error(np.zeros(n), size**2, np.ones(n), delta)
            true = noise + (1 - 2 * noise) * arc_error(phi)
            if not rest.vacuous:
                excess = np.maximum(excess, true - slack - rest.value)
        failures += np.count_nonzero(excess > 0)
    return failures / DRAWS


def test_the_closed_form_is_the_machine():
    rng = np.random.default_rng(0)
    angles, y = rng.uniform(-ARC, ARC, 60), np.repeat([1, -1], 30)
    X = y[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    both, labels = np.vstack([X, -X]), np.concatenate([y, -y])  # symmetric: no offset is needed
    machine = SVC(Linear(), C=1e6, tol=1e-8).fit(both, labels)
    half = (angles.max() - angles.min()) / 2
    np.testing.assert_allclose(np.sum(machine.coef_**2), np.cos(half) ** -2, rtol=1e-5)
    by_hand = margin_error(np.zeros(120), np.cos(half) ** -2, np.full(120, 2.0), 0.1)
    assert machine_bound(machine, both, labels, 0.1).value == pytest.approx(by_hand.value, rel=1e-5)


# --- what holds without exception --------------------------------------------------------------


def perceptrons(delta):
    """Ten thousand perceptrons side by side, each on a stream of its own, until none errs."""
    rng = np.random.default_rng(11)
    X, w = rng.standard_normal((DRAWS, 30, 3)), rng.standard_normal((DRAWS, 3))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    signs = np.sign(np.einsum("sid,sd->si", X, w))
    X += 0.3 * signs[..., None] * w[:, None, :]  # a margin of at least 0.3
    X *= signs[..., None]
    margins, radii = (
        np.einsum("sid,sd->si", X, w).min(axis=1),
        np.linalg.norm(X, axis=2).max(axis=1),
    )
    v, mistakes = np.zeros((DRAWS, 3)), np.zeros(DRAWS)
    for _ in range(400):
        before = mistakes.sum()
        for i in range(30):
            wrong = np.einsum("sd,sd->s", X[:, i], v) <= 0
            v += wrong[:, None] * X[:, i]
            mistakes += wrong
        if mistakes.sum() == before:
            break
    assert (np.einsum("sid,sd->si", X, v) > 0).all()
    bounds = [novikoff(*pair).value for pair in zip(radii, margins, strict=True)]
    return np.mean(mistakes > bounds)


def labellings_by_boxes(delta, m=6):
    """Boxes label six points of the plane in at most sauer(4, 6) ways."""
    points = np.random.default_rng(12).integers(0, 9, (DRAWS, m, 2))  # with ties
    counts = np.zeros(DRAWS, dtype=int)
    for labels in product([False, True], repeat=m):
        inside = np.array(labels)
        low = np.where(inside[:, None], points, 99).min(axis=1, keepdims=True)
        high = np.where(inside[:, None], points, -99).max(axis=1, keepdims=True)
        held = np.all((points >= low) & (points <= high), axis=2)
        counts += ~(held & ~inside).any(axis=1)
    assert counts.max() > sauer(3, m)  # no class of dimension 3
    return np.mean(counts > sauer(4, m))


def triangles(delta, margin=0.72):
    """Three points of the unit disc have all labels with a margin no larger than allows 3."""
    rng = np.random.default_rng(13)
    turn = rng.uniform(0, 2 * np.pi, DRAWS)[:, None] + np.arange(3) * 2 * np.pi / 3
    turn += rng.normal(scale=0.1, size=turn.shape)
    corners = np.stack([np.cos(turn), np.sin(turn)], axis=2)
    reached = np.full(DRAWS, np.inf)
    for i in range(3):  # half the distance of a corner from the opposite side
        a, b, c = (corners[:, (i + j) % 3] for j in range(3))
        along = np.clip(np.sum((a - b) * (c - b), axis=1) / np.sum((c - b) ** 2, axis=1), 0, 1)
        foot = b + along[:, None] * (c - b)
        reached = np.minimum(reached, np.linalg.norm(a - foot, axis=1) / 2)
    assert (reached >= margin).any()
    allowed = np.array([margin_dimension(1.0, g, 2).value for g in reached])
    return np.mean(allowed < 3)


# --- the figures -----------------------------------------------------------------------------

SIMULATIONS = {
    "hoeffding": (one_mean, 0.05),
    "relative_entropy": (large_deviations, 0.05),
    "realisable_sample_size": (realisable, 0.1),
    "finite_class_error, none observed": (finite_consistent, 0.1),
    "agnostic_sample_size": (agnostic, 0.1),
    "finite_class_error": (finite_any, 0.1),
    "rectangle_sample_size": (rectangle, 0.1),
    "double_sampling_size": (double_sampling, 0.1),
    "vc_error": (all_thresholds, 0.1),
    "margin_error, hard margin": (hard_margin, 0.1),
    "margin_error, slacks": (worst_hyperplane, 0.1),
    "novikoff": (perceptrons, 0.0),
    "sauer": (labellings_by_boxes, 0.0),
    "margin_dimension": (triangles, 0.0),
}


def allowed(delta):
    """What a rate of failures of at most delta can show in so many draws (five deviations)."""
    return delta + 5 * math.sqrt(delta * (1 - delta) / DRAWS)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SIMULATIONS)
def test_no_bound_fails_more_often_than_it_says(name):
    simulate, delta = SIMULATIONS[name]
    rate = simulate(delta)
    print(f"{name}: {rate:.4f} of {delta:g}")
    assert rate <= allowed(delta)


def test_other_settings():
    assert one_mean(0.05, p=0.1) <= allowed(0.05)
    assert rectangle(0.05) <= allowed(0.05)
    assert rectangle(0.2, error=0.2) <= allowed(0.2)
    assert agnostic(0.1, error=0.2) <= allowed(0.1)


def test_a_wrong_bound_would_be_seen():
    assert one_mean(0.05, share=0.5) > allowed(0.05)
    assert realisable(0.1, share=0.3) > allowed(0.1)
    assert rectangle(0.2, error=0.2, share=0.3) > allowed(0.2)
