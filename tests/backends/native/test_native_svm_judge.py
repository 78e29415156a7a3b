"""Sums of chains at judged rows, on each instruction set: several tiles of rows and columns."""

import numpy as np
import pytest

import mercer
from mercer.backends.box_programs import Box, BoxPath, PathStep

native = pytest.importorskip("mercer._native")
from mercer.backends.native.backend import Native  # noqa: E402 - only where it is compiled

N = 700
STAGES = [PathStep(bound=0.1), *(PathStep(bound=2.0**s, start=s) for s in range(6))]


@pytest.fixture(params=["avx512", "avx2", "baseline"])
def isa(request, monkeypatch):
    if request.param not in native.instruction_sets():
        pytest.skip(f"no {request.param} here")
    monkeypatch.setenv("MERCER_ISA", request.param)


def chains_of(judged):
    """Pairs of four classes, shuffled rows of which some come twice, and every ninth."""
    rng = np.random.default_rng(1)
    signs = np.where(rng.standard_normal(N) > 0, 1.0, -1.0)
    runs = np.split(np.arange(N), 4)
    rows = [np.concatenate([runs[a], runs[b]]) for a in range(4) for b in range(a)]
    for own in (*rows, rng.integers(0, N, 300), np.arange(0, N, 9)):
        p = signs[own]
        box = Box(p, np.zeros(len(p)), np.minimum(p, 0.0), np.maximum(p, 0.0), rows=own)
        yield BoxPath(box, np.zeros(1), STAGES, judged)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("which", ["runs", "shuffled", "one"])
def test_sums_are_those_of_the_coefficients(dtype, which):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2)).astype(dtype)
    runs = np.concatenate([np.arange(0, 170), np.arange(200, 400), [450], np.arange(500, 505)])
    judged = {"runs": runs, "shuffled": rng.permutation(N)[:300], "one": np.array([7])}[which]
    chains = list(chains_of(judged))
    chains.append(BoxPath(chains[0].box, np.zeros(1), STAGES[:2], judged[:1]))
    with mercer.config(threads=2):
        answers = Native().box_paths(K, chains, 1e-3, 100_000, None)
    with mercer.config(threads=1):
        alone = Native().box_paths(K, chains, 1e-3, 100_000, None)
    for chain, answer, other in zip(chains, answers, alone, strict=True):
        expected = answer.b @ K[np.ix_(chain.box.rows, chain.evaluation_rows)].astype(np.float64)
        sizes = np.abs(answer.b).sum(axis=1, keepdims=True)
        assert (np.abs(answer.values - expected) <= 4 * np.finfo(dtype).eps * sizes).all()
        np.testing.assert_array_equal(answer.values, other.values)
