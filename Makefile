# Two commands do everything: `make demo` and `make test`. Both create .venv and build the C++ core themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The tests that `make sanitize` runs: those that call the core most directly.
SANITIZED_TESTS ?= tests/ambiguity tests/divergences tests/operators tests/models tests/planning/test_reach.py \
	tests/planning/test_total_reward.py

.PHONY: demo test lint core wheel-test sanitize reproduce bench verify docs notebooks clean

# The build's tools stay in .venv instead of a temporary environment, so that `make core` can rebuild incrementally.
INSTALL_CORE = $(BIN)/pip install --quiet --no-build-isolation --no-deps --config-settings build-dir=build/core --editable .

$(VENV)/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet scikit-build-core nanobind cmake ninja --constraint constraints.txt
	@echo "Building the C++ core, about a minute the first time."
	$(INSTALL_CORE)
	touch $@

# The package itself is installed by then: this adds what the extra asks for.
$(VENV)/.%: $(VENV)/.core
	$(BIN)/pip install --quiet 'robustmdp[$*]' --constraint constraints.txt
	touch $@

# Compile what changed in core/; the modules are written into src/robustmdp.
core: $(VENV)/.core
	@test -f build/core/build.ninja || $(INSTALL_CORE)
	@$(BIN)/ninja -C build/core --quiet

demo: $(VENV)/.analyse core
	$(BIN)/python examples/pumps.py demo

# Real data to test with, whose own dependencies are of no use here; and Storm, to read our files, where it installs.
$(VENV)/.worlds: $(VENV)/.test
	$(BIN)/pip install --quiet --no-deps icu-sepsis==2.0.1
	-$(BIN)/pip install --quiet stormpy==2.0.0 --constraint constraints.txt
	touch $@

test: $(VENV)/.worlds core
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.lint $(VENV)/.test core
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# As a user would install it: source archive, wheel in an isolated environment, and an empty environment to try it in.
wheel-test: $(VENV)/.core
	rm -rf build/wheel
	mkdir -p build/wheel
	$(BIN)/python -c "from scikit_build_core.build import build_sdist; build_sdist('build/wheel')"
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir build/wheel build/wheel/robustmdp-*.tar.gz
	$(BIN)/python -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet --constraint constraints.txt build/wheel/robustmdp-*.whl
	cd build/wheel && venv/bin/python -I -c "import robustmdp._core as core; print(core.__file__, core.build_info())"
	cd build/wheel && venv/bin/robustmdp doctor
	cd build/wheel && venv/bin/robustmdp solve chain

# A second environment that finds the packages of .venv but has its own robustmdp, compiled with the sanitizers. They
# must be loaded before Python, and libstdc++ with them, because they replace the function that throws exceptions.
SANITIZER_LIBRARIES = $(foreach library,libasan.so libstdc++.so,$(shell $(CXX) -print-file-name=$(library)))
SANITIZED := build/sanitize/venv

sanitize: $(VENV)/.test
	test -x $(SANITIZED)/bin/python || $(BIN)/python -m venv --without-pip $(SANITIZED)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> "$$($(SANITIZED)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/parent.pth"
	$(BIN)/pip --python $(SANITIZED)/bin/python install --quiet --no-build-isolation --no-deps --force-reinstall \
		--config-settings build-dir=build/sanitize/core --config-settings cmake.define.ROBUSTMDP_SANITIZE=ON .
	LD_PRELOAD="$(SANITIZER_LIBRARIES)" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		$(SANITIZED)/bin/python -m pytest $(SANITIZED_TESTS)

reproduce: $(VENV)/.reproduce core
	$(BIN)/robustmdp reproduce

docs: $(VENV)/.docs core
	$(BIN)/zensical build --strict --clean

# Run the notebooks and store what they show.
notebooks: $(VENV)/.test core
	$(BIN)/python tests/docs/notebooks.py

bench: $(VENV)/.bench core
	$(BIN)/python -m benchmarks $(PARTS)

# `make verify WORLDS="--worlds 1000"` tries ten times as many worlds of each set under each criterion.
verify: $(VENV)/.test core
	PYTHONPATH=tests $(BIN)/python tests/verify_rows.py
	PYTHONPATH=tests $(BIN)/python tests/verify_bounds.py
	PYTHONPATH=tests $(BIN)/python tests/verify_sets.py
	PYTHONPATH=tests $(BIN)/python tests/verify_shared_noise.py
	PYTHONPATH=tests $(BIN)/python tests/verify_rectangular.py
	PYTHONPATH=tests $(BIN)/python tests/verify_criteria.py
	PYTHONPATH=tests $(BIN)/python tests/verify_worlds.py $(WORLDS)
	$(BIN)/python tests/verify_certificates.py
	$(BIN)/python tests/verify_kills.py
	PYTHONPATH=tests $(BIN)/python tests/verify_cluster.py
	PYTHONPATH=tests $(BIN)/python tests/verify_files.py

clean:
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build src/robustmdp/_core_*.so
