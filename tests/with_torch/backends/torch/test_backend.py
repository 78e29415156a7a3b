"""The torch backend on CPU tensors: the numbers of the reference, blocks, and bad input."""

import gc
import weakref

import numpy as np
import pytest
from scipy import sparse

import mercer
from mercer.backends import available_backends, choose_backend
from mercer.backends.reference.backend import Reference
from mercer.expression import AbsDist, Dot, Exp, Opaque, SqDist
from mercer.kernels import Coregionalized, Gaussian, Spectrum, Subsequence
from mercer.resources import MemoryBudgetError, explained_full_card
from mercer.testing import check_backend

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch.backend import Torch  # noqa: E402 - after the skip
from mercer.backends.torch.device import Device, choose_device  # noqa: E402
from mercer.backends.torch.evaluate import CenteredRows, External  # noqa: E402
from mercer.backends.torch.matrices import DeviceMatrix, cholesky  # noqa: E402
from mercer.backends.torch.neighbours import smallest  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402

rng = np.random.default_rng(0)
CPU = Device("cpu")
X, Y = rng.standard_normal((90, 7)), rng.standard_normal((130, 7))
GAUSSIAN = Exp(-0.3 * SqDist())


@pytest.fixture(autouse=True)
def on_torch():
    with mercer.config(backend="torch", device="cpu"):
        yield


def test_conforms():
    check_backend("torch")


def test_it_is_taken_only_when_asked_for():
    assert available_backends()[-1] == "torch"
    assert choose_backend().name == "torch"
    with mercer.config(backend=None, device=None):
        assert choose_backend().name != "torch"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"backend": None, "device": "cpu"}, "device='cpu' is for the torch backend"),
        ({"backend": "reference", "device": "cuda"}, "config\\(backend='torch', device='cuda'\\)"),
    ],
)
def test_a_device_for_another_backend_is_refused(settings, said):
    with mercer.config(**settings), pytest.raises(ValueError, match=said):
        choose_backend()


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "CUDA", 0, b"cpu", "mps"])
def test_an_unknown_device_is_refused(device):
    with pytest.raises(ValueError, match="must be 'cpu', 'cuda'"):
        mercer.config(device=device).__enter__()


def test_a_card_that_is_not_there():
    with pytest.raises(RuntimeError, match=r"torch sees \d+ card"):
        choose_device("cuda:99")


# --- blocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [300, 1000])
@pytest.mark.parametrize("expression", [GAUSSIAN, Exp(-0.1 * AbsDist()) * (Dot() + 1.0) ** 2])
def test_blocks_of_any_size(monkeypatch, expression, entries):
    monkeypatch.setattr(Device, "block_entries", lambda self: entries)
    monkeypatch.setattr("mercer.backends.torch.pairs._WIDTH", max(3, entries // 3))
    backend, V = choose_backend(), rng.standard_normal((130, 3))
    for dtype, atol in ((np.float64, 1e-12), (np.float32, 1e-4)):
        K = Reference().pairs(expression, X, Y, np.float64).dense()
        pairs = backend.pairs(expression, X, Y, dtype)
        np.testing.assert_allclose(pairs.dense(), K, atol=atol)
        np.testing.assert_allclose(pairs.matmul(V), K @ V, atol=50 * atol)
        square = backend.pairs(expression, X, None, dtype).dense()
        np.testing.assert_array_equal(square, square.T)
        wanted = Reference().pairs(expression, X, None, np.float64).dense()
        np.testing.assert_allclose(square, wanted, atol=atol)
    index, _ = backend.neighbours(expression, X, Y, 4)
    np.testing.assert_array_equal(index, Reference().neighbours(expression, X, Y, 4)[0])


def test_a_full_card_falls_to_smaller_blocks():
    tried = []

    def work(entries):
        tried.append(entries)
        if entries > 1 << 18:
            raise torch.cuda.OutOfMemoryError("full")
        return "done"

    assert CPU.in_blocks(work, "a block") == "done"
    assert tried == [1 << 20, 1 << 18]


LIBRARY = (
    "cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
)


@pytest.mark.parametrize("told", LIBRARY)
def test_a_library_that_finds_no_memory_says_that_a_card_is_full(monkeypatch, told):
    monkeypatch.setattr(Device, "free", lambda self: 1000)

    def work(*_):
        raise RuntimeError(told)

    with pytest.raises(MemoryBudgetError, match="a factor needs 8 kB"):
        Device("cpu").once(work, 8000, "a factor")
    with pytest.raises(MemoryBudgetError, match="even in small blocks"):
        CPU.in_blocks(work, "a block")
    with pytest.raises(MemoryBudgetError, match="SVC: the device is full"):
        with explained_full_card("SVC"):
            work()


def test_other_errors_of_a_card_stay_what_they_are():
    def work(*_):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    for run in (lambda: CPU.in_blocks(work, "a block"), lambda: CPU.once(work, 1, "a factor")):
        with pytest.raises(RuntimeError, match="illegal"):
            run()


def test_a_card_without_room_says_so(monkeypatch):
    monkeypatch.setattr(Device, "free", lambda self: 1000)

    def work(entries):
        raise torch.cuda.OutOfMemoryError("full")

    with pytest.raises(MemoryBudgetError, match=r"a block does not fit the device 'cpu'.*1 kB"):
        CPU.in_blocks(work, "a block")


def test_rows_without_room_on_the_card_are_sent_block_by_block(monkeypatch):
    K = Reference().pairs(GAUSSIAN, X, Y, np.float64).dense()
    monkeypatch.setattr(Device, "has_room", lambda self, size: False)
    assert not CenteredRows(X, None, CPU).is_resident
    pairs = TorchPairs(GAUSSIAN, X, Y, np.float32, CPU, fused=True)
    assert pairs._fused is None
    np.testing.assert_allclose(pairs.dense(), K, atol=1e-6)
    F = choose_backend().features(X, np.arange(0, 90, 2))
    np.testing.assert_allclose(F.matvec(Y[0]), X[::2] @ Y[0], atol=1e-12)
    np.testing.assert_allclose(F.rmatvec(np.ones(45)), X[::2].sum(axis=0), atol=1e-12)


def test_the_users_rows_are_not_changed():
    rows = X.copy()
    pairs = choose_backend().pairs(GAUSSIAN, rows, None, np.float32)
    pairs.dense(), pairs.matmul(np.ones(90)), choose_backend().neighbours(GAUSSIAN, rows, None, 3)
    np.testing.assert_array_equal(rows, X)


# --- single verbs --------------------------------------------------------------------------------


def test_features():
    backend, index = choose_backend(), rng.integers(0, 90, 60)
    weights, group = rng.random(60), rng.integers(-1, 2, 60)
    for F in (X, sparse.csr_array(np.where(X > 0, X, 0.0))):
        centre = np.zeros(7) if sparse.issparse(F) else rng.standard_normal(7)
        ours, theirs = backend.features(F, index), Reference().features(F, index)
        assert ours.shape == (60, 7)
        np.testing.assert_allclose(ours.matvec(centre), theirs.matvec(centre), atol=1e-12)
        np.testing.assert_allclose(ours.rmatvec(weights), theirs.rmatvec(weights), atol=1e-12)
        found = ours.gram(weights, centre, group, 2)
        np.testing.assert_allclose(found, theirs.gram(weights, centre, group, 2), atol=1e-11)


def test_the_first_of_equal_entries():
    block = torch.tensor(rng.integers(0, 4, (50, 30)).astype(float))
    values, numbers = smallest(block, 7)
    wanted = np.argsort(block.numpy(), axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(numbers.numpy(), wanted)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(block.numpy(), wanted, 1))


@pytest.mark.parametrize("rows", [1, 2, 61])
def test_devices_share_products(rows):
    X, Y = rng.standard_normal((rows, 3)), rng.standard_normal((7, 3))
    e = Exp(-0.5 * SqDist())
    backend = Torch("cpu,cpu,cpu", Reference())
    for columns in (Y, None):
        shared = backend.pairs(e, X, columns, np.float64)
        alone = Torch("cpu", Reference()).pairs(e, X, columns, np.float64)
        V = rng.standard_normal((alone.shape[1], 2))
        np.testing.assert_allclose(shared.matmul(V), alone.matmul(V), atol=1e-13)
        np.testing.assert_allclose(shared.dense(), alone.dense(), atol=1e-14)
        seen = np.zeros(rows)

        def change(part, values, seen=seen):
            seen[part] += 1
            return 2.0 * values

        K = alone.dense()
        np.testing.assert_allclose(shared.round_trip(V, change), 2.0 * K.T @ (K @ V), atol=1e-12)
        assert (seen == 1).all()


def test_nearest_columns():
    numbers = TorchPairs(SqDist(), X, Y, np.float64, CPU).nearest()
    wanted = Reference().pairs(SqDist(), X, Y, np.float64).dense().argmin(axis=1)
    np.testing.assert_array_equal(numbers.numpy(), wanted)


def test_a_factor_of_what_is_not_finite():
    A = np.eye(600)
    A[400, 400] = np.nan
    assert cholesky(A, CPU) == 401


def test_a_factor_without_room(monkeypatch):
    monkeypatch.setattr(Device, "is_card", True)
    monkeypatch.setattr(Device, "has_room", lambda self, size: False)
    monkeypatch.setattr(Device, "free", lambda self: 10**5)
    with pytest.raises(MemoryBudgetError, match=r"Cholesky factor of 90 rows.*100 kB are free"):
        cholesky(np.eye(90), CPU)


# --- bad input -----------------------------------------------------------------------------------


def test_undefined_and_endless_entries_are_those_of_the_reference():
    rows = X.copy()
    rows[3, 2], rows[5] = np.nan, np.inf
    for e in (GAUSSIAN, Dot(), SqDist(), Exp(-1.0 * AbsDist())):
        for dtype in (np.float64, np.float32):
            found = choose_backend().pairs(e, rows, None, dtype).dense()
            wanted = Reference().pairs(e, rows, None, dtype).dense()
            np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_hostile_scales(scale):
    rows = scale * X
    e = Exp((-0.3 / scale / scale) * SqDist())
    wanted = Reference().pairs(e, rows, None, np.float64).dense()
    found = choose_backend().pairs(e, rows, None, np.float64).dense()
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_different_numbers_of_columns():
    with pytest.raises(ValueError, match="X has 7 features, Y has 6"):
        choose_backend().pairs(GAUSSIAN, X, Y[:, :6], np.float64)


def test_a_function_runs_on_the_host_and_says_so(monkeypatch):
    monkeypatch.setattr(Device, "is_card", True)
    with pytest.warns(RuntimeWarning, match="runs on the CPU, block by block.*cannot look into"):
        External(Opaque(lambda a, b: a @ b.T), X, Y, CPU, lambda e: None)


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(2), Coregionalized(np.eye(2))])
def test_mercers_own_functions_run_there_without_advice(monkeypatch, kernel):
    monkeypatch.setattr(Device, "is_card", True)
    with pytest.warns(RuntimeWarning, match=r"Function|TaskTable.*runs on the CPU") as found:
        External(kernel.expression(), X, Y, CPU, lambda e: None)
    assert "Write it" not in str(found[0].message)


def test_a_fitted_machine_lets_go_of_its_matrix(monkeypatch):
    """What K-means may be asked for later is computed from the rows."""
    held, make = [], DeviceMatrix.__init__

    def noted(self, *args, **kwargs):
        held.append(weakref.ref(self))
        make(self, *args, **kwargs)

    monkeypatch.setattr(DeviceMatrix, "__init__", noted)
    machine = mercer.KMeans(3, Gaussian(1.0), n_init=2).fit(Y)
    gc.collect()
    assert held and not any(matrix() for matrix in held)
    assert 0 < machine.relaxation_.bound <= machine.relaxation_.objective


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="float32 or float64, not float16"):
        choose_backend().pairs(GAUSSIAN, X, None, np.float16)


def test_tensors_of_the_cpu_are_rows():
    with mercer.config(backend=None, device=None):
        wanted = Gaussian(1.0)(X, Y)
    np.testing.assert_allclose(Gaussian(1.0)(torch.from_numpy(X), Y), wanted, atol=1e-13)


# --- machines ------------------------------------------------------------------------------------

T = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(90)
MACHINES = [
    lambda: mercer.KernelRidge(0.1, kernel=Gaussian(2.0)),
    lambda: mercer.PCA(3, kernel=Gaussian(2.0)),
    lambda: mercer.KMeans(3, kernel=Gaussian(2.0), random_state=0),
    lambda: mercer.SVC(C=2.0, kernel=Gaussian(2.0)),
    lambda: mercer.SVR(C=2.0, kernel=Gaussian(2.0)),
]


@pytest.mark.parametrize("make", MACHINES, ids=lambda make: type(make()).__name__)
def test_machines_are_certified_and_agree_with_the_other_backends(make):
    machine, other = make(), make()
    target = (T > 0) if isinstance(machine, mercer.SVC) else T
    machine.fit(X, target)
    with mercer.config(backend=None, device=None):
        other.fit(X, target)
    assert machine.certificate_.ok and machine.solution_.status is other.solution_.status
    for verb in ("predict", "transform", "decision_function"):
        if hasattr(machine, verb):
            found, wanted = getattr(machine, verb)(Y), getattr(other, verb)(Y)
            np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=1e-2)


def test_the_backend_is_what_the_host_lends():
    backend = Torch("cpu", Reference())
    assert backend.device == CPU and not backend._fused


def test_diagonals_are_not_left_to_a_slow_host():
    """The reference compares every row with 63 others for it: seconds for rows of pictures."""
    for e in (GAUSSIAN, Dot() ** 2 + 1.0):
        found = Torch("cpu", None).diagonal(e, X, np.float32)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, Reference().diagonal(e, X, np.float32), rtol=1e-6)


@pytest.mark.parametrize("entries", [1, 70, 1000, 10**6])
@pytest.mark.parametrize("width", [16, 50, 1 << 15])
def test_products_by_halves_of_symmetric_matrices(monkeypatch, entries, width):
    """Blocks on and above the diagonal, whatever their shape, make the whole product."""
    monkeypatch.setattr("mercer.backends.torch.pairs._WIDTH", width)
    rng = np.random.default_rng(0)
    X, V = rng.standard_normal((90, 3)), rng.standard_normal((90, 2))
    pairs = TorchPairs(Exp(-0.3 * SqDist()), X, None, np.float64, Device("cpu"))
    wanted = TorchPairs(Exp(-0.3 * SqDist()), X, X.copy(), np.float64, Device("cpu")).dense() @ V
    looked, block = [], TorchPairs.block

    def counted(self, index, part):
        looked.append((index.stop - index.start) * (part.stop - part.start))
        return block(self, index, part)

    monkeypatch.setattr(TorchPairs, "block", counted)
    np.testing.assert_allclose(pairs.product(torch.from_numpy(V), entries), wanted, atol=1e-13)
    height = max(1, entries // min(90, width))
    assert sum(looked) <= 90 * (90 + min(height, 90)) // 2 + 90


def test_a_full_card_is_told_in_plain_words(monkeypatch):
    def full(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    machine = mercer.KernelRidge(0.1, kernel=Gaussian(1.0)).fit(X, X[:, 0])
    before = machine.predict(X)
    monkeypatch.setattr("mercer.machines.ridge.kernel_ridge.solve", full)
    with pytest.raises(MemoryBudgetError, match="KernelRidge: the device is full"):
        machine.fit(X, X[:, 1])
    np.testing.assert_array_equal(machine.predict(X), before)
