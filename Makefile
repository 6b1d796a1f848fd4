PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test lint types docs bench soak clean

demo: $(INSTALLED)
	$(BIN)/whisperer demo

test: lint types
	$(BIN)/pytest

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED)
	$(BIN)/mypy

docs: $(INSTALLED)
	$(BIN)/python docs/generate.py

bench: $(INSTALLED)
	$(BIN)/python -m bench

soak: $(INSTALLED)
	WHISPERER_SIMULATION_SEEDS=$${WHISPERER_SIMULATION_SEEDS:-20000} $(BIN)/pytest -s tests/simulation/test_random_runs.py
	WHISPERER_CRASH_RUNS=$${WHISPERER_CRASH_RUNS:-2000} $(BIN)/pytest -s tests/crash

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@
