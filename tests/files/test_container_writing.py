"""Files are written whole or not at all, whatever happens on the way (D2, D3, D4)."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from files.fitted import TINY, fit

import mercer
from mercer.files import container
from mercer.files.container import write_file
from mercer.kernels import FromCallable, Gaussian, Kernel, Linear

DATA = TINY


@pytest.fixture
def machine():
    return fit("SVC", DATA)


@pytest.fixture
def path(tmp_path):
    """A file that is there already."""
    path = tmp_path / "model.mercer"
    path.write_bytes(b"earlier")
    return path


def alone(path):
    assert os.listdir(path.parent) == [path.name], "something was left behind"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"),
                                   OSError(errno.EDQUOT, "Disk quota exceeded"),
                                   KeyboardInterrupt(), MemoryError()])  # fmt: skip
@pytest.mark.parametrize("place", ["fsync", "replace"])
def test_what_fails_leaves_the_earlier_file(machine, path, monkeypatch, error, place):
    def fails(*given):
        raise error

    monkeypatch.setattr(os, place, fails)
    with pytest.raises(type(error)) as raised:
        mercer.save(machine, path)
    assert path.read_bytes() == b"earlier"
    alone(path)
    if isinstance(error, OSError):
        assert raised.value.filename == str(path)
        assert raised.value.errno == error.errno


def test_a_disk_that_is_full_names_the_path(machine):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with pytest.raises(OSError, match="/dev"):
        mercer.save(machine, "/dev/full/model.mercer")


def test_places_that_cannot_be_written_to(machine, tmp_path):
    with pytest.raises(FileNotFoundError, match="gone"):
        mercer.save(machine, tmp_path / "gone" / "model.mercer")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        mercer.save(machine, tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    ["with space.mercer", "new\nline.mercer", "naïve-模型-🙂.mercer", "-dash.mercer", "CON.mercer",
     "x" * 248 + ".mercer", "no-extension"],
)  # fmt: skip
def test_names_of_files(machine, tmp_path, name):
    mercer.save(machine, tmp_path / name)
    assert mercer.load(tmp_path / name).classes_.tolist() == [0, 1]
    alone(tmp_path / name)


def test_names_that_are_too_long_are_refused(machine, tmp_path):
    with pytest.raises(OSError, match="xxxx"):
        mercer.save(machine, tmp_path / ("x" * 300))
    assert os.listdir(tmp_path) == []


def test_permissions_are_those_of_any_new_file(machine, path):
    os.chmod(path, 0o640)
    mercer.save(machine, path)
    assert path.stat().st_mode & 0o777 == 0o640
    other = path.with_name("other")
    other.touch()
    mercer.save(machine, path.with_name("new"))
    assert path.with_name("new").stat().st_mode == other.stat().st_mode


def test_a_link_is_not_followed_to_somewhere_else(machine, path, tmp_path):
    link = tmp_path / "link.mercer"
    link.symlink_to(path)
    mercer.save(machine, link)
    assert not link.is_symlink()
    assert path.read_bytes() == b"earlier"


SAVING = """
import sys, numpy as np, mercer
machine = mercer.KMeans(2, init=np.random.default_rng(0).normal(size=(20_000, 50)))  # 8 MB
print("ready", flush=True)
while True:
    mercer.save(machine, sys.argv[1])
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_process_leaves_a_whole_file(machine, path, how):
    mercer.save(machine, path)
    child = subprocess.Popen(
        [sys.executable, "-c", SAVING, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(float(np.random.default_rng(int(how)).uniform(0.05, 0.3)))
    finally:
        child.send_signal(how)
        child.wait()
        child.stdout.close()
    assert type(mercer.load(path)) in (mercer.SVC, mercer.KMeans)


# --- what no file can hold ------------------------------------------------------------------------


class Own(Kernel):
    """A kernel of a user's own."""

    def expression(self):
        return Linear().expression()


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (lambda: mercer.SVC(callback=print), r"SVC.callback is a function \(print\)"),
        (lambda: mercer.SVC(FromCallable(lambda X, Y: X @ Y.T)), r"SVC.kernel: the kernel"),
        (lambda: mercer.SVC(Own()), r"SVC.kernel: the kernel Own"),
        (lambda: mercer.SVC(Gaussian(1.0).after(np.tanh)), r"SVC.kernel: the kernel"),
        (lambda: mercer.SVC(lambda X, Y: X @ Y.T), r"SVC.kernel is a function"),
        (
            lambda: mercer.KMeans(random_state=np.random.RandomState(0)),
            r"KMeans.random_state is of",
        ),
        (object, "cannot be stored in a model file"),
        (lambda: mercer.MaximumEntropy(features=np.square), r"MaximumEntropy.features is a"),
    ],
)
def test_what_holds_code_is_refused_by_name(machine, reason, path):
    with pytest.raises(mercer.ModelFormatError, match=reason):
        mercer.save(machine(), path)
    assert path.read_bytes() == b"earlier"


def test_more_than_a_header_can_hold_is_refused(path):
    machine = mercer.SVC(class_weight={(i, j): 1.5 for i in range(250) for j in range(250)})
    with pytest.raises(mercer.ModelFormatError, match="a header of"):
        mercer.save(machine, path)
    alone(path)


def test_many_small_arrays_share_a_few(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) + np.repeat(np.arange(40), 3)[:, None]
    machine = mercer.SVC(Gaussian(1.0)).fit(X, np.repeat(np.arange(40), 3))
    pipeline = mercer.selection.Tuned(machine, {"C": [0.1, 1.0]}, cv=2)
    mercer.save(machine, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert np.array_equal(loaded.decision_function(X), machine.decision_function(X))
    assert len(loaded.solution_.value.parts) == 780
    assert pipeline is not None


def test_long_vocabularies_stay_out_of_the_header(tmp_path):
    words = [f"word{i}" for i in range(50_000)]
    bag = mercer.BagOfWords().fit([" ".join(words)])
    mercer.save(bag, tmp_path / "model.mercer")
    data = (tmp_path / "model.mercer").read_bytes()
    assert int.from_bytes(data[:8], "little") < 4000
    assert mercer.load(tmp_path / "model.mercer").vocabulary_ == bag.vocabulary_


def test_kernels_of_a_thousand_numbers_stay_out_of_the_header(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 1500))
    kernel = Gaussian(rng.uniform(1, 2, 1500)) + Linear().on(list(range(0, 1500, 2)))
    machine = mercer.KernelRidge(1.0, kernel).fit(X, X[:, 0])
    mercer.save(machine, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert loaded.kernel_ == kernel
    assert np.array_equal(loaded.predict(X), machine.predict(X))
    data = (tmp_path / "model.mercer").read_bytes()
    assert int.from_bytes(data[:8], "little") < 5000


def test_the_temporary_file_is_in_the_same_folder(monkeypatch, tmp_path):
    seen = []
    replace = os.replace
    monkeypatch.setattr(
        container.os, "replace", lambda a, b: (seen.append(os.path.dirname(a)), replace(a, b))
    )
    container.write_file(tmp_path / "note", [b"a", b"b"])
    assert seen == [str(tmp_path)]


@pytest.mark.skipif(os.name != "posix", reason="pipes with names")
def test_pipes_are_written_to_and_stay(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(pipe, [b"one ", b"two"])
        assert os.read(reader, 100) == b"one two"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_links_are_replaced_without_what_is_behind_them(tmp_path):
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_bytes(b"kept")
    other.chmod(0o777)
    link.symlink_to(other)
    write_file(link, [b"new"])
    assert other.read_bytes() == b"kept" and link.read_bytes() == b"new"
    assert not link.is_symlink() and not link.stat().st_mode & 0o111


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="Linux")
def test_open_files_by_their_number_are_written_to(tmp_path):
    with (tmp_path / "out").open("wb", buffering=0) as file:
        file.write(b"before, ")
        write_file(f"/proc/self/fd/{file.fileno()}", [b"whole"])
        file.write(b", after")
    assert (tmp_path / "out").read_bytes() == b"before, whole, after"
