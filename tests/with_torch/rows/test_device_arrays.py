"""Vectors on a card say what NumPy's say of the same numbers."""

import operator
import pickle

import numpy as np
import pytest
from scipy.special import xlogy

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.rows.device_arrays import CardArray  # noqa: E402 - after the skip

rng = np.random.default_rng(0)
X = np.array([1.5, -2.0, 0.0, np.inf, -np.inf, np.nan, 3.0, -0.5])
Y = rng.standard_normal(8)
MASK = np.array([True, False, True, True, False, False, True, False])
NUMBERS = np.array([3, 0, 6])


def there(x):
    return CardArray(torch.from_numpy(np.array(x)))


def same(found, wanted):
    on_card = isinstance(found, CardArray)
    assert on_card == (np.ndim(wanted) == 1)
    np.testing.assert_array_equal(np.asarray(found), wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype


BINARY = ["add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "eq", "ne", "pow"]


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
def test_operators(name):
    verb = getattr(operator, name)
    for first, second in ((X, Y), (X, 2.0), (2.0, X), (X, np.float64(0.0)), (1, X)):
        wanted = verb(first, second)
        for left, right in (
            (there(first) if np.ndim(first) else first, second),
            (first, there(second) if np.ndim(second) else second),
        ):
            if isinstance(left, CardArray) or isinstance(right, CardArray):
                same(verb(left, right), wanted)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize(
    "ask",
    [
        lambda x, y, mask, k: np.abs(x),
        lambda x, y, mask, k: -x,
        lambda x, y, mask, k: np.sign(x),
        lambda x, y, mask, k: np.square(y),
        lambda x, y, mask, k: np.sqrt(x),
        lambda x, y, mask, k: np.hypot(2.0, y),
        lambda x, y, mask, k: np.maximum(x, 0.0),
        lambda x, y, mask, k: np.minimum(x, y),
        lambda x, y, mask, k: np.maximum(np.nan, y),
        lambda x, y, mask, k: np.isfinite(x),
        lambda x, y, mask, k: np.isinf(x),
        lambda x, y, mask, k: np.isnan(x),
        lambda x, y, mask, k: ~mask,
        lambda x, y, mask, k: mask & (y > 0),
        lambda x, y, mask, k: (x > 0) | mask,
        lambda x, y, mask, k: np.where(mask, x, y),
        lambda x, y, mask, k: np.where(mask, 1.0, -1.0),
        lambda x, y, mask, k: np.where(mask, 0.0, y),
        lambda x, y, mask, k: np.where(mask, True, y > 0),
        lambda x, y, mask, k: np.flatnonzero(mask),
        lambda x, y, mask, k: np.count_nonzero(mask),
        lambda x, y, mask, k: np.clip(x, -1.0, y),
        lambda x, y, mask, k: np.clip(0.0, y - 1, y),
        lambda x, y, mask, k: np.nan_to_num(x, posinf=0.0, neginf=0.0),
        lambda x, y, mask, k: np.nan_to_num(x, nan=7.0),
        lambda x, y, mask, k: np.zeros_like(x),
        lambda x, y, mask, k: np.concatenate([x, y]),
        lambda x, y, mask, k: np.append(x, 0.0),
        lambda x, y, mask, k: mask.sum(),
        lambda x, y, mask, k: mask.any(),
        lambda x, y, mask, k: mask.all(),
        lambda x, y, mask, k: np.any(mask),
        lambda x, y, mask, k: y.max(),
        lambda x, y, mask, k: y.max(initial=9.0),
        lambda x, y, mask, k: x.min(initial=0.0),
        lambda x, y, mask, k: y[:0].max(initial=0.0),
        lambda x, y, mask, k: np.argmax(y),
        lambda x, y, mask, k: x[mask],
        lambda x, y, mask, k: x[k],
        lambda x, y, mask, k: x[2:5],
        lambda x, y, mask, k: y[3],
        lambda x, y, mask, k: y.copy(),
        lambda x, y, mask, k: mask.astype(np.float64),
        lambda x, y, mask, k: np.sign(y).astype(np.int64) + 3 * k.sum(),
        lambda x, y, mask, k: len(x),
        lambda x, y, mask, k: np.asarray(np.union1d(np.asarray(k), [1])),
    ],
)
def test_words(ask):
    wanted = ask(X, Y, MASK, NUMBERS)
    found = ask(*map(there, (X, Y, MASK, NUMBERS)))
    np.testing.assert_array_equal(np.asarray(found), wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype


WHOLE = np.array([3, 0, -2, 7, 1, 5, 2**53 + 1, -9])


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize(
    "ask",
    [
        lambda i, y, mask: i / 7,
        lambda i, y, mask: i / i,
        lambda i, y, mask: 1 / i,
        lambda i, y, mask: np.sqrt(i),
        lambda i, y, mask: np.exp(i),
        lambda i, y, mask: np.log(i),
        lambda i, y, mask: np.hypot(i, 3),
        lambda i, y, mask: xlogy(i, 3),
        lambda i, y, mask: i**2,
        lambda i, y, mask: mask - y,
        lambda i, y, mask: 1 - mask,
        lambda i, y, mask: i @ i,
        lambda i, y, mask: np.where(i, y, 0.0),
    ],
)
def test_whole_numbers_keep_their_digits(ask):
    """Torch divides whole numbers in float32."""
    wanted = np.asarray(ask(WHOLE, Y, MASK))
    found = np.asarray(ask(*map(there, (WHOLE, Y, MASK))))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.max(axis=1, initial=0.5),
        lambda x: np.max(x, axis=0, initial=0.5),
        lambda x: x.max(keepdims=True),
        lambda x: x.sum(keepdims=True),
        lambda x: np.min(x, axis=1),
        lambda x: np.any(x > 0, axis=1),
        lambda x: np.mean(x, axis=0),
        lambda x: np.count_nonzero(x > 0, axis=0),
        lambda x: x[..., 1],
        lambda x: x[[]],
        lambda x: bool(x[:1, 0] > 9),
    ],
)
def test_options_are_followed(ask):
    table = Y.reshape(4, 2)
    found, wanted = np.asarray(ask(there(table))), np.asarray(ask(table))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


@pytest.mark.parametrize(
    "ask",
    [
        lambda i, y: operator.iadd(i, 0.5),
        lambda i, y: operator.itruediv(i, 2),
        operator.imul,
        lambda i, y: i**-1,
        lambda i, y: y[np.array([1.0, 2.0])],
        lambda i, y: bool(y),
    ],
)
def test_what_numpy_refuses_is_refused(ask):
    kinds = TypeError, ValueError, IndexError
    with pytest.raises(kinds):
        ask(WHOLE.copy(), Y.copy())
    i, y = there(WHOLE), there(Y)
    with pytest.raises(kinds):
        ask(i, y)
    np.testing.assert_array_equal(np.asarray(i), WHOLE)


def test_numbers_of_one_bin_are_not_seen_in_another():
    bins, weights = np.array([0, 1, 2, 0]), np.array([np.inf, np.nan, 1.0, 2.0])
    found = np.bincount(there(bins), weights=there(weights), minlength=4)
    np.testing.assert_array_equal(found, [np.inf, np.nan, 1.0, 0.0])


def test_what_the_host_makes_is_written_where_it_belongs():
    x, y = there(Y), Y.copy()
    x %= 0.7
    y %= 0.7
    same(x, y)


def test_products_and_sums_are_those_of_the_host_to_rounding():
    for found, wanted in [
        (there(Y) @ Y, Y @ Y),
        (Y @ there(Y), Y @ Y),
        (np.einsum("i,i->", there(Y), Y), Y @ Y),
        (there(Y).mean(), Y.mean()),
        (there(Y).std(), Y.std()),
        (
            np.bincount(there([0, 1, 1, 0, 2, 1, 0, 2]), weights=there(Y), minlength=3),
            np.bincount([0, 1, 1, 0, 2, 1, 0, 2], weights=Y, minlength=3),
        ),
    ]:
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_writing():
    x, y = there(Y), Y.copy()
    for each in (x, y):
        each[MASK if each is y else there(MASK)] = 0.0
        each[np.array([1, 5])] += 2.0
        each[4] = -1.0
        each[:2] = np.array([8.0, 9.0])
    y += 1.0
    before = x.tensor
    x += 1.0
    assert x.tensor is before  # in place
    same(x, y)


def test_what_a_card_has_no_word_for_is_the_hosts():
    assert isinstance(np.sort(there(Y)), np.ndarray)
    assert isinstance(np.arctan(there(Y)), np.ndarray)
    np.testing.assert_array_equal(np.cumsum(there(Y)), np.cumsum(Y))
    np.testing.assert_array_equal(np.outer(there(Y), Y), np.outer(Y, Y))
    np.testing.assert_array_equal(np.asarray(Y[:, None] * there(Y)), Y[:, None] * Y)
    host = Y.copy()
    host += there(Y)
    np.testing.assert_array_equal(host, 2 * Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(there(Y))), Y)
    np.testing.assert_array_equal(np.array(list(there(Y))), Y)
    with pytest.raises(ValueError, match="broadcast"):
        there(Y) + Y[:3]


def test_what_is_put_there_is_the_cards_own():
    """The caller's array is not written to, nor read again."""
    host = Y.copy()
    found = CardArray.beside(torch.zeros(1), host)
    found[0] = 7.0
    host[1] = 9.0
    np.testing.assert_array_equal(host[0], Y[0])
    np.testing.assert_array_equal(found[1], Y[1])


@pytest.mark.parametrize("value", [0.25, True, 3])
def test_one_number_again_and_again(value):
    given = np.broadcast_to(np.array(value), (5,))
    found = CardArray.beside(torch.zeros(1), given)
    same(found, np.array(given, dtype=np.asarray(value).dtype))
    found[2] = 0
    assert np.asarray(found).tolist() == [value, value, 0, value, value]


def test_read_only_turned_and_empty_arrays_are_put_there():
    rows = Y.copy()
    rows.flags.writeable = False
    for given in (rows, rows[::-1], rows[::2], rows[:0], rows.astype(np.float32), np.int8([1, 2])):
        np.testing.assert_array_equal(np.asarray(CardArray.beside(torch.zeros(1), given)), given)
