"""Action values against dynamic programming, and policies in two worlds of the literature."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import ParameterError, Status, certify
from mercer.kernels import Gaussian
from mercer.problems import KernelQ
from mercer.reinforcement import (
    Environment,
    FittedQ,
    KernelLSPI,
    MountainCar,
    Pendulum,
    Transitions,
)

BOTH = pytest.mark.parametrize("kind", [FittedQ, KernelLSPI])
APART = Gaussian(0.05)  # whole numbers have nothing in common


class Chain:
    """A random Markov decision process of a few states, with its exact values."""

    def __init__(self, states=6, actions=3, discount=0.9, seed=0):
        rng = np.random.default_rng(seed)
        self.P = rng.dirichlet(np.full(states, 0.5), (states, actions))
        self.R = rng.normal(size=(states, actions, states))
        self.final = states - 1  # nothing comes after it
        self.discount, self.shape = discount, (states, actions)

    def transitions(self):
        """Return every transition, with its chance for a weight."""
        s, a, t = (index.ravel() for index in np.indices(self.P.shape))
        return Transitions(
            s[:, None], a, self.R[s, a, t], t[:, None], t == self.final, self.P[s, a, t]
        )

    def optimum(self):
        """Return Q by value iteration."""
        Q = np.zeros(self.shape)
        for _ in range(2000):
            after = np.where(np.arange(len(Q)) == self.final, 0.0, Q.max(axis=1))
            Q = np.einsum("sat,sat->sa", self.P, self.R + self.discount * after)
        return Q


@BOTH
@pytest.mark.parametrize("bias", [False, True])
def test_a_finite_process_is_solved_as_by_dynamic_programming(kind, bias):
    for seed in range(3):
        chain = Chain(seed=seed)
        learner = kind(APART, 1e-11, chain.discount, bias=bias, tol=1e-13).fit(chain.transitions())
        assert learner.solution_.status is Status.SOLVED and learner.certificate_.ok
        exact, states = chain.optimum(), np.arange(6.0)[:, None]
        np.testing.assert_allclose(learner.q(states), exact, atol=1e-8)
        np.testing.assert_allclose(learner.value(states), exact.max(axis=1), atol=1e-8)
        np.testing.assert_array_equal(learner.act(states), exact.argmax(axis=1))


def test_sweeps_are_those_of_kernel_ridge():
    car = MountainCar()
    seen = car.explore(40, 1)
    kernel = Gaussian([0.3, 0.03, 0.2])
    learner = FittedQ(kernel, 0.5, 0.8, tol=1e-12).fit(seen)
    values = np.zeros((3, 40))
    for _ in range(120):
        targets = seen.rewards + 0.8 * np.where(seen.ended, 0.0, values.max(axis=0))
        ridge = mercer.KernelRidge(0.5, kernel).fit(seen.rows, targets)
        values = ridge.predict(seen.next_rows(car.actions)).reshape(3, 40)
    np.testing.assert_allclose(learner.q(seen.next_states).T, values, atol=1e-8)


def test_both_ends_are_one_where_both_end():
    car = MountainCar()
    seen = car.explore(150, 2)
    sweeps, policies = (
        kind(penalty=0.3, discount=0.97).fit(seen) for kind in (FittedQ, KernelLSPI)
    )
    assert sweeps.certificate_.ok and policies.certificate_.ok
    np.testing.assert_allclose(sweeps.q(seen.states), policies.q(seen.states), atol=1e-4)
    assert policies.n_iter_ < 20 < sweeps.n_iter_


@BOTH
def test_weights_are_repetitions(kind):
    seen = MountainCar().explore(50, 0)
    counts = np.random.default_rng(0).integers(0, 3, 50)
    parts = (seen.states, seen.actions, seen.rewards, seen.next_states, seen.ended)
    kernel = Gaussian([0.3, 0.03, 0.2])
    one = kind(kernel, discount=0.9, actions=(-1, 0, 1)).fit(Transitions(*parts, counts))
    many = Transitions(*(np.repeat(part, counts, axis=0) for part in parts))
    two = kind(kernel, discount=0.9, actions=(-1, 0, 1)).fit(many)
    np.testing.assert_allclose(one.q(seen.states), two.q(seen.states), atol=1e-8)


# --- worlds ---------------------------------------------------------------------------------------


@BOTH
def test_the_car_gets_out_of_the_valley(kind):
    car = MountainCar()
    learner = kind(discount=car.discount, tol=1e-6 if kind is FittedQ else 1e-10)
    learner.fit(car.explore(600, 0))
    assert learner.certificate_.ok
    states, actions, arrived = car.follow(learner, steps=400)
    # the shortest way takes a little more than a hundred steps; full throttle alone never arrives
    assert arrived and 100 < len(actions) < 200
    assert states[-1, 0] >= 0.5 and len(states) == len(actions) + 1
    assert (states[:, 0] < states[0, 0] - 0.2).any()  # it goes back first
    full = type("Full", (), {"act": lambda self, at: np.ones(len(at))})()
    assert not car.follow(full, steps=400)[2]


def test_the_pole_is_kept_upright():
    pole = Pendulum()
    seen = pole.wander(50, 20, 0)
    learner = KernelLSPI(discount=pole.discount).fit(seen)
    assert learner.solution_.status is Status.SOLVED and learner.certificate_.ok
    chance = seen.rewards.size / 50
    assert chance < 12  # steps of random pushes
    for seed in range(2):
        states, actions, fallen = pole.follow(learner, steps=200, random_state=seed)
        assert not fallen and len(actions) == 200
        assert np.abs(states[:, 0]).max() < 1.0


def test_dynamics_are_those_of_the_papers():
    car, pole = MountainCar(), Pendulum(noise=0.0)
    moved = car.step(np.array([[-0.5, 0.01]]), np.array([1.0]))
    (x, v), reward, ended = (part[0] for part in moved)
    np.testing.assert_allclose(v, 0.01 + 0.001 - 0.0025 * np.cos(-1.5))
    np.testing.assert_allclose(x, -0.5 + v)
    assert reward == -1.0 and not ended
    wall, _, _ = car.step(np.array([[-1.19, -0.07]]), np.array([-1.0]))
    assert wall.tolist() == [[-1.2, 0.0]]
    (theta, speed), reward, ended = (
        part[0] for part in pole.step(np.array([[0.3, -0.5]]), np.array([50.0]))
    )
    top = 9.8 * np.sin(0.3) - 0.1 * 2 * 0.5 * 0.25 * np.sin(0.6) / 2 - 0.1 * np.cos(0.3) * 50
    faster = top / (4 * 0.5 / 3 - 0.1 * 2 * 0.5 * np.cos(0.3) ** 2)
    np.testing.assert_allclose(speed, -0.5 + 0.1 * faster)
    np.testing.assert_allclose(theta, 0.3 + 0.1 * speed)
    assert reward == 0.0 and not ended
    assert issubclass(Pendulum, Environment) and car.start(2, None).shape == (2, 2)


# --- certificates, ends, refusals -----------------------------------------------------------------


@BOTH
def test_the_certificate_finds_wrong_values(kind):
    seen = MountainCar().explore(80, 0)
    learner = kind(discount=0.9).fit(seen)
    problem, right = learner._equation(seen), learner.solution_.value
    assert certify(problem, right).ok
    for wrong in (
        KernelQ(right.coef * 1.001, right.intercept),
        KernelQ(right.coef, right.intercept + 0.01),
        KernelQ(right.coef[1:], right.intercept),
        KernelQ(np.full_like(right.coef, np.nan), 0.0),
    ):
        assert not certify(problem, wrong).ok
    after = np.where(seen.ended, 0.0, learner.value(seen.next_states))
    place = np.searchsorted(learner.actions_, seen.actions)
    left = seen.rewards + 0.9 * after - learner.q(seen.states)[np.arange(80), place]
    found = learner.certificate_.quantities
    np.testing.assert_allclose(found.bellman_residual, np.abs(left).max(), rtol=1e-6)
    np.testing.assert_allclose(found.bellman_error, np.sqrt(np.mean(left**2)), rtol=1e-6)
    assert "are not certified" in learner.certificate_.statement


@BOTH
def test_limits_and_callbacks(kind):
    seen = MountainCar().explore(80, 0)
    with pytest.warns(UserWarning, match="iteration limit"):
        learner = kind(discount=0.99, max_iter=1).fit(seen)
    assert learner.solution_.status is Status.ITERATION_LIMIT and not learner.certificate_.ok
    with pytest.warns(UserWarning, match="asked to stop"):
        kind(discount=0.99, callback=lambda p: True).fit(seen)

    def interrupt(progress):
        raise KeyboardInterrupt

    before = dict(vars(learner))
    learner.callback = interrupt
    with pytest.raises(KeyboardInterrupt):
        learner.fit(seen)
    assert vars(learner) | {"callback": None} == before | {"callback": None}


def test_cycles_of_policies_are_said():
    from mercer.machines.reinforcement import solvers as policy_iteration

    problem = KernelLSPI(discount=0.9)._equation(MountainCar().explore(20, 0))
    turn = iter([np.ones(20, int), np.zeros(20, int)] * 5)
    original = policy_iteration.improved
    policy_iteration.improved = lambda *args: next(turn)
    try:
        with pytest.warns(UserWarning, match="a cycle"):
            found = mercer.solve(problem)
    finally:
        policy_iteration.improved = original
    assert found.status in (Status.INACCURATE,)


@BOTH
def test_copies_and_files(kind, tmp_path):
    seen = MountainCar().explore(60, 0)
    learner = kind(discount=0.9).fit(seen)
    mercer.save(learner, tmp_path / "model.mercer")
    for twin in (pickle.loads(pickle.dumps(learner)), mercer.load(tmp_path / "model.mercer")):
        np.testing.assert_array_equal(twin.q(seen.states), learner.q(seen.states))
        assert repr(twin.certificate_) == repr(learner.certificate_)
    assert clone(learner).get_params()["discount"] == 0.9


@BOTH
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"discount": 1.0}, "discount=1.0 must be a number from 0 on and below 1"),
        ({"penalty": 0.0}, "penalty"),
        ({"actions": [1.0, 1.0]}, "actions"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"bias": 1}, "bias"),
        ({"time_limit": -1}, "time_limit"),
    ],
)
def test_wrong_parameters(kind, parameters, said):
    with pytest.raises(ParameterError, match=said):
        kind(**parameters).fit(MountainCar().explore(10))


def test_wrong_samples():
    with pytest.raises(TypeError, match=r"FittedQ.fit takes mercer.reinforcement.Transitions"):
        FittedQ().fit(np.zeros((3, 2)))
    good = [[0.0], [1.0]], [0, 1], [0, 0], [[1.0], [0.0]], [False, True]
    for place, wrong, said in (
        (0, [[np.nan], [0.0]], "NaN"),
        (1, [0], "actions must be 2 finite numbers"),
        (2, [0, np.inf], "rewards"),
        (3, [[1.0, 2.0]] * 2, "must have the shape"),
        (4, [False], "ended must be 2"),
    ):
        with pytest.raises(ValueError, match=said):
            Transitions(*good[:place], wrong, *good[place + 1 :])
    with pytest.raises(ValueError, match="not all zero"):
        Transitions(*good, [0, 0])
    learner = FittedQ().fit(Transitions(*good))
    with pytest.raises(ValueError, match="states have 2 entries"):
        learner.q([[0.0, 1.0]])
    with mercer.config(memory="10 kB"), pytest.raises(mercer.MemoryBudgetError, match="fewer tr"):
        FittedQ().fit(MountainCar().explore(100))


@BOTH
@pytest.mark.parametrize("scale", [1e-150, 1e100])
def test_rewards_of_any_size(kind, scale):
    seen = MountainCar().explore(60, 0)
    parts = seen.states, seen.actions, seen.rewards * scale, seen.next_states, seen.ended
    one, two = kind(discount=0.9).fit(seen), kind(discount=0.9).fit(Transitions(*parts))
    assert two.certificate_.ok
    np.testing.assert_allclose(two.q(seen.states) / scale, one.q(seen.states), rtol=1e-5)


@BOTH
def test_one_transition_and_equal_ones(kind):
    learner = kind(discount=0.5, penalty=1e-9).fit(
        Transitions([[1.0]] * 3, [0] * 3, [1.0, 2.0, 3.0], [[1.0]] * 3, [True] * 3)
    )
    np.testing.assert_allclose(learner.q([[1.0]]), 2.0)
    learner = kind(discount=0.5, penalty=1e-9).fit(
        Transitions([[1.0]], [0], [1.0], [[1.0]], [False])
    )
    np.testing.assert_allclose(learner.q([[1.0]]), 2.0, rtol=1e-6)  # 1 + 1/2 + 1/4 + ...
