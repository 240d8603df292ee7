# `make` alone lists the verbs. Every verb but help sets up .venv first when it is missing or out of date.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CHIPWISE_PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.chipwise-setup
PYTEST := $(BIN)/pytest -q -n 2
QUICK := -m "not slow"
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

.PHONY: help setup demo test lint check check-full mutation bench measurements calibrate docs screens clean

help:  ## list the verbs
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

setup: $(STAMP)  ## make .venv with the command at .venv/bin/chipwise (CHIPWISE_PYTHON picks the Python, 3.11 or newer)
	@echo "ready: $(BIN)/chipwise"

$(STAMP): pyproject.toml constraints.txt
	@$(CHIPWISE_PYTHON) -c '$(NEW_ENOUGH)' \
	  || { echo "chipwise needs Python 3.11 or newer and '$(CHIPWISE_PYTHON)' is not: set CHIPWISE_PYTHON" >&2; exit 1; }
	@$(BIN)/python -c 'import pip; $(NEW_ENOUGH)' 2>/dev/null || $(CHIPWISE_PYTHON) -m venv --clear .venv
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP)  ## one plan: Llama 3.3 70B for 64 chat users in four regions
	$(BIN)/chipwise plan llama-3.3-70b --for chat --users 64 --context 8k --ttft-p99 1s --tpot-p99 40ms \
	  --goal latency,cost --region us-east-1 --region us-east-2 --region us-west-1 --region us-west-2

test: $(STAMP)  ## the quick tests
	$(PYTEST) $(QUICK)

lint: $(STAMP)  ## style, types, rooms, dependencies
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src

check: lint  ## lint and the quick tests with branch coverage (under 6 minutes)
	$(PYTEST) $(QUICK) --cov --cov-fail-under=0 --cov-report=term:skip-covered

check-full: lint  ## everything: lint, all tests, coverage of 90 % and more, planted faults noticed
	$(BIN)/python -m mutation --sample 30
	$(PYTEST) --cov --cov-report=term:skip-covered

mutation: $(STAMP)  ## plant a seeded sample of faults in the arithmetic rooms: 80 % and more must be noticed (20 minutes)
	$(BIN)/python -m mutation $(FAULTS)

bench: $(STAMP)  ## how fast chipwise itself is: every script of benchmarks/
	@shopt -s nullglob; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

measurements: $(STAMP)  ## write measurements/ from the published tables beside the repository
	$(BIN)/python -m calibrate collect

calibrate: $(STAMP)  ## fit perf/data and memory/data to measurements/ and the tables beside the repository, cross-validate (15 minutes)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m calibrate $(PARTS)

docs: $(STAMP)  ## write the generated pages of docs/
	@if [ -f docs/generate.py ]; then $(BIN)/python docs/generate.py; else echo "docs/ has no generated pages"; fi

screens: $(STAMP)  ## take the pictures of docs/screens/ (needs chromium)
	$(BIN)/python docs/screens.py

clean:  ## remove .venv and every cache
	rm -rf .venv .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist build
