"""The page's files: small, nothing inline, nothing from outside, no text read as markup."""

import re
import tomllib
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

import mercer
from mercer.studio.server import page_files

PAGE = Path(mercer.__file__).parent / "studio" / "page"
FILES = sorted(file for file in PAGE.rglob("*") if file.is_file())
SCRIPTS = [file for file in FILES if file.suffix == ".js"]
MOST_LINES = 300
MOST_FILES = 15
ROOT = Path(__file__).parents[2]
# what reads text as markup or code
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
)


def name_of(file):
    return file.relative_to(PAGE).as_posix()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_files_are_short(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_folders_are_small():
    full = {
        name_of(folder): n
        for folder, n in Counter(f.parent for f in FILES).items()
        if n > MOST_FILES
    }
    assert not full


@pytest.mark.parametrize("file", SCRIPTS, ids=name_of)
def test_scripts_say_what_they_are_and_read_no_markup(file):
    text = file.read_text(encoding="utf-8")
    assert text.startswith("/**\n * "), "begin with a comment that says what the file is"
    assert not FORBIDDEN.search(text)
    assert "globalThis" not in text and not re.search(r"\bwindow\.\w+ = ", text), "no globals"


@pytest.mark.parametrize("file", SCRIPTS, ids=name_of)
def test_imports_are_files_of_the_page(file):
    for name in re.findall(
        r'^(?:import|\} from) .*"(.+)";$|from "(.+)";$', file.read_text(encoding="utf-8"), re.M
    ):
        found = next(filter(None, name))
        assert found.startswith("."), found
        assert (file.parent / found).resolve().is_file(), found


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_nothing_is_loaded_from_outside(file):
    text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//[a-z]+\.[a-z]", text)


def test_markup_has_no_style_and_no_script_of_its_own():
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    assert " style=" not in text
    assert not re.search(r"\son\w+=", text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.S) == [""]


def test_every_file_is_reached_from_the_page():
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    reached = {PAGE / "index.html"} | {PAGE / name for name in re.findall(r'"page/([^"]+)"', text)}
    waiting = [file for file in reached if file.suffix == ".js"]
    while waiting:
        file = waiting.pop()
        for name in re.findall(r'from "(.+)";', file.read_text(encoding="utf-8")):
            found = (file.parent / name).resolve()
            if found not in reached:
                reached.add(found)
                waiting.append(found)
    assert {file for file in FILES if file not in reached} == set()


def test_every_file_is_handed_out():
    assert {name_of(file) for file in FILES} == set(page_files())


def left_out(name, pattern):
    """Return whether a pattern of files that are left out takes a path, as git reads patterns."""
    if "/" in pattern.rstrip("/"):
        return fnmatch(name, pattern.strip("/")) or fnmatch(name, pattern.strip("/") + "/*")
    return any(fnmatch(part, pattern.rstrip("/")) for part in name.split("/"))


def test_every_file_is_in_wheels_and_in_the_source_archive():
    """All files of the package go there, but for those that the settings or git leave out."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("no source tree: the package is installed without it")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    built = settings["tool"]["scikit-build"]
    wheel, archive = built["wheel"], built["sdist"]
    assert wheel["packages"] == ["src/mercer"]
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    patterns = [*ignored, *archive.get("exclude", []), *wheel.get("exclude", [])]
    for file in FILES:
        name = f"src/mercer/studio/page/{name_of(file)}"
        assert [one for one in patterns if one and left_out(name, one)] == []
