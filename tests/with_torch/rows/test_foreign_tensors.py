"""Tensors in, tensors out: answers in the kind and place of the rows, and what is refused."""

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian
from mercer.rows import foreign

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.torch import backend  # noqa: E402 - after the skip
from mercer.backends.torch.device import Device, full_float32  # noqa: E402
from mercer.rows import staging  # noqa: E402

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((80, 4)), rng.standard_normal((9, 4))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(80)
LABELS = (y > 0).astype(int)
MACHINES = [
    (mercer.KernelRidge(0.1, kernel=Gaussian(2.0)), y, ["predict"]),
    (mercer.PCA(2, kernel=Gaussian(2.0)), None, ["transform"]),
    (mercer.KMeans(3, kernel=Gaussian(2.0), random_state=0), None, ["predict"]),
    (mercer.SVC(C=2.0, kernel=Gaussian(2.0)), LABELS, ["predict", "decision_function"]),
    (mercer.LogisticRegression(kernel=Gaussian(2.0)), LABELS, ["predict", "predict_proba"]),
]


@pytest.mark.parametrize(("machine", "target", "verbs"), MACHINES, ids=lambda m: type(m).__name__)
def test_answers_are_tensors_with_the_numbers_of_arrays(machine, target, verbs):
    given = () if target is None else (torch.from_numpy(target),)
    wanted = () if target is None else (target,)
    assert machine.fit(torch.from_numpy(X), *given) is machine
    found = {verb: getattr(machine, verb)(torch.from_numpy(Z)) for verb in verbs}
    machine.fit(X, *wanted)
    for verb, answer in found.items():
        assert torch.is_tensor(answer) and answer.device.type == "cpu"
        np.testing.assert_allclose(answer.numpy(), getattr(machine, verb)(Z), atol=1e-12)


def test_score_and_fit_transform():
    ridge = mercer.KernelRidge(0.1, kernel=Gaussian(2.0)).fit(X, y)
    assert ridge.score(torch.from_numpy(X), torch.from_numpy(y)) == ridge.score(X, y)
    found = mercer.PCA(2).fit_transform(torch.from_numpy(X))
    np.testing.assert_allclose(found.numpy(), mercer.PCA(2).fit_transform(X), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64"])
def test_types(dtype):
    rows = (
        torch.from_numpy(np.round(4 * X)).to(getattr(torch, dtype)).requires_grad_("float" in dtype)
    )
    machine = mercer.KernelRidge(0.1, kernel=Gaussian(5.0)).fit(rows, torch.from_numpy(y))
    found = machine.predict(rows)
    assert found.dtype is torch.float64 and not found.requires_grad
    wanted = mercer.KernelRidge(0.1, kernel=Gaussian(5.0)).fit(np.round(4 * X), y)
    np.testing.assert_allclose(found.numpy(), wanted.predict(np.round(4 * X)), atol=1e-3)


def test_labels_that_are_no_numbers_stay_arrays():
    names = np.where(LABELS, "yes", "no")
    machine = mercer.SVC(kernel=Gaussian(2.0)).fit(torch.from_numpy(X), names)
    assert isinstance(machine.predict(torch.from_numpy(Z)), np.ndarray)
    assert torch.is_tensor(machine.decision_function(torch.from_numpy(Z)))


def test_undefined_entries_are_named():
    rows = torch.from_numpy(X.copy())
    rows[7, 2] = torch.nan
    with pytest.raises(ValueError, match=r"NaN: 1 bad value.*row 7, column 2"):
        mercer.KernelRidge().fit(rows, torch.from_numpy(y))


def test_sparse_tensors_are_refused():
    with pytest.raises(TypeError, match=r"sparse tensor .*X.to_dense\(\), or rows of"):
        mercer.KernelRidge().fit(torch.from_numpy(X).to_sparse(), y)


def test_devices_without_a_backend_are_refused():
    with pytest.raises(ValueError, match=r"device 'meta': there are 'cpu' and 'cuda'"):
        mercer.KernelRidge().fit(torch.empty((5, 2), device="meta"), y[:5])


# --- a card, as far as a machine without one can show -----------------------------------------


class There:
    """An array that says it lies on a card."""

    def __init__(self, values, number=0):
        self.values, self.number, self.shape = values, number, values.shape
        self.device = f"cuda:{number}"

    def __dlpack__(self, **options):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return 2, self.number

    def get(self):
        return self.values

    def __array_namespace__(self, api_version=None):
        return Namespace

    def to(self, device):
        raise AssertionError


class Namespace:
    @staticmethod
    def asarray(values, device):
        return There(values, int(device.partition(":")[2]))


@pytest.fixture
def card(monkeypatch):
    seen = []

    def config(**settings):
        seen.append(settings)
        return mercer.config()

    monkeypatch.setattr(foreign, "config", config)
    monkeypatch.setattr(foreign, "in_place", foreign.on_host)  # there is no card
    return seen


def test_rows_on_a_card_are_worked_with_there(card):
    machine = mercer.KernelRidge(0.1, kernel=Gaussian(2.0)).fit(There(X, 1), There(y, 1))
    found = machine.predict(There(Z, 1))
    assert card == [{"backend": "torch", "device": "cuda:1"}] * 2
    assert isinstance(found, There) and found.device == "cuda:1"
    np.testing.assert_array_equal(found.values, machine.predict(Z))


def test_arrays_on_two_devices_are_refused(card):
    machine = mercer.KernelRidge()
    with pytest.raises(
        ValueError, match=r"KernelRidge.fit: X is on 'cuda:0', but y is on 'cuda:1'"
    ):
        machine.fit(There(X), There(y, 1))
    with pytest.raises(ValueError, match=r"X is on 'cuda:0', but y is on 'cpu'"):
        machine.fit(There(X), torch.from_numpy(y))
    with pytest.raises(ValueError, match=r"X is an array of NumPy.*but y is on 'cuda:0'"):
        machine.fit(X, There(y))
    with mercer.config(backend="torch", device="cuda:1"):
        with pytest.raises(ValueError, match=r"X is on 'cuda:0', but config\(device='cuda:1'\)"):
            machine.fit(There(X), There(y))
    assert not hasattr(machine, "solution_") and not card


@pytest.mark.parametrize("rows", [[There(X[0]), There(X[1])], (There(X[0], 1),)])
def test_lists_of_arrays_on_a_card_are_refused(rows):
    said = r"arrays on 'cuda:[01]': make one array of them first, e.g. by torch.stack\(rows\)"
    machine = mercer.KernelRidge().fit(X, y)
    for work in (machine.predict, Gaussian(1.0), mercer.KMeans(2).fit):
        with pytest.raises(TypeError, match=said):
            work(rows)
    with pytest.raises(TypeError, match=said):
        mercer.KernelRidge().fit(X, [There(np.array(value)) for value in y])


def test_lists_of_arrays_of_the_processor_are_rows():
    rows = [torch.from_numpy(row) for row in X]
    found, wanted = (mercer.KernelRidge(0.1).fit(each, y).dual_coef_ for each in (rows, X))
    np.testing.assert_array_equal(found, wanted)


def test_views_with_the_sign_turned_are_read():
    rows = torch.from_numpy(X)
    turned = torch.complex(torch.zeros_like(rows), -rows).conj().imag
    assert turned.is_neg()
    np.testing.assert_array_equal(foreign.on_host(turned), X)


def test_full_products_in_two_threads_at_a_time():
    """The setting is one for all threads: it holds until the last of them is done."""
    settings = torch.backends.cuda.matmul
    name = "fp32_precision" if hasattr(settings, "fp32_precision") else "allow_tf32"
    before, first, second = getattr(settings, name), full_float32(), full_float32()
    first.__enter__()
    second.__enter__()
    inside = getattr(settings, name)
    first.__exit__(None, None, None)
    assert getattr(settings, name) == inside
    second.__exit__(None, None, None)
    assert getattr(settings, name) == before


# --- tensors on a card: rows stay where they are ------------------------------------------------


@pytest.fixture
def in_place(monkeypatch):
    """Let tensors of the CPU be those of a card; count rows that are brought from there."""
    brought = []
    monkeypatch.setattr(foreign, "device_name", lambda X: "cuda:0")
    monkeypatch.setattr(foreign, "config", lambda **_: mercer.config())
    monkeypatch.setattr(Device, "is_card", True)
    monkeypatch.setattr(Device, "free", lambda self: 10**9)
    monkeypatch.setattr(backend, "is_available", lambda: False)
    monkeypatch.setattr("mercer.rows.staging.bring", _noting(brought, staging.bring))
    mercer.backends._try.cache_clear()
    with mercer.config(backend="torch"):  # without a card the CPU
        yield brought
    mercer.backends._try.cache_clear()


def _noting(brought, verb):
    def noted(tensor):
        if tensor.ndim == 2:  # vectors may travel
            brought.append(tuple(tensor.shape))
        return verb(tensor)

    return noted


@pytest.mark.parametrize(("machine", "target", "verbs"), MACHINES, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64])
def test_rows_stay_on_the_card(in_place, machine, target, verbs, dtype):
    rows, new = (torch.from_numpy(4.0 * part).to(dtype) for part in (X, Z))
    given = () if target is None else (torch.from_numpy(target),)
    machine.fit(rows, *given)
    found = {verb: getattr(machine, verb)(new) for verb in verbs}
    whole = [shape for shape in in_place if shape[0] >= len(X) and "support_" not in vars(machine)]
    with mercer.config(backend=None, device=None):
        machine.fit(rows.numpy(), *([] if target is None else [target]))
        for verb, answer in found.items():
            assert torch.is_tensor(answer)
            wanted = np.abs(getattr(machine, verb)(new.numpy()))
            np.testing.assert_allclose(np.abs(answer.numpy()), wanted, atol=2e-3)
    assert len(whole) <= 1  # points of the expansion, which a machine keeps


def test_undefined_entries_on_a_card_are_named(in_place):
    rows = torch.from_numpy(X.copy())
    rows[7, 2] = torch.nan
    machine = mercer.KernelRidge(kernel=Gaussian(2.0))
    with pytest.raises(ValueError, match=r"NaN: 1 bad value.*row 7, column 2"):
        machine.fit(rows, torch.from_numpy(y))
    machine.fit(torch.from_numpy(X), torch.from_numpy(y))
    with pytest.raises(ValueError, match=r"NaN: 1 bad value.*row 7, column 2"):
        machine.predict(rows)


def test_rows_that_change_after_a_fit_change_no_certificate(in_place):
    rows = torch.from_numpy(X.copy())
    machine = mercer.SVC(kernel=Gaussian(2.0)).fit(rows, torch.from_numpy(LABELS))
    rows += 5.0
    assert machine.certificate_.ok


def test_given_matrices_come_to_the_host(in_place):
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2) / 8)
    machine = mercer.SVC(kernel="precomputed").fit(torch.from_numpy(K), torch.from_numpy(LABELS))
    assert machine.certificate_.ok


def test_integers_on_a_card_are_counts(in_place):
    counts = np.random.default_rng(1).poisson(3.0, (60, 4))
    labels = (counts[:, 0] > 3).astype(int)
    machine = mercer.NaiveBayes().fit(torch.from_numpy(counts), torch.from_numpy(labels))
    found = machine.predict_proba(torch.from_numpy(counts)).numpy()
    np.testing.assert_allclose(found, machine.fit(counts, labels).predict_proba(counts))


@pytest.mark.parametrize(
    "machine",
    [mercer.SpectralClustering(3, neighbors=8), mercer.LabelPropagation(), mercer.Perceptron()],
    ids=lambda m: type(m).__name__,
)
def test_machines_have_rows_of_their_own(in_place, machine):
    rows = torch.from_numpy(X.copy())
    machine.fit(rows, torch.from_numpy((X[:, 0] > 0).astype(int)))
    before = machine.predict(Z)
    rows *= 7.0
    np.testing.assert_array_equal(machine.predict(Z), before)
    assert machine.certificate_.ok


# --- beside machines: tensors of a card, which no copy of NumPy is made of by itself -------------


@pytest.fixture
def closed(in_place, monkeypatch):
    def refuse(self, *args, **options):
        raise AssertionError("a tensor of a card has no such method")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)


def there(values):
    return torch.from_numpy(np.array(values))


ASKED = [
    (mercer.PCA(2, kernel=Gaussian(2.0)), "squared_distance"),
    (mercer.NearestNeighbors(3), "kneighbors"),
    (mercer.GaussianProcess(kernel=Gaussian(2.0)), "sample_y"),
    (mercer.GaussianMixture(2), "bic"),
]


@pytest.mark.parametrize(("machine", "verb"), ASKED, ids=lambda m: m if isinstance(m, str) else "")
def test_questions_of_single_machines(closed, machine, verb):
    machine.fit(there(X), there(LABELS))
    found = getattr(machine, verb)(there(Z))
    machine.fit(X, LABELS)
    wanted = getattr(machine, verb)(Z)
    several = isinstance(wanted, tuple)
    for one, other in zip(found, wanted, strict=True) if several else [(found, wanted)]:
        assert torch.is_tensor(one) == isinstance(other, np.ndarray)
        np.testing.assert_allclose(one.numpy() if torch.is_tensor(one) else one, other, atol=2e-3)


def test_kernels_of_tensors_are_tensors(closed):
    kernel = Gaussian(2.0)
    np.testing.assert_allclose(kernel(there(X), there(Z)).numpy(), kernel(X, Z), atol=1e-12)
    np.testing.assert_allclose(kernel.diag(there(X)).numpy(), kernel.diag(X))


def test_searches_over_tensors(closed):
    machine, grid = mercer.SVC(kernel=Gaussian(2.0)), {"C": [0.1, 1.0]}
    found = mercer.tune(machine, there(X), there(LABELS), grid=grid, cv=3)
    wanted = mercer.tune(machine, X, LABELS, grid=grid, cv=3)
    assert found.best_params == wanted.best_params
    np.testing.assert_allclose(found.best_score, wanted.best_score)
    choice = mercer.choose(there(X), there(LABELS), machine=machine, cv=3)
    assert torch.is_tensor(choice.machine[-1].predict(there(X)))


def test_parameters_that_are_tensors(closed):
    costs = np.linspace(0.5, 2.0, 80)
    found = mercer.SVC(C=there(costs), kernel=Gaussian(2.0)).fit(there(X), there(LABELS))
    wanted = mercer.SVC(C=costs, kernel=Gaussian(2.0)).fit(X, LABELS)
    np.testing.assert_allclose(found.decision_function(Z), wanted.decision_function(Z), atol=2e-3)
    means = mercer.KMeans(3, init=there(X[:3])).fit(there(X))
    np.testing.assert_array_equal(means.predict(Z), mercer.KMeans(3, init=X[:3]).fit(X).predict(Z))
