# Everything runs in .venv, made on first use and renewed when pyproject.toml changes.
# Choose the interpreter with `make PYTHON=python3.13 ...` (after `make clean`).

PYTHON ?= python3
# Tests of a file stay together: they share compiled functions and fitted models.
# Files come in the order of tests/conftest.py, the long ones first.
PYTEST_ARGS ?= --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two targets may want the same environment: pip must not run twice in it at once.
.NOTPARALLEL:

.PHONY: help demo test test-all fuzz lint check-format check-code check-types check-layers \
	format docs notebook picture bench dist clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' \
		$(MAKEFILE_LIST)

demo: $(VENV)/.cli ## Compute the demonstration and write its figure
	$(BIN)/land demo

test: lint ## Run everything that must pass: lint, types, layers, tests
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-all: lint ## Run the long experiments and the tests of clusters as well
	$(BIN)/python -m pytest -m "" $(PYTEST_ARGS)

MINUTES ?= 1
fuzz: $(VENV)/.dev ## Damage model files and tables for MINUTES each
	$(BIN)/python tests/fuzz.py files --minutes $(MINUTES)
	$(BIN)/python tests/fuzz.py tables --minutes $(MINUTES)

lint: check-format check-code check-types check-layers ## Check format, code, types and import layers

check-format: $(VENV)/.dev
	$(BIN)/ruff format --check .

check-code: $(VENV)/.dev
	$(BIN)/ruff check .

check-types: $(VENV)/.dev
	$(BIN)/mypy

check-layers: $(VENV)/.dev
	$(BIN)/lint-imports

format: $(VENV)/.dev ## Format the code and apply the safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The scripts of the gallery find what the tests have compiled.
docs: export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.pytest_cache/d/jax
docs: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0
# Matrices are small: threads would only wait for each other.
docs: export OPENBLAS_NUM_THREADS ?= 1
docs: $(VENV)/.docs ## Build the documentation into docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

notebook: $(VENV)/.dev ## Write the notebook of the tutorial anew
	$(BIN)/python docs/notebook.py

picture: docs ## Renew the picture of the README, from the gallery
	cp docs/generated/gallery/images/sphx_glr_half_ellipse_001_2_00x.png \
		docs/images/half_ellipse.png

bench: $(VENV)/.dev $(VENV)/.peers ## Measure, and renew the page on performance
	$(BIN)/python -m benchmarks --store

# The wheel is built from the sdist, so a working wheel vouches for both. The check
# runs outside the repository: the sources must not be what gets imported.
dist: $(VENV)/.dev ## Build wheel and sdist; try the wheel in a fresh environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	@set -e; root=$$PWD; fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	echo "trying the wheel in a fresh environment"; \
	"$$root/$(BIN)/python" -m venv "$$fresh/venv"; \
	"$$fresh/venv/bin/python" -m pip install --quiet --disable-pip-version-check dist/*.whl; \
	cd "$$fresh"; venv/bin/python "$$root/.ci/smoke.py"

clean: ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist docs/_build docs/generated .hypothesis \
		.import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests docs benchmarks reproduction -name __pycache__ -type d -prune \
		-exec rm -rf {} + 2>/dev/null || true

# $(VENV)/.NAME records that the extra NAME is installed, with pyproject.toml as it was.
$(VENV)/.cli $(VENV)/.dev $(VENV)/.docs $(VENV)/.peers: $(VENV)/.%: pyproject.toml | $(VENV)/.created
	$(PIP) install --editable ".[$*]"
	@touch $@

$(VENV)/.created:
	@command -v "$(PYTHON)" > /dev/null || { \
		echo "land needs Python 3.11 or newer, but '$(PYTHON)' was not found;" \
			"try: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "land needs Python 3.11 or newer, but '$(PYTHON)' is" \
			"$$("$(PYTHON)" --version 2>&1); try: make PYTHON=python3.11" >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)
	$(PIP) install --upgrade pip
	@touch $@
