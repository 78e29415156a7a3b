"""Journals: what was changed is not believed, what could not be written is taken back."""

import errno
import json
import os

import numpy as np
import pytest

from mercer.selection import JournalError
from mercer.selection.journal import Journal
from mercer.selection.sharing.base import Judged

PARTS = {"the rows": "0123456789abcdef", "the grid": "fedcba9876543210"}
RESULTS = {(0, 1): Judged({"score": 0.8125}, {}, 0.5, 0.25, "", "")}


def journal(path, units=3, parts=PARTS):
    with Journal(path, parts) as kept:
        for i in range(units):
            kept.write([(f"unit {i}", RESULTS)])
    return path.read_bytes()


def read(path, parts=PARTS):
    with Journal(path, parts) as kept:
        return dict(kept.finished)


def test_any_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "journal"
    content = journal(path)
    lines = content.splitlines(keepends=True)
    second = len(lines[0])
    rng = np.random.default_rng(0)
    for at in rng.choice(np.arange(second, second + len(lines[1]) - 1), 60, replace=False):
        changed = bytearray(content)
        changed[at] = ord("7") if changed[at] != ord("7") else ord("8")
        path.write_bytes(changed)
        with pytest.raises(JournalError, match=r"journal: line 2 .*Remove that line") as caught:
            read(path)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == changed  # nothing is mended behind the user's back


def test_a_removed_line_is_only_missing(tmp_path):
    path = tmp_path / "journal"
    lines = journal(path).splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1] + lines[3])
    assert sorted(read(path)) == ["unit 0", "unit 2"]


def test_a_changed_first_line_is_told(tmp_path):
    path = tmp_path / "journal"
    content = journal(path)
    path.write_bytes(content.replace(b"0123456789", b"0123456780", 1))
    with pytest.raises(JournalError, match=r"line 1.*is corrupt.*another journal, or remove"):
        read(path)


def test_lines_of_another_journal_are_not_believed(tmp_path):
    path, other = tmp_path / "one", tmp_path / "other"
    lines = journal(path).splitlines(keepends=True)
    stranger = journal(other, parts=PARTS | {"the rows": "ffff"}).splitlines(keepends=True)[1]
    path.write_bytes(b"".join([*lines, stranger]))
    with pytest.raises(JournalError, match=r"line 5"):
        read(path)


def test_journals_without_checksums_are_refused_with_words(tmp_path):
    path = tmp_path / "journal"
    first = {"kind": "mercer tuning journal", "form": 1, "parts": PARTS}
    path.write_text(json.dumps(first) + "\n" + '{"unit": "a", "results": []}\n')
    with pytest.raises(JournalError, match=r"another version.*format is 1.*or remove"):
        read(path)


@pytest.mark.parametrize("place", ["first", "later"])
def test_deep_nesting_is_a_broken_line(place, tmp_path):
    path = tmp_path / "journal"
    first = journal(path, 0)
    deep = b"[" * 100_000 + b"]" * 100_000 + b"\n"
    path.write_bytes(deep if place == "first" else first + deep)
    match = "not a tuning journal" if place == "first" else "line 2"
    with pytest.raises(JournalError, match=match):
        read(path)


class FullDisk:
    """A file on a disk that takes a few bytes more, and then none."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        part = bytes(data)[: self.room]
        self.room -= len(part)
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(part)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("room", [0, 1, 30])
def test_a_full_disk_is_told_with_the_path_and_leaves_whole_lines(room, tmp_path):
    path = tmp_path / "journal"
    before = journal(path)
    with Journal(path, PARTS) as kept:
        kept._file = FullDisk(kept._file, room)
        with pytest.raises(OSError, match=r"could not be written .*Free disk space.*") as caught:
            kept.write([("a", RESULTS), ("b", RESULTS)])
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == str(path)
        assert path.read_bytes() == before
        kept._file = kept._file.file
        kept.write([("c", RESULTS)])  # there is room again
    assert sorted(read(path)) == ["c", "unit 0", "unit 1", "unit 2"]
