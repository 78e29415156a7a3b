"""The rules of the house: functions, what an import costs, the truth of the front page."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import mercer

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "mercer"
FILES = sorted(SOURCE.rglob("*.py"))

MOST_LINES_OF_A_FUNCTION = 60
# functions that are longer, each with the reason; docstrings are not counted
LONG_FUNCTIONS: dict[str, str] = {}

NOT_AT_IMPORT = ("torch", "matplotlib", "dask", "pandas", "polars")
# what every user of Mercer loads anyway; scikit-learn itself loads pandas where that is installed
BASELINE = (
    "import scipy.linalg, scipy.sparse, scipy.special\n"
    "import sklearn.base, sklearn.utils.multiclass, sklearn.utils.validation\n"
)
IMPORT_SHARE = 0.75  # of the time that those take themselves


def name_of(file):
    return file.relative_to(SOURCE).as_posix()


# --- files and functions ---------------------------------------------------------------------


def test_no_file_hides_behind_an_underscore():
    pythons = ("__init__.py", "__main__.py")  # names that `import` and `python -m` look for
    hidden = [name_of(f) for f in FILES if f.name.startswith("_") and f.name not in pythons]
    assert not hidden, "a helper has a name and a home, or is part of the file that uses it"


def test_every_folder_says_what_it_holds():
    rooms = [file for file in FILES if file.name == "__init__.py"]
    silent = [name_of(f) for f in rooms if not ast.get_docstring(ast.parse(f.read_text("utf-8")))]
    assert not silent, "begin these with a docstring"


def length(function):
    """Count the lines of a function without its docstring."""
    body = function.body
    has_docstring = ast.get_docstring(function, clean=False) is not None
    docstring = body[0].end_lineno - body[0].lineno + 1 if has_docstring else 0
    return function.end_lineno - function.lineno + 1 - docstring


def long_functions():
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if length(node) > MOST_LINES_OF_A_FUNCTION:
                yield f"{name_of(file)}:{node.name}"


def test_no_function_is_too_long():
    found = set(long_functions())
    assert not found - set(LONG_FUNCTIONS), "split these, or give the reason in LONG_FUNCTIONS"
    assert not set(LONG_FUNCTIONS) - found, "these are short now: take them off the list"


# --- what an import costs --------------------------------------------------------------------


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_leaves_heavy_libraries_alone():
    code = BASELINE + (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import mercer, mercer.kernels\n"
        f"print([n for n in {NOT_AT_IMPORT!r} if n in sys.modules and n not in before])"
    )
    assert run(code) == "[]"


def test_import_is_quick():
    # processor time beside that of the libraries beneath, in the same process: whatever else the
    # machine does slows both; the best of some runs counts
    code = (
        "import time\n"
        "start = time.process_time()\n"
        f"{BASELINE}"
        "middle = time.process_time()\n"
        "import mercer\n"
        "print((time.process_time() - middle) / (middle - start))"
    )
    shares = [float(run(code)) for _ in range(5)]
    assert min(shares) < IMPORT_SHARE, f"import mercer took {shares}"


# --- the front page tells the truth ----------------------------------------------------------


def test_changelog_has_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", text, flags=re.MULTILINE)
    assert versions[0] == mercer.__version__


def test_citation_and_project_have_this_version():
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"\nversion: {mercer.__version__}\n" in cff
    assert f'\nversion = "{mercer.__version__}"\n' in project
