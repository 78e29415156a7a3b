"""Arrays of other libraries, by one that is made up: read, and answered in kind."""

import numpy as np
import pytest

from mercer import KernelRidge
from mercer.rows.foreign import device_name, in_kind, is_foreign, on_host

rng = np.random.default_rng(0)
X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)


class Wrapped:
    """An array in the memory of the processor that is not NumPy's."""

    device = "here"

    def __init__(self, values, kind=1):
        self.values, self.shape, self.kind = values, values.shape, kind

    def __dlpack__(self, **options):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.kind, 0

    def __array_namespace__(self, api_version=None):
        return Wrapped

    @staticmethod
    def asarray(values, device):
        assert device == "here"
        return Wrapped(values)


def test_who_is_foreign():
    assert is_foreign(Wrapped(X))
    for other in (X, X[0, 0], [1.0], "text", None, 3):
        assert not is_foreign(other)
    assert [device_name(Wrapped(X, kind)) for kind in (1, 2, 3)] == ["cpu", "cuda:0", "cpu"]
    np.testing.assert_array_equal(on_host(Wrapped(X)), X)


def test_answers_in_kind():
    machine = KernelRidge(kernel="gaussian").fit(Wrapped(X), Wrapped(y))
    found = machine.predict(Wrapped(X))
    assert isinstance(found, Wrapped)
    np.testing.assert_array_equal(found.values, KernelRidge(kernel="gaussian").fit(X, y).predict(X))
    assert machine.score(Wrapped(X), Wrapped(y)) == machine.score(X, y)


def test_what_is_not_numbers_stays_as_it_is():
    words = np.array(["yes", "no"])
    assert in_kind(words, Wrapped(X)) is words
    assert in_kind(0.5, Wrapped(X)) == 0.5
    both = in_kind((y, words), Wrapped(X))
    assert isinstance(both[0], Wrapped) and both[1] is words


def test_an_unknown_device_is_named():
    with pytest.raises(ValueError, match=r"on the device 'here': there are 'cpu' and 'cuda'"):
        KernelRidge().fit(Wrapped(X, 8), y)
