# Two commands need only python3 (3.11 or later) and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo test setup lint constraints clean

demo: $(READY)  ## analyse a log of fixtures/, writing charts and Parquet to out/demo
	$(BIN)/logparse analyze fixtures/megatron/core-v0.12-llama2-7b/run.log --hw 910b3 -o out/demo --force

test: $(READY)  ## run the whole suite
	$(BIN)/pytest -q

setup: $(READY)

lint: $(READY)  ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed; name one: make PYTHON=python3.12 ...")'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "the venv module is missing; install python3-venv"; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) install --require-hashes -r constraints.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

constraints:  ## pin anew what pyproject.toml asks for (needs uv)
	uv pip compile pyproject.toml --all-extras --universal --generate-hashes --no-header --no-emit-index-url --no-annotate -q -o constraints.txt

clean:
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache
