"""The nearest neighbours by kernels, in Triton's interpreter: the answers of the reference."""

import numpy as np
import pytest
from helpers.card_compilation import resources, told_by

torch = pytest.importorskip("torch", reason="make test-torch")
triton = pytest.importorskip("triton", reason="without Triton, plain torch runs")
from triton.runtime.errors import OutOfResources  # noqa: E402 - after the skips

from mercer.backends.reference.backend import Reference  # noqa: E402
from mercer.backends.torch import neighbours as searches  # noqa: E402
from mercer.backends.torch.backend import Torch  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402
from mercer.backends.torch.triton import leaves as buckets  # noqa: E402
from mercer.backends.torch.triton.nearest import AbsoluteCandidates, Candidates, measure  # noqa: E402
from mercer.expression import AbsDist, Exp, SqDist  # noqa: E402

GAUSSIAN = Exp(-0.1 * SqDist())
FUSED = Torch("cpu", Reference(), fused=True)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def searched(monkeypatch):
    """How many rows each kind of search was asked for, and how many stayed in doubt."""
    asked, search = [], searches._Search._by_candidates

    def noted(self, rows, way):
        left = search(self, rows, way)
        asked.append((getattr(way, "_split", None), len(rows), len(left)))
        return left

    monkeypatch.setattr(searches._Search, "_by_candidates", noted)
    return asked


def compare(X, Y, count, expression=GAUSSIAN, backend=FUSED):
    index, squared = backend.neighbours(expression, X, Y, count)
    wanted, exact = Reference().neighbours(expression, X, Y, count)
    np.testing.assert_array_equal(index, wanted)
    np.testing.assert_allclose(squared, exact, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    ("count", "features"), [(1, 1), (1, 17), (2, 6), (3, 64), (3, 200), (2, 600)]
)
@pytest.mark.parametrize("rows", [1, 130])
def test_normal_rows_are_seldom_searched_again(rng, searched, count, features, rows):
    Y = rng.standard_normal((300, features))
    compare(rng.standard_normal((rows, features)), Y, count)
    assert searched[0][:2] == (features <= 5, rows)
    assert searched[-1][2] <= 0.1 * rows


def test_neighbours_within_the_rows_leave_out_each_row_itself(rng, searched):
    rows = rng.standard_normal((290, 7))
    compare(rows, None, 2)
    assert sum(left for split, _, left in searched if not split) < 15


def test_many_neighbours(rng, searched, monkeypatch):
    monkeypatch.setattr(buckets, "_BUCKETS", 1.5)
    monkeypatch.setattr(buckets, "_COLUMNS", 1)
    compare(rng.standard_normal((20, 30)), rng.standard_normal((1500, 30)), 64)
    assert searched[0][:2] == (False, 20)
    assert searched[0][2] < 10


@pytest.mark.parametrize("count", [1, 3])
def test_of_equally_near_columns_the_first(rng, count):
    Y = rng.standard_normal((320, 4))
    Y[150:] = Y[:170]
    X = np.concatenate([Y[100:200], rng.standard_normal((40, 4))])
    compare(X, Y, count)
    compare(Y, None, count)


def test_a_grid_is_full_of_ties(rng, searched):
    compare(*(rng.integers(0, 4, (n, 3)).astype(float) for n in (90, 300)), 3)
    assert searched[-1][2] > 0  # more of them than candidates: found by blocks


def test_equal_columns(searched):
    compare(np.ones((5, 3)), np.ones((260, 3)), 2)
    assert searched[-1][2] == 5


def test_close_groups_want_finer_products(rng, searched):
    """Far apart beside their own size: h alone cannot tell their rows from one another."""
    means = 20.0 * rng.standard_normal((12, 16))
    X, Y = (means[rng.integers(0, 12, n)] + rng.standard_normal((n, 16)) for n in (100, 400))
    compare(X, Y, 3)
    (first, *_, left), (second, *_, rest) = searched
    assert not first
    assert second
    assert rest < 0.5 * left


def test_a_way_that_fails_is_left_out_for_the_rows_that_follow(rng, searched, monkeypatch):
    monkeypatch.setattr(searches, "_AT_ONCE", 20)
    means = 1e5 * rng.standard_normal((12, 16))
    X, Y = (means[rng.integers(0, 12, n)] + rng.standard_normal((n, 16)) for n in (60, 400))
    compare(X, Y, 3)
    assert searched == [(False, 20, 20), (True, 20, 20)]


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-100, 1e-30, 1e30, 1e100, 1e160, 1e300])
def test_hostile_scales(rng, scale):
    compare(scale * rng.standard_normal((6, 5)), scale * rng.standard_normal((270, 5)), 2)


@pytest.mark.parametrize("scales", [(1.0, 1e-8), (1e-8, 1.0), (1e12, 1.0), (1.0, 1e12)])
def test_rows_and_columns_of_different_sizes(rng, scales):
    of_rows, of_columns = scales
    compare(of_rows * rng.standard_normal((9, 5)), of_columns * rng.standard_normal((270, 5)), 2)


def test_an_outlier_takes_the_digits_of_all_others(rng):
    X, Y = rng.standard_normal((30, 4)), rng.standard_normal((280, 4))
    Y[7] *= 1e7
    X[3] *= 1e5
    compare(X, Y, 2)


@pytest.mark.parametrize("offset", [1e3, 1e9])
def test_rows_far_from_the_origin(rng, offset):
    compare(offset + rng.standard_normal((30, 4)), offset + rng.standard_normal((280, 4)), 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite(rng, bad):
    X, Y = rng.standard_normal((30, 4)), rng.standard_normal((280, 4))
    X[3, 1] = bad
    compare(X, Y, 2)
    Y[5, 2] = bad
    compare(X, Y, 2)


@pytest.mark.parametrize("shape", [(3, 40), (40, 255)])
def test_few_columns_are_searched_by_blocks(rng, searched, shape):
    n, m = shape
    X, Y = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    for count in (1, 2, m):
        compare(X, Y, count)
    compare(X, Y, 2, Exp(-1.0 * AbsDist()))
    assert not searched


# --- sums of absolute differences ----------------------------------------------------------------

LAPLACIAN = Exp(-0.1 * AbsDist())


@pytest.mark.parametrize(("count", "features"), [(1, 1), (4, 9), (6, 30)])
def test_absolute_differences(rng, searched, count, features):
    X, Y = rng.standard_normal((20, features)), rng.standard_normal((1100, features))
    compare(X, Y, count, LAPLACIAN)
    assert searched[0][:2] == (None, 20)
    assert searched[0][2] <= 1


@pytest.mark.parametrize("scale", [1e-300, 1e-42, 1e-20, 1e20, 1e36, 1e300])
def test_absolute_differences_of_hostile_scales(rng, scale):
    X, Y = scale * rng.random((4, 3)), scale * rng.random((1030, 3))
    compare(X, Y, 2, Exp((-1.0 / scale) * AbsDist()))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_absolute_differences_that_are_not_finite(rng, bad):
    X, Y = rng.standard_normal((9, 4)), rng.standard_normal((1030, 4))
    X[3, 1] = bad
    compare(X, Y, 2, LAPLACIAN)
    Y[5, 2] = bad
    compare(X, Y, 2, LAPLACIAN)


def test_absolute_differences_far_from_the_origin_with_equal_columns(rng, searched):
    Y = 1e7 + rng.standard_normal((1100, 3))
    Y[500:] = Y[:600]
    compare(Y[490:520], Y, 3, LAPLACIAN)
    assert searched[0][2] <= 3
    compare(np.round(Y[:40]), np.round(Y), 3, LAPLACIAN)  # ties


def test_absolute_differences_within_the_rows(rng, monkeypatch, searched):
    monkeypatch.setattr(buckets, "_COLUMNS", 2)
    compare(rng.standard_normal((300, 4)), None, 2, LAPLACIAN)
    assert searched[0][1] == 300


def test_no_other_column_has_a_smaller_sum_than_the_bound(rng):
    X, Y = 3.0 + rng.standard_normal((30, 20)), 3.0 + rng.standard_normal((1500, 20))
    X[::7] *= 30.0
    found = AbsoluteCandidates(torch.from_numpy(Y), 2).search(torch.from_numpy(X))
    D = Reference().pairs(AbsDist(), X, Y, np.float64).dense()
    np.put_along_axis(D, found.numbers.numpy(), np.inf, axis=1)
    slack = D.min(axis=1) - found.bound.numpy()
    assert (slack >= 0).all()
    assert (slack <= 1e-3 * D.min(axis=1)).mean() > 0.7


# --- cards without room ----------------------------------------------------------------------


def test_a_card_without_room_for_a_tile(rng, monkeypatch):
    def full(self, rows):
        raise OutOfResources(300_000, 100_000, "shared memory")

    monkeypatch.setattr(Candidates, "search", full)
    compare(rng.standard_normal((9, 4)), rng.standard_normal((280, 4)), 2)


@pytest.mark.parametrize("room", [256, 0])
def test_a_full_card_falls_to_fewer_rows_at_a_time(rng, monkeypatch, searched, room):
    search = Candidates.search

    def full(self, rows):
        if len(rows) > room:
            raise torch.cuda.OutOfMemoryError("full")
        return search(self, rows)

    monkeypatch.setattr(Candidates, "search", full)
    monkeypatch.setattr(Device, "block_entries", lambda self: 1 << 16)
    monkeypatch.setattr(Device, "free", lambda self: 0)
    compare(rng.standard_normal((300, 4)), rng.standard_normal((280, 4)), 1)
    assert [rows for _, rows, _ in searched] == ([256, 44] if room else [])


def test_no_other_column_is_nearer_than_the_bound(rng):
    """The bound is certain: of all columns that are no candidates, in float64."""
    for features, split in ((3, False), (40, False), (40, True), (100, True), (700, False)):
        X, Y = rng.standard_normal((50, features)), rng.standard_normal((400, features))
        X[::7] *= 30.0
        found = Candidates(torch.from_numpy(Y), 2, split=split).search(torch.from_numpy(X))
        D = Reference().pairs(SqDist(), X, Y, np.float64).dense()
        np.put_along_axis(D, found.numbers.numpy(), np.inf, axis=1)
        slack = D.min(axis=1) - found.bound.numpy()
        assert (slack >= 0).all()
        assert (slack <= 0.05 * np.square(X).sum(axis=1) + 5.0).all()


COMPILE = """
import subprocess, sys
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from mercer.backends.torch.triton import nearest as candidates
from mercer.backends.torch.triton.launch import compiled

kinds = {"X": "*fp16", "Y": "*fp16", "HY": "*fp32", "OUT": "*fp32", "DROPPED": "*fp32"}
for depth in (16, 64, 512, 832):
    text, at_once, stages = candidates._by_depth(depth)
    fixed = {"BM": candidates._CANDIDATES_HEIGHT, "BN": candidates._CANDIDATES_WIDTH, "BD": at_once}
    kernel = compiled(text)
    names = kernel.arg_names
    types = {k: "constexpr" if k in fixed else kinds.get(k, "i32") for k in names}
    even = [k for k, name in enumerate(names) if name in kinds or name in ("stride", "depth")]
    source = ASTSource(
        kernel,
        types,
        {(names.index(k),): value for k, value in fixed.items()},
        {(k,): [["tt.divisibility", 16]] for k in even},
    )
    options = {"num_warps": candidates._CANDIDATES_WARPS, "num_stages": stages}
    made = compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    with open(sys.argv[1], "wb") as file:
        file.write(made.asm["cubin"])
    told = subprocess.run([sys.argv[2], "-res-usage", sys.argv[1]], capture_output=True, text=True)
    print(made.metadata.shared, *told.stdout.splitlines()[-1].split())
"""


def test_the_kernel_fits_a_card_and_spills_nothing(tmp_path):
    """Compiled for sm_90, which needs no card: two programs share the registers of a processor."""
    told = told_by(COMPILE, tmp_path)
    assert len(told) == 4
    for shared, found in map(resources, told):
        assert shared <= 227 << 10
        assert int(found["REG"]) <= 128
        assert found["STACK"] == found["LOCAL"] == "0"


def test_chosen_pairs_are_measured_in_float64(rng):
    X, Y = rng.standard_normal((40, 70)).astype(np.float32), rng.standard_normal((90, 70))
    numbers = rng.integers(-1, 90, (40, 5))
    apart = X[:, None, :].astype(float) - Y[numbers]
    for key, exact in ((SqDist(), np.square(apart)), (AbsDist(), np.abs(apart))):
        found = measure(*(torch.from_numpy(a) for a in (X, Y, numbers)), key).numpy()
        wanted = np.where(numbers < 0, np.inf, exact.sum(axis=2))
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize(("copies", "used"), [(1, True), (2, False)])
def test_rows_without_room_on_the_card_are_sent_block_by_block(
    rng, monkeypatch, searched, copies, used
):
    """Columns have to be there, with room for what is made of them."""
    monkeypatch.setattr(Device, "has_room", lambda self, size: size < 90_000)
    monkeypatch.setattr(searches, "_COPIES", copies)
    X, Y = rng.standard_normal((300, 40)), rng.standard_normal((260, 40))
    assert not TorchPairs(SqDist(), X, Y, np.float64, Device("cpu")).leaves[0].rows.is_resident
    compare(X, Y, 1)
    assert bool(searched) == used
