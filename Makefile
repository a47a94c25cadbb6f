# One virtual environment, .venv, made on first use: every target works in a fresh clone.
#   make demo                      train on real digits, draw what was learned
#   make test                      the whole test suite
#   make lint                      ruff and mypy
#   make bench                     what this machine gives
#   make demo PYTHON=python3.13    with another interpreter (after `make clean`)
PYTHON ?= python3
WORKERS ?= 2
PYTEST_FLAGS ?=

BIN := .venv/bin

.PHONY: demo test lint bench clean

demo: .venv/installed-demo
	$(BIN)/flambeau demo

# One BLAS thread for each of the workers; flambeau's own kernels still run on two.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: export FLAMBEAU_NUM_THREADS = 2
test: .venv/installed-dev
	$(BIN)/python -m pytest -q -n $(WORKERS) $(PYTEST_FLAGS)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/installed-demo
	$(BIN)/flambeau bench

clean:
	rm -rf .venv build dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "flambeau needs Python 3.11, 3.12 or 3.13: make $(MAKECMDGOALS) PYTHON=python3.13"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed-demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[data]'
	touch $@

.venv/installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[data,dev]'
	touch $@ .venv/installed-demo
