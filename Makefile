# Two commands do everything: `make demo` and `make test`. Both create .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint reproduce bench verify docs clean

$(VENV)/.%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[$*]' --constraint constraints.txt
	touch $@

demo: $(VENV)/.analyse
	mkdir -p demo
	$(BIN)/robustmdp analyse gym:FrozenLake8x8-v1 --discount 0.99 --vary success_rate=0.4..0.9:21 --out demo/frozen-lake.html

# Real data to test with, whose own dependencies are of no use here; and Storm, to read our files, where it installs.
$(VENV)/.worlds: $(VENV)/.test
	$(BIN)/pip install --quiet --no-deps icu-sepsis==2.0.1
	-$(BIN)/pip install --quiet stormpy==2.0.0 --constraint constraints.txt
	touch $@

test: $(VENV)/.worlds
	$(BIN)/python -m pytest -n 2
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m jit_off tests

lint: $(VENV)/.lint $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

reproduce: $(VENV)/.reproduce
	$(BIN)/robustmdp reproduce

docs: $(VENV)/.docs
	$(BIN)/zensical build --strict --clean

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

verify: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python tests/verify_rows.py
	$(BIN)/python tests/verify_kills.py
	PYTHONPATH=tests $(BIN)/python tests/verify_files.py

clean:
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build
