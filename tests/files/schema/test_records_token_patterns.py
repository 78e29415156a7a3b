"""Regular expressions of model files: those that take linear time, and no others."""

import re

import pytest
from files.mutations import Model

import mercer
from mercer.files.schema.records import is_linear_pattern

LINEAR = [r"(?u)\b\w\w+\b", r"\w+", r"\b\w+\b", r"\w{3,}", r"\S+", r"[a-z]+", r"[^\s,]{2,}",
          r"(?i)[a-z0-9'-][a-z0-9'-]+", r"\w{4}\b"]  # fmt: skip
OTHER = [r"(\w+\s?)+!", r"(a|aa)+$", r"[a-z]+\b", r"\S+\b", r"\w+\w+", r"\w+[a-z]+", r"(?:\w+)+",
         r"(\w)\1+", r"\w*", r"a.*b", "[", "[]", r"[\x", "\\", "", r"\w{1,999}", r"\w{999}\b",
         "[z-a]", r"\w+?\b", None, 3, "[a]" * 100]  # fmt: skip


@pytest.mark.parametrize("pattern", LINEAR)
def test_runs_of_characters(pattern):
    assert is_linear_pattern(pattern)
    for text in ("a" * 10**5, "a" * 10**5 + "!", "a_" * 50_000, "-!" * 50_000, "\u00e9" * 10**5):
        assert sum(map(len, re.findall(pattern, text))) <= len(text)


@pytest.mark.parametrize("pattern", OTHER)
def test_others(pattern):
    assert not is_linear_pattern(pattern)


def test_files(tmp_path):
    words = mercer.BagOfWords(token_pattern=r"[a-z]+").fit(["one two", "three"])
    mercer.save(words, tmp_path / "words.mercer")
    again = mercer.load(tmp_path / "words.mercer")
    assert (again.transform(["two two"]) != words.transform(["two two"])).nnz == 0
    model = Model((tmp_path / "words.mercer").read_bytes())
    model.tree["machine"]["record"][1]["token_pattern"] = r"(\w+\s?)+!"
    (tmp_path / "slow.mercer").write_bytes(model.data())
    with pytest.raises(mercer.ModelFormatError, match=r"token_pattern .* may grow without bound"):
        mercer.load(tmp_path / "slow.mercer")
    with pytest.raises(mercer.ModelFormatError, match="one class of characters, repeated"):
        mercer.save(words.set_params(token_pattern=r"(\w+\s?)+!"), tmp_path / "other.mercer")
    assert not (tmp_path / "other.mercer").exists()
