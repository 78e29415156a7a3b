"""Newton's steps on faces: they end where a dense solver does, feasible and never higher."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from mercer.backends.box_programs import Box, with_sum
from mercer.backends.reference.smo import on_stored

torch = pytest.importorskip("torch", reason="make test-torch")
from helpers.cuda_alone import compiled, descend_alone  # noqa: E402

from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.svm import descents  # noqa: E402 - after the skip
from mercer.backends.torch.svm import descents as faces  # noqa: E402
from mercer.backends.torch.svm import descents as newton  # noqa: E402
from mercer.backends.torch.svm.programs import on_device  # noqa: E402

rng = np.random.default_rng(1)
N, TOL = 150, 1e-4
X = rng.standard_normal((N, 3))
K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2)).astype(np.float32)
SIGN = np.where(X[:, 0] + 0.5 * rng.standard_normal(N) > 0, 1.0, -1.0)
TARGET = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(N)
ZERO = np.zeros(N)


def svc(C):
    return Box(SIGN, ZERO, np.minimum(C * SIGN, 0.0), np.maximum(C * SIGN, 0.0))


def svr(C, epsilon=0.1):
    return Box(TARGET, ZERO, np.full(N, -C), np.full(N, C), epsilon=np.full(N, epsilon))


def tube(C, nu=0.4):
    """Return nu regression: each row twice, above and below the tube, with a sum each."""
    total = 0.5 * nu * C * N
    start = np.concatenate([np.full(N, total / N), np.full(N, -total / N)])
    return Box(
        np.tile(TARGET, 2),
        start,
        np.concatenate([ZERO, np.full(N, -C)]),
        np.concatenate([np.full(N, C), ZERO]),
        group=np.repeat([0, 1], N),
        rows=np.tile(np.arange(N), 2),
    )


def ridge(C):
    return Box(TARGET, ZERO, np.full(N, -np.inf), np.full(N, np.inf), shift=np.full(N, 1.0 / C))


KINDS = {"svc": svc, "svr": svr, "nu svr": tube, "no bounds": ridge}


def matrix(box):
    rows = np.arange(N) if box.rows is None else box.rows
    A = K[np.ix_(rows, rows)].astype(float)
    return A if box.shift is None else A + np.diag(box.shift)


def objective(box, b):
    cost = 0.0 if box.epsilon is None else box.epsilon @ np.abs(b)
    linear = box.gradient + matrix(box) @ box.start
    return b @ matrix(box) @ b / 2 - linear @ b + cost


def halfway(box, steps):
    """Return programmes that stand where pair steps of the reference have come to."""
    there = on_stored(K, box, 1e-12, steps, None)
    return on_device(torch.from_numpy(K), [replace(box, start=there.b, gradient=there.gradient)])


def measured(box, programmes):
    """Return b, with F compared to what it is in float64."""
    b = programmes.b.numpy().copy()
    F = box.gradient - matrix(box) @ (b - box.start)
    np.testing.assert_allclose(programmes.F.numpy(), F, atol=1e-9 * max(1.0, np.abs(b).max()))
    assert (b >= box.lower).all() and (b <= box.upper).all()
    group = np.zeros(len(b), int) if box.group is None else box.group
    for g in np.unique(group):
        owed = b[group == g].sum() - box.start[group == g].sum()
        assert abs(owed) < 1e-12 * max(1.0, np.abs(b).sum())
    return b


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("steps", [50, 500, 5000])
def test_steps_are_feasible_and_lead_down(kind, C, steps):
    box = KINDS[kind](C)
    programmes = halfway(box, steps)
    before = objective(box, measured(box, programmes))
    for _ in range(6):
        face = faces.face_of(programmes, 0, TOL)
        moved = (
            bool(len(face.W)) and faces.step_on(torch.from_numpy(K), programmes, face, TOL).moved
        )
        after = objective(box, measured(box, programmes))
        assert after <= before + 1e-12 * abs(before)
        assert moved or after == before
        before = after


@pytest.mark.parametrize("damping", [1.0, 1e8])
@pytest.mark.parametrize("kind", ["svc", "svr", "nu svr"])
def test_what_is_at_its_bounds_comes_back(kind, damping):
    """Begin at a corner: half of the variables, wrongly, as large as they may be."""
    box = KINDS[kind](1.0)
    corner = np.where(np.arange(len(box.start)) % 2, box.lower, box.upper)
    group = np.zeros(len(corner), int) if box.group is None else box.group
    for g in np.unique(group):
        mine = group == g
        lower, upper = box.lower[mine], box.upper[mine]
        corner[mine] = with_sum(corner[mine], lower, upper, box.start[mine].sum())
    F = box.gradient - matrix(box) @ (corner - box.start)
    programmes = on_device(torch.from_numpy(K), [replace(box, start=corner, gradient=F)])
    before, moved = objective(box, measured(box, programmes)), 0
    for _ in range(8):
        face = faces.face_of(programmes, 0, TOL)
        moved += faces.step_on(torch.from_numpy(K), programmes, face, TOL, damping).moved
        after = objective(box, measured(box, programmes))
        assert after <= before + 1e-12 * abs(before)
        before = after
    assert moved or damping == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_near_the_end_a_few_steps_are_the_end(kind):
    box = KINDS[kind](10.0)
    programmes = halfway(box, 4000)
    for _ in range(4):
        face = faces.face_of(programmes, 0, 1e-7)
        if not len(face.W):
            break
        faces.step_on(torch.from_numpy(K), programmes, face, 1e-7)
    b = measured(box, programmes)
    best = on_stored(K.astype(float), box, 1e-9, 10**6, None)
    assert best.violation <= 1e-9
    assert objective(box, b) <= objective(box, best.b) + 1e-7 * abs(objective(box, best.b))
    rising, falling = programmes.sides(slice(0, len(b)))
    group = np.zeros(len(b), int) if box.group is None else box.group
    for g in np.unique(group):
        assert float(rising[group == g].amax() - falling[group == g].amin()) < 1e-5


@pytest.mark.parametrize("kind", ["svc", "svr", "nu svr"])
@pytest.mark.parametrize("seed", range(6))
def test_steps_from_anywhere_are_feasible_and_lead_down(kind, seed):
    # variables at both bounds that want to leave them, on either side of the tube
    draw = np.random.default_rng(seed)
    box = KINDS[kind](10.0)
    n = len(box.start)
    at = draw.choice([0.0, 1.0, 0.5, 0.3], n, p=[0.05, 0.05, 0.2, 0.7])
    start = box.lower + (box.upper - box.lower) * at
    gradient = 0.3 * draw.standard_normal(n) + (
        0.0 if box.epsilon is None else 0.1 * np.sign(start)
    )
    box = replace(box, start=start, gradient=gradient)
    programmes = on_device(torch.from_numpy(K), [box])
    before = objective(box, measured(box, programmes))
    for damping in (1.0, 1e4, 1e6, 1e7):
        face = faces.face_of(programmes, 0, TOL)
        assert bool((programmes.b[face.W] >= face.low).all())
        assert bool((programmes.b[face.W] <= face.high).all())
        faces.step_on(torch.from_numpy(K), programmes, face, TOL, damping)
        after = objective(box, measured(box, programmes))
        assert after <= before + 1e-10 * abs(before)
        before = after
    assert before < objective(box, start)


def test_a_sum_whose_variables_are_all_held_at_edges_is_kept():
    box = Box(
        np.array([0.1, 0.2, 5.0, 1.0]),  # the last two leave the box, both upwards
        np.full(4, 0.5),
        np.full(4, -10.0),
        np.array([10.0, 10.0, 1.0, 1.0]),
        group=np.array([0, 0, 1, 1]),
    )
    held = torch.tensor([0, 0, 1, 1], dtype=torch.int8)
    programmes = on_device(torch.from_numpy(K[:4, :4]), [box])
    face = faces.face_of(programmes, 0, TOL)
    assert len(face.W) == 4
    A = torch.from_numpy(K[:4, :4]).double()
    edges = torch.where(held > 0, face.high - programmes.b, 0.0)
    assert faces._solved(A, face, edges, held, 1e-6) is None
    assert faces._solved(A, face, 0 * edges, held, 1e-6) is not None  # nothing is owed


def test_nothing_moves_where_nothing_can():
    programmes = on_device(torch.from_numpy(K), [Box(SIGN, ZERO, ZERO, ZERO)])
    face = faces.face_of(programmes, 0, TOL)
    assert len(face.W) == 0 and face.is_early


def test_a_face_that_most_would_leave_is_early():
    programmes = on_device(torch.from_numpy(K), [svc(1.0)])  # at zero all want to join
    face = faces.face_of(programmes, 0, TOL)
    assert face.joining == len(face.W) == N and face.is_early


def test_without_memory_sets_go_on(monkeypatch):
    programmes = halfway(svc(10.0), 500)
    before = programmes.b.clone()

    def full(*_):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(faces, "_step", full)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    face = faces.face_of(programmes, 0, TOL)
    assert faces.step_on(torch.from_numpy(K), programmes, face, TOL) == (False, 0)
    assert torch.equal(programmes.b, before)


# --- between rounds ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    return compiled(tmp_path_factory.mktemp("faces"), 24)


@pytest.fixture
def soon(kernels, monkeypatch):
    """Let steps on faces cost nothing: they come after every few rounds."""
    descend_alone(monkeypatch, *kernels)
    for name, number in {"_LEAST": 4, "_FACTOR": 0.0, "_SOON": 0.0}.items():
        monkeypatch.setattr(newton, name, number)
    monkeypatch.setattr(descents, "_DESCENTS_FIRST", 4)
    monkeypatch.setattr(descents, "_ROUNDS", 4)


@pytest.mark.parametrize("kind", KINDS)
def test_descents_with_such_steps_end_where_others_do_in_fewer_rounds(kind, soon, monkeypatch):
    box = KINDS[kind](300.0)
    box = replace(
        box,
        gradient=box.gradient - matrix(box) @ box.start,
        epsilon=np.zeros(len(box.start)) if box.epsilon is None else box.epsilon,
        shift=np.zeros(len(box.start)) if box.shift is None else box.shift,
    )
    ends, rounds = [], []
    launch = descents.DeviceRounds.launch

    def counted(self, count, some, limit=None):
        rounds[-1] += count
        launch(self, count, some, limit)

    monkeypatch.setattr(descents.DeviceRounds, "launch", counted)
    for few in (newton._FEW, 0):
        rounds.append(0)
        monkeypatch.setattr(newton, "_FEW", few)
        (end,) = descents.solve_boxes(torch.from_numpy(K), [box], TOL, 10**7, None, Device("cpu"))
        assert end.violation <= TOL
        F = box.gradient - matrix(box) @ (end.b - box.start)
        np.testing.assert_allclose(end.gradient, F, atol=1e-8)
        ends.append(objective(box, end.b))
    assert abs(ends[0] - ends[1]) <= 1e-4 * max(1.0, abs(ends[1]))
    assert 2 * rounds[0] < rounds[1]


def test_steps_wait_for_rounds_that_paid_for_them():
    programmes = on_device(torch.from_numpy(K), [svc(1.0)] * 6)
    steps = newton.Newton([torch.from_numpy(K)], programmes, TOL)
    standing, few = np.full(6, 1.0), np.arange(2)
    assert not len(steps.due(np.arange(6), standing, 1000))  # many programmes fill the card
    assert not len(steps.due(few, standing, 10))
    assert not len(
        steps.due(few, np.full(6, 0.9 * newton._FAR * TOL), 1000)
    )  # rounds are done soon
    assert list(steps.due(few, standing, 1000)) == [0, 1]
    steps.step(0, 1.0, 1000)  # early: nothing was done
    assert list(steps.due(few, standing, 1010)) == [1]
    assert torch.equal(programmes.b, torch.zeros(6 * N, dtype=torch.float64))
