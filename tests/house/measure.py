"""Measure the house: how many files, how long, how tangled, and how far one fit goes.

    python tests/house/measure.py            print all figures
    python tests/house/measure.py --walk     also those of calls; Mercer has to be installed
    python tests/house/measure.py --write    keep figures that fell in ratchet.json

Every figure should only fall, apart from `median_file`; `test_ratchet.py` compares them with
`ratchet.json`. A rise is written there by hand, where a reviewer sees it.
"""

import ast
import io
import json
import os
import re
import sys
import time
import tokenize
import warnings
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "mercer"
RATCHET = Path(__file__).with_name("ratchet.json")

# file names that are the same in every family, on purpose
ANATOMY = {"__init__.py", "problem.py", "solvers.py", "certificate.py", "blocks.py", "base.py"}
# private words, and those of the field
WORDS = {
    "card": "GPU, device",
    "bend": "Hessian, curvature",
    "pull": "adjoint, rmatvec",
    "pulled": "adjoint",
    "programme": "program, QP",
    "programmes": "programs, QPs",
    "strand": "stream",
    "strands": "streams",
    "undo": "apply_preconditioner",
    "undone": "preconditioned",
    "pace": "step_size",
    "calm": "halve_step",
    "rested": "to_host",
    "at_rest": "to_host",
    "placed": "on_device",
    "Telling": "InformativeFeature",
    "beside": "with, and, next to",
}
CHECKS = ("isinstance", "getattr", "hasattr")
OWN = ("self", "cls", "other", "np", "os", "sys")  # private attributes of these are not foreign
NOT_ONLY_FALLING = {"median_file"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)


# --- one file --------------------------------------------------------------------------------


def docstring_lines(tree):
    """Return the numbers of the lines that are docstrings."""
    found = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
            and ast.get_docstring(node, clean=False) is not None
        ):
            found |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return found


def lines_of_code(source, tree=None):
    """Count lines that hold a token other than a comment, docstrings left out."""
    idle = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    idle.add(tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    used = {line for t in tokens if t.type not in idle for line in range(t.start[0], t.end[0] + 1)}
    return len(used - docstring_lines(tree or ast.parse(source)))


def import_lines(tree):
    """Count the lines of all imports."""
    imports = [n for n in ast.walk(tree) if isinstance(n, IMPORTS)]
    return sum(node.end_lineno - node.lineno + 1 for node in imports)


def constants(tree):
    """Count module-level names whose value is a number."""
    values = [n.value for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)]
    numbers = [v.value for v in values if isinstance(v, ast.Constant)]
    return sum(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)


def is_foreign_attribute(node):
    """Return whether a node is a private attribute of another object."""
    return (
        isinstance(node, ast.Attribute)
        and re.fullmatch(r"_[a-z]\w*", node.attr)
        and isinstance(node.value, ast.Name)
        and node.value.id not in OWN
    )


def imported_names(tree):
    """Return the modules, and names of modules, that a file imports from Mercer."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mercer"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# --- the house -------------------------------------------------------------------------------


def measure():
    """Return all figures of the source tree, by name."""
    found, users, sizes = Counter(), defaultdict(set), {}
    words = imports = 0
    private = re.compile(rf"\b(?:{'|'.join(WORDS)})\b")
    files = sorted(SOURCE.rglob("*.py"))
    for file in files:
        source = file.read_text(encoding="utf-8")
        tree = ast.parse(source)
        sizes[file] = lines_of_code(source, tree)
        imports += import_lines(tree)
        found["constants"] += constants(tree)
        for name in imported_names(tree):
            users[name].add(file)
        for node in ast.walk(tree):
            found["functions"] += isinstance(node, FUNCTIONS)
            found["private_attributes_of_others"] += bool(is_foreign_attribute(node))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found[node.func.id] += node.func.id in CHECKS
        words += len(private.findall(source))
    modules = [file for file in files if file.name != "__init__.py"]
    names = Counter(file.name for file in files if file.name not in ANATOMY)
    code = sum(sizes.values())
    return {
        "files": len(files),
        "folders": len({file.parent for file in files}),
        "code": code,
        "median_file": sorted(sizes.values())[len(sizes) // 2],
        "under_30_lines": sum(sizes[file] < 30 for file in modules),
        "import_share": round(imports / code, 3),
        "functions": found["functions"],
        "one_user_files": sum(len(users[dotted(file)]) == 1 for file in modules),
        "constants": found["constants"],
        "private_attributes_of_others": found["private_attributes_of_others"],
        **{check: found[check] for check in CHECKS},
        "repeated_file_names": sum(count for count in names.values() if count > 1),
        "rooms": len({file.relative_to(SOURCE).parts[0] for file in files}),
        "private_words": words,
        "imports_between_families": sum(map(len, family_imports().values())),
    }


def dotted(file):
    """Return the name by which a file is imported."""
    return ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts)


def family_imports():
    """Return the other families that each family of `machines` imports from.

    A family is a folder or a file of `machines`. All may import `machines.base`, which is listed
    itself: what it takes from a family is a look upwards.
    """
    machines = SOURCE / "machines"
    found = defaultdict(set)
    families = {path.stem for path in machines.iterdir() if path.stem != "__pycache__"}
    for file in sorted(machines.rglob("*.py")):
        family = file.relative_to(machines).parts[0].removesuffix(".py")
        if family == "__init__":
            continue  # the door shows all families
        for name in imported_names(ast.parse(file.read_text(encoding="utf-8"))):
            parts = name.split(".")
            if parts[1:2] == ["machines"] and parts[2:3] and parts[2] in families:
                found[family].add(parts[2])
    return {a: sorted(b - {a, "base"}) for a, b in sorted(found.items()) if b - {a, "base"}}


# --- calls -----------------------------------------------------------------------------------


def walk(run, root):
    """Return how many files a call comes through, changes of the room, and calls."""
    run()  # what is imported and set up only once is no part of the way
    files, rooms, calls = set(), [], 0

    def look(frame, event, _):
        nonlocal calls
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(root):
            return
        calls += 1
        files.add(name)
        room = name[len(root) + 1 :].split(os.sep)[0]
        if rooms[-1:] != [room]:
            rooms.append(room)

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return {"files": len(files), "room_changes": len(rooms), "calls": calls}


def walks():
    """Return what importing `SVC` loads, and the ways of some calls."""
    import numpy as np  # before the import that is measured
    import sklearn.linear_model
    import sklearn.svm  # noqa: F401

    warnings.simplefilter("ignore")
    start = time.process_time()
    from mercer import SVC

    out = {
        "modules_for_SVC": sum(name.split(".")[0] == "mercer" for name in sys.modules),
        "cpu_s_for_SVC": round(time.process_time() - start, 2),
    }
    import mercer
    from mercer import CCA, PCA, KernelRidge
    from mercer.blocks import blocks_of
    from mercer.kernels import Gaussian
    from mercer.selection import tune

    X = np.random.default_rng(0).standard_normal((1500, 5))
    y, target, kernel = (X[:, 0] > 0).astype(int), X[:, 0], Gaussian(1.0)
    svc = SVC(kernel).fit(X, y)
    grid = {"C": [0.1, 1.0], "kernel__scale": [1.0, 2.0]}
    five = [(X[k : k + 300], target[k : k + 300]) for k in range(0, 1500, 300)]
    calls = {
        "SVC.fit": lambda: SVC(kernel).fit(X, y),
        "SVC.predict": lambda: svc.predict(X),
        "KernelRidge.fit": lambda: KernelRidge(0.1, kernel=kernel).fit(X, target),
        "ridge loo": lambda: KernelRidge("loo", kernel=kernel).fit(X, target),
        "PCA.fit": lambda: PCA(2, kernel=kernel).fit(X),
        "CCA.fit": lambda: CCA(2, kernel_x=kernel, kernel_y=kernel).fit(X[:, :3], X[:, 3:]),
        "tune": lambda: tune(SVC(kernel), X[:300], y[:300], grid=grid, cv=3),
        "ridge over blocks": lambda: KernelRidge(0.1).fit(blocks_of(lambda: iter(five))),
    }
    root = os.path.dirname(mercer.__file__)
    return out | {name: walk(run, root) for name, run in calls.items()}


# --- what may only fall ----------------------------------------------------------------------


def kept():
    """Return the figures of `ratchet.json`."""
    return json.loads(RATCHET.read_text(encoding="utf-8"))


def write():
    """Lower what fell, and take families off the list that no longer import one another."""
    figures, pairs = measure(), family_imports()
    old = kept() if RATCHET.exists() else {"figures": {}, "family_imports": pairs}
    lower = {
        name: min(value, old["figures"].get(name, value))
        for name, value in figures.items()
        if name not in NOT_ONLY_FALLING
    }
    fewer = {a: sorted(set(b) & set(pairs.get(a, ()))) for a, b in old["family_imports"].items()}
    new = {"figures": lower, "family_imports": {a: b for a, b in fewer.items() if b}}
    RATCHET.write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
    return figures


if __name__ == "__main__":
    said = write() if "--write" in sys.argv else measure()
    if "--walk" in sys.argv:
        said["walks"] = walks()
    print(json.dumps(said, indent=1))
