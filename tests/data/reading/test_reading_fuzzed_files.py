"""Mutated files are tables or DataErrors; a long run is `python -m fuzz.readers`."""

import pytest
from fuzz.readers import run, seeds


@pytest.mark.parametrize("kind", seeds())
def test_mutated_files(kind):
    tables, wrong = run(kind, 150, seed=20)
    assert not wrong
    assert tables or not seeds()[kind]
