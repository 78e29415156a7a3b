"""CUDA texts are compiled once, in threads, and read again from a folder of the user's alone."""

import os
import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="make test-torch")
from mercer.backends.box_programs import Form  # noqa: E402 - after the skip
from mercer.backends.torch import nvrtc as compiling  # noqa: E402
from mercer.backends.torch.svm import rounds  # noqa: E402

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="nothing is kept without owners")


@pytest.fixture
def home(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "mercer" / "cuda"


# --- what is kept --------------------------------------------------------------------------------


def test_what_was_kept_is_read_again(home):
    assert compiling.kept("one") is None
    compiling.keep("one", b"\0code\0")
    compiling.keep("one", b"\0other\0")
    assert compiling.kept("one") == b"\0other\0" and compiling.kept("two") is None
    assert [path.name for path in home.iterdir()] == ["one"]
    assert home.stat().st_mode & 0o777 == 0o700 and (home / "one").stat().st_mode & 0o077 == 0


def test_a_relative_folder_is_not_taken(home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(home.parents[1]))
    compiling.keep("one", b"code")
    assert (home.parents[1] / ".cache" / "mercer" / "cuda" / "one").exists()


@pytest.mark.parametrize("given", ["here", "absent/folder"])
def test_no_home_is_made_for_it(home, monkeypatch, tmp_path, given):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", given if given == "here" else str(tmp_path / given))
    compiling.keep("one", b"code")
    assert compiling.kept("one") is None
    assert not list(tmp_path.iterdir())


def test_a_pipe_in_the_place_of_code_is_not_waited_for(home):
    compiling.keep("one", b"code")
    os.mkfifo(home / "two", 0o600)
    assert compiling.kept("two") is None


@pytest.mark.parametrize("told", [b"", b"short", b"x" * 100])
def test_what_is_not_as_it_was_written_is_not_read(home, told):
    compiling.keep("one", b"code" * 30)
    (home / "one").write_bytes(told)
    assert compiling.kept("one") is None


def test_code_is_not_read_through_links(home):
    compiling.keep("one", b"code")
    (home / "two").symlink_to(home / "one")
    assert compiling.kept("two") is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_folders_that_others_write_to_are_not_trusted(home, mode):
    compiling.keep("one", b"code")
    home.chmod(mode)
    assert compiling.kept("one") is None
    compiling.keep("two", b"code")
    assert not (home / "two").exists()


@pytest.mark.parametrize(("mode", "trusted"), [(0o777, False), (0o1777, True), (0o755, True)])
def test_nor_are_those_below_such(home, mode, trusted):
    """In a sticky folder others may add to, but not take away."""
    compiling.keep("one", b"code")
    home.parents[1].chmod(mode)
    assert (compiling.kept("one") == b"code") is trusted


@pytest.mark.parametrize("mode", [0o660, 0o606])
def test_nor_files_that_others_write_to(home, mode):
    compiling.keep("one", b"code")
    (home / "one").chmod(mode)
    assert compiling.kept("one") is None


def test_nor_what_belongs_to_someone_else(home, monkeypatch):
    compiling.keep("one", b"code")
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    assert compiling.kept("one") is None


def test_without_a_folder_nothing_is_kept(home, monkeypatch):
    home.parents[1].joinpath("mercer").write_text("a file is in the way")
    compiling.keep("one", b"code")
    assert compiling.kept("one") is None
    monkeypatch.delattr(os, "getuid")
    assert compiling.kept("one") is None


# --- what is compiled ----------------------------------------------------------------------------


class Compiler:
    """Stands for NVRTC and the driver."""

    def __init__(self):
        self.texts, self.loaded, self.shared = [], [], []
        self.works = self.knows = True

    def _nvrtc_compile(self, text, name):
        self.texts.append(text)
        if not self.works:
            raise RuntimeError("no such word")
        return b"\x7fELF\0" + text.encode(), f"_Z{name}"

    def _cuda_load_module(self, binary, names):
        assert binary.startswith(b"\x7fELF\0")
        if not self.knows:
            self.knows = True
            raise RuntimeError("CUDA error: no binary for this card")
        self.loaded.append((binary, threading.current_thread().name))
        return {names[0]: SimpleNamespace(set_shared_memory_config=self.shared.append)}


@pytest.fixture
def compiler(home, monkeypatch):
    found = Compiler()
    monkeypatch.setattr(torch.cuda, "_utils", found)
    monkeypatch.setattr(torch.cuda, "device", lambda card: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(query=lambda: True))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(compiling, "_BEGUN", {})
    return found


def test_a_text_is_compiled_once_in_a_thread(compiler):
    begun = compiling.begin("text", "go", 0, 100 << 10)
    assert compiling.kernel("text", "go", 0, 100 << 10) is begun.result()
    assert compiler.texts == ["text"] and compiler.shared == [100 << 10]
    assert compiler.loaded[0][1].startswith("mercer-nvrtc")
    compiling.kernel("text", "go", 0)  # with less memory it is another, of the same code
    assert compiler.texts == ["text"] and len(compiler.loaded) == 2 and len(compiler.shared) == 1


def test_the_next_process_reads_what_was_compiled(compiler, monkeypatch):
    compiling.kernel("text", "go", 0)
    compiling._BEGUN.clear()
    compiling.kernel("text", "go", 0)
    assert compiler.texts == ["text"] and compiler.loaded[0][0] == compiler.loaded[1][0]
    for name, value in (("get_device_capability", lambda: (8, 0)), ("device", torch.cuda.device)):
        compiling._BEGUN.clear()
        monkeypatch.setattr(torch.cuda, name, value)
        compiling.kernel("text", "go", 0)
    assert compiler.texts == ["text", "text"]  # of another card
    compiling._BEGUN.clear()
    monkeypatch.setattr(torch, "__version__", "0.0")
    compiling.kernel("text", "go", 0)
    assert len(compiler.texts) == 3  # of another torch


def test_code_that_a_driver_refuses_is_made_anew(compiler):
    compiling.kernel("text", "go", 0)
    compiling._BEGUN.clear()
    compiler.knows = False
    compiling.kernel("text", "go", 0)
    assert compiler.texts == ["text", "text"]


def test_a_text_that_failed_is_tried_again(compiler):
    compiler.works = False
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no such word"):
            compiling.kernel("text", "go", 0)
    compiler.works = True
    assert compiling.kernel("text", "go", 0) is not None
    assert len(compiler.texts) == 3


def test_another_torch_compiles_as_it_does(compiler, monkeypatch):
    monkeypatch.setattr(torch.cuda, "_utils", SimpleNamespace())
    monkeypatch.setattr(torch.cuda, "_compile_kernel", lambda *told: told, raising=False)
    assert compiling.kernel("text", "go", 0) == ("text", "go")


@pytest.mark.parametrize("form", [Form(92962), Form(12000), Form(9000, 2, True, True)])
def test_what_is_expected_is_what_is_used(compiler, monkeypatch, form):
    card = SimpleNamespace(shared_memory_per_block_optin=227 << 10, multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    device = SimpleNamespace(index=0)
    rounds.begin_kernels(device, form)
    for future in compiling._BEGUN.values():
        future.result()
    assert len(compiler.texts) == 2
    size = rounds._size_of_sets(device)
    threads = rounds._threads_of(rounds._width_of(form.largest))
    for made in (rounds._follow_kernel, rounds._solve_kernel):
        made.cache_clear()
    rounds._follow_kernel(threads, size, form.sums, form.tube, 0)
    rounds._solve_kernel(size, form.sums, form.tube, form.shifted, 0)
    assert len(compiler.texts) == 2
    for made in (rounds._follow_kernel, rounds._solve_kernel):
        made.cache_clear()
