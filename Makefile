# Everything a fresh clone needs: `make demo`, `make test`. Each target sets up what it uses, in a
# virtual environment of its own (.venv), and only once.

PYTHON ?= python3
VENV := .venv
TORCH := .venv-torch
BIN := $(VENV)/bin
WORKERS ?= 2

# what the compiled core and the set of dependencies are made from
SOURCES := pyproject.toml CMakeLists.txt $(shell find native -type f 2>/dev/null)
# tests that once more run on the NumPy backend, the specification of the compiled one
REFERENCE_TESTS := tests/kernels tests/gram/test_gram.py
# the workers fill the cores; library threads in each of them would only fight
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)
# one process: the page, its browser and its fits share the cores; where there is no browser, they are
# skipped with a word; what fails is tried once more, since a browser may die of a full machine
PAGE := MERCER_BROWSER=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/studio/browser
PAGE_TESTS := $(PAGE) || $(PAGE) --last-failed --last-failed-no-failures none

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-processors test-torch test-studio lint docs map bench sanitize clean

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## mercer fit on Spambase: model, report and a picture in demo-output/
	$(BIN)/python examples/demo.py

test: lint $(VENV)/.test ## lint, tests (all but the slow ones), examples in docstrings, the studio's page
	$(PYTEST) -m "not slow" --doctest-modules tests src/mercer
	$(PAGE_TESTS)

test-all: lint $(VENV)/.test ## the same with the slow tests, and kernels once more on the NumPy backend
	$(PYTEST) --doctest-modules tests src/mercer
	MERCER_BACKEND=reference $(PYTEST) $(REFERENCE_TESTS)
	$(PAGE_TESTS)

test-processors: $(VENV)/.test ## tests of rounding and rank with the BLAS kernels of other processors
	PYTHON=$(BIN)/python WORKERS=$(WORKERS) scripts/test_processors.sh $(PROCESSORS)

# torch and what it brings are 3 GB: an environment of its own, and none of it in `make test`
test-torch: $(TORCH)/.test ## tests of the machines that train with torch, in .venv-torch
	OPENBLAS_NUM_THREADS=1 $(TORCH)/bin/python -m pytest tests/with_torch tests/machines/neural

test-studio: $(VENV)/.test ## tests of the studio's page in a browser
	$(PAGE_TESTS)

lint: $(VENV)/.test ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs ## build docs/_build/html; a warning is an error
	@# a page of a name that is gone would stay for ever, one of a new page would not be written
	@rm -rf docs/api/generated docs/_build/html/.doctrees
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

map: $(VENV)/.test ## write the source tree into docs/design.md
	$(BIN)/python docs/house_map.py

bench: $(VENV)/.test ## run the benchmarks against other libraries
	$(BIN)/python -m benchmarks.run

sanitize: $(VENV)/.sanitize ## tests of the compiled core and ten minutes of the fuzzer, with sanitizers
	PYTHON=$(BIN)/python PATH="$(abspath $(BIN)):$$PATH" scripts/sanitize.sh

clean: ## remove what was built, but not .venv and .venv-torch
	rm -rf build dist docs/_build docs/gallery docs/snippets docs/api/generated demo-output
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)*/*' -prune -exec rm -rf {} +

# --- set-up, one stamp for each set of dependencies ------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Mercer needs Python 3.11 or newer; try: make PYTHON=python3.12 demo"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.pip: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.demo: $(SOURCES) | $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable ".[cli,plot]"
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group test --group lint
	@touch $@

$(TORCH)/.test: $(SOURCES)
	test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(TORCH)/bin/python -m pip install --quiet --editable ".[torch,plot]" "pytest>=8" "pytest-timeout>=2.3"
	@touch $@

$(VENV)/.sanitize: $(VENV)/.test
	$(BIN)/python -m pip install --quiet "nanobind>=2.4" cmake ninja
	@touch $@

$(VENV)/.docs: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@
