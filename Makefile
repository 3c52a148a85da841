# Two commands do everything: `make demo` and `make test`. Both create .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint reproduce bench verify docs clean

$(VENV)/.%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[$*]' --constraint constraints.txt
	touch $@

demo: $(VENV)/.gymnasium
	$(BIN)/python examples/machine.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m jit_off tests

lint: $(VENV)/.lint $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

reproduce: $(VENV)/.reproduce
	$(BIN)/robustmdp reproduce

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

verify: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python tests/verify_rows.py
	$(BIN)/python tests/verify_kills.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
