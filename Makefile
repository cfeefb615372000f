# The commands for people and for CI. `make` lists them; each sets up what it needs, and nothing twice.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Variables that may be overridden: the interpreter; the virtual environment; the folder of compiled Rust, which all clones
# share because most of it is dependencies; the number of cases of each property in `make check`; the number of processes
# that run Python tests; the themes that `make bench` measures and the attacks that `make soak` runs, with options (they write
# the figures down only when they measure or run all).
PYTHON ?= $(shell tools/pythons best)
VENV ?= .venv
CARGO_TARGET_DIR ?= $(HOME)/.cache/toolcrib/target
PROPERTY_CASES ?= 5000
TEST_PROCESSES ?= auto
THEMES ?=
ATTACKS ?=

BIN := $(abspath $(VENV))/bin
LOGS := $(VENV)/logs
BENCH := .venvs/bench
BENCH_AGENTSCOPE2 := .venvs/bench-agentscope2
SOAK := .venvs/soak
WHEEL := dist/bench
AGENTSCOPE := .venvs/agentscope
AGENTSCOPE2 := .venvs/agentscope2
AGENTSCOPE2_MCP2 := .venvs/agentscope2-mcp2
AGENTLY := .venvs/agently
MCP := .venvs/mcp
NPM := .venvs/npm
SOURCES := Cargo.toml Cargo.lock pyproject.toml $(wildcard build.rs) $(shell find src)
PIP := python -m pip install --quiet --disable-pip-version-check
HAS_311 := $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTEST := -m pytest --numprocesses $(TEST_PROCESSES) --maxprocesses 8 --dist worksteal
CARGO := tools/build cargo
LOCKED := $(if $(CI),--locked)
TYPED := python/toolcrib tests_py examples soak $(wildcard benches)

# maturin and pyo3 find their interpreter by VIRTUAL_ENV; see tools/build.
unexport CONDA_PREFIX PYTHONPATH
export CARGO_TARGET_DIR
export VIRTUAL_ENV := $(abspath $(VENV))

.PHONY: help demo test test-pythons check check-rest bench soak fmt docs build clean
.PHONY: test-python test-agentscope test-agentscope2 test-agently test-mcp lint-rust lint-python types stubs properties pure

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## set up and run the tour: an agent with a scripted model, without an API key or a network
	@$(BIN)/python examples/tour.py

test: build $(VENV)/test.stamp ## set up and run every test: of the core, the package and the documentation
	@mkdir -p $(LOGS)
	$(CARGO) test $(LOCKED) 2>&1 | tee $(LOGS)/core.log
	@$(MAKE) test-python test-agentscope test-agentscope2 test-agently test-mcp
	@tools/totals $(LOGS)/core.log $(LOGS)/python.log $(LOGS)/agentscope.log $(LOGS)/agentscope2.log \
	    $(LOGS)/agentscope2-mcp2.log $(LOGS)/agently.log $(LOGS)/mcp.log $(LOGS)/mcp1.log

test-python: build $(VENV)/test.stamp
	@mkdir -p $(LOGS)
	$(BIN)/python $(PYTEST) 2>&1 | tee $(LOGS)/python.log

# AgentScope brings a hundred packages; the other tests show that toolcrib works without them.
test-agentscope: build $(AGENTSCOPE)/venv.stamp
	@mkdir -p $(LOGS)
	PYTHONPATH=python $(AGENTSCOPE)/bin/python $(PYTEST) tests_py/agentscope 2>&1 | tee $(LOGS)/agentscope.log

# AgentScope 2.x excludes 1.x, and needs Python 3.11. Its releases for the MCP packages 1.x and 2.x exclude each other.
test-agentscope2: build $(AGENTSCOPE2)/venv.stamp $(AGENTSCOPE2_MCP2)/venv.stamp
	@mkdir -p $(LOGS)
	@for venv in $(AGENTSCOPE2) $(AGENTSCOPE2_MCP2); do \
	    log=$(LOGS)/$$(basename $$venv).log; \
	    if [ -x $$venv/bin/python ]; then \
	        PYTHONPATH=$(abspath python) $$venv/bin/python $(PYTEST) tests_py/agentscope2 2>&1 | tee $$log; \
	    else echo "AgentScope 2.x needs Python 3.11: its tests are left out" | tee $$log; fi; \
	done

test-agently: build $(AGENTLY)/venv.stamp
	@mkdir -p $(LOGS)
	PYTHONPATH=$(abspath python) $(AGENTLY)/bin/python $(PYTEST) tests_py/agently 2>&1 | tee $(LOGS)/agently.log

# The official SDKs 2.x and 1.x cannot share an environment; the second one is AgentScope's. The reference servers come from
# npm; without it the tests say which checks they left out.
test-mcp: build $(MCP)/venv.stamp $(AGENTSCOPE)/venv.stamp $(NPM)/npm.stamp
	@mkdir -p $(LOGS)
	PYTHONPATH=$(abspath python) MCP_NPM=$(abspath $(NPM)) $(MCP)/bin/python $(PYTEST) tests_py/interop 2>&1 | tee $(LOGS)/mcp.log
	PYTHONPATH=$(abspath python) $(AGENTSCOPE)/bin/python $(PYTEST) tests_py/interop/test_sdk.py 2>&1 | tee $(LOGS)/mcp1.log

check: test check-rest ## formatting, lints, types, stubs, documentation, tests, and the properties with many cases

check-rest: lint-rust lint-python types stubs pure properties # the part of `make check` that `make test` does not run
	@echo "all checks beyond make test have passed"

test-pythons: ## run the Python tests on every CPython 3.10 to 3.13 of this machine
	@tools/test-pythons

bench: $(BENCH)/built.stamp ## measure against the bare call and against peers, and put the figures into README and docs
	$(BENCH)/bin/python -m benches $(or $(THEMES),--write)

soak: $(SOAK)/built.stamp ## run every repeated attack with the numbers of a release (about an hour), and put the table into docs
	$(SOAK)/bin/python -m soak $(or $(ATTACKS),--write)

fmt: $(VENV)/check.stamp ## format all code
	cargo fmt
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

docs: build $(VENV)/test.stamp ## run every example of README and docs, and build the crate's documentation
	$(BIN)/python -m pytest tests_py/test_docs.py
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps $(LOCKED)

build: $(VENV)/built.stamp # the extension module, in the development profile

clean: ## remove everything built here, except for the compiled Rust that other clones share
	rm -rf .venv .venvs dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f python/toolcrib/_core.*.so
	find . -name __pycache__ -not -path './target/*' -prune -exec rm -rf {} +

lint-rust: $(VENV)/venv.stamp
	cargo fmt --check
	$(CARGO) clippy --all-targets --features python $(LOCKED) -- -D warnings
	$(CARGO) clippy --lib $(LOCKED) -- -D warnings # the core alone: code that only the bindings use is dead code here
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps $(LOCKED)

lint-python: $(VENV)/check.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: build $(VENV)/check.stamp
	$(BIN)/python -m mypy --strict $(TYPED)
	$(BIN)/python -m pytest --quiet tests_py/test_typing.py

stubs: build $(VENV)/check.stamp
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml --allowlist tools/stubs-unchecked.txt toolcrib

pure: # the core stands alone: without the feature `python` no part of pyo3 is built
	@if cargo tree --edges normal $(LOCKED) | grep -i pyo3; then echo "the core depends on pyo3"; exit 1; fi
	@echo "the core is free of pyo3"

properties: build $(VENV)/test.stamp
	TOOLCRIB_PROPERTY_CASES=$(PROPERTY_CASES) $(BIN)/python $(PYTEST) -m property

$(VENV)/venv.stamp:
	"$(PYTHON)" -m venv $(VENV)
	@touch $@

$(VENV)/tools.stamp: requirements/build.txt $(VENV)/venv.stamp
	$(BIN)/$(PIP) -r $<
	@touch $@

$(VENV)/test.stamp: requirements/test.txt requirements/build.txt $(VENV)/venv.stamp
	$(BIN)/$(PIP) -r $<
	@touch $@

$(VENV)/check.stamp: requirements/check.txt $(VENV)/test.stamp
	$(BIN)/$(PIP) -r $<
	@touch $@

$(VENV)/built.stamp: $(SOURCES) $(VENV)/tools.stamp
	tools/build $(BIN)/maturin develop --quiet $(LOCKED)
	@touch $@

$(AGENTSCOPE)/venv.stamp: requirements/agentscope.txt $(VENV)/venv.stamp
	$(BIN)/python -m venv $(AGENTSCOPE)
	$(AGENTSCOPE)/bin/$(PIP) -r $<
	@touch $@

$(AGENTSCOPE2)/venv.stamp: requirements/agentscope2.txt $(VENV)/venv.stamp
	@mkdir -p $(@D)
	if $(HAS_311); then $(BIN)/python -m venv $(@D) && $(@D)/bin/$(PIP) -r $<; fi
	@touch $@

$(AGENTSCOPE2_MCP2)/venv.stamp $(BENCH_AGENTSCOPE2)/venv.stamp: requirements/agentscope2-mcp2.txt \
    requirements/agentscope2.txt $(VENV)/venv.stamp
	@mkdir -p $(@D)
	if $(HAS_311); then $(BIN)/python -m venv $(@D) && $(@D)/bin/$(PIP) -r requirements/agentscope2.txt \
	    && $(@D)/bin/$(PIP) --no-deps -r $<; fi
	@touch $@

$(AGENTLY)/venv.stamp: requirements/agently.txt $(VENV)/venv.stamp
	$(BIN)/python -m venv $(AGENTLY)
	$(AGENTLY)/bin/$(PIP) -r $<
	@touch $@

$(MCP)/venv.stamp: requirements/mcp.txt $(VENV)/venv.stamp
	$(BIN)/python -m venv $(MCP)
	$(MCP)/bin/$(PIP) -r $<
	@touch $@

$(NPM)/npm.stamp: tests_py/support/mcp/package.json
	@mkdir -p $(NPM)
	@if command -v npm >/dev/null; then \
	    cp $< $(NPM)/ && cd $(NPM) && npm install --silent --no-audit --no-fund --no-package-lock 2>/dev/null \
	        || echo "npm cannot install the MCP reference servers: their checks are left out"; \
	else echo "npm is not installed: the checks with the MCP reference servers are left out"; fi
	@touch $@

# Figures are measured on a release wheel, as users install it, in environments of their own: beside the peers, or the packages
# of the tests.
$(BENCH)/venv.stamp: benches/requirements.txt $(VENV)/venv.stamp
	$(BIN)/python -m venv $(BENCH)
	$(BENCH)/bin/$(PIP) -r $<
	@touch $@

$(SOAK)/venv.stamp: requirements/test.txt requirements/build.txt $(VENV)/venv.stamp
	$(BIN)/python -m venv $(SOAK)
	$(SOAK)/bin/$(PIP) -r $<
	@touch $@

$(WHEEL)/wheel.stamp: $(SOURCES) $(shell find python -name '*.py*') $(VENV)/tools.stamp
	rm -rf $(WHEEL)
	tools/build bash -c '$(BIN)/maturin build --release $(LOCKED) --interpreter $$VIRTUAL_ENV/bin/python --out $(WHEEL)'
	@touch $@

$(BENCH)/built.stamp: $(WHEEL)/wheel.stamp $(BENCH)/venv.stamp $(BENCH_AGENTSCOPE2)/venv.stamp
	$(BENCH)/bin/$(PIP) --force-reinstall --no-deps $(WHEEL)/*.whl
	if $(HAS_311); then $(BENCH_AGENTSCOPE2)/bin/$(PIP) --force-reinstall --no-deps $(WHEEL)/*.whl; fi
	@touch $@

$(SOAK)/built.stamp: $(WHEEL)/wheel.stamp $(SOAK)/venv.stamp
	$(SOAK)/bin/$(PIP) --force-reinstall --no-deps $(WHEEL)/*.whl
	@touch $@
