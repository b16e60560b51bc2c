# Two commands need only python3 (3.11 or later) and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
RUNTIME := .venv/runtime
DEVELOPMENT := .venv/development
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo test test-slow docs wheel dist audit explore bench snapshot setup lint constraints clean

WORKERS := $(shell $(PYTHON) -c 'import os; print(len(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)))')

demo: $(RUNTIME)  ## analyse a log of fixtures/, writing charts and Parquet to out/demo
	$(BIN)/logparse analyze fixtures/megatron/core-v0.12-llama2-7b/run.log --hw 910b3 -o out/demo --force

PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: $(DEVELOPMENT)  ## run every test but the slow ones and the sweeps
	$(PYTEST) -m 'not slow and not sweep'

test-slow: $(DEVELOPMENT)  ## run the tests of a browser, Ray, a built wheel, another Python, 180 recorded runs, or 50 damaged logs
	$(PYTEST) -m slow

docs: $(DEVELOPMENT)  ## build the documentation site in out/site, and follow each of its links
	$(BIN)/python docs/site/build_site.py out/site

wheel: $(DEVELOPMENT)  ## install the wheel with plain pip under each Python 3.11 to 3.14 of this machine, and run it
	LOGPARSE_EVERY_PYTHON=1 $(BIN)/pytest -q -k wheel_runs tests/docs/test_packaging.py

# The wheel is built from the sdist, so that nothing is missing there.
dist: $(DEVELOPMENT)  ## build wheel and sdist in dist/, check them, and install the wheel without a network
	rm -rf dist
	$(BIN)/python -m hatchling build -t sdist -d dist
	$(PIP) wheel --no-deps --no-build-isolation -w dist dist/logparse-*.tar.gz
	$(BIN)/python -m twine check --strict dist/*
	.ci/try-wheel dist/logparse-*.whl $(PYTHON)

audit: $(DEVELOPMENT)  ## hold every answer against 500 described histories; two minutes
	$(BIN)/pytest -q -n $(WORKERS) --hypothesis-profile=audit tests/audit/test_audit.py

explore: $(DEVELOPMENT)  ## draw 20,000 new cases for each property test; takes an hour
	$(BIN)/pytest -q -m 'hypothesis or sweep' --hypothesis-profile=explore

bench: $(DEVELOPMENT)  ## measure the speed of reading logs of each large trainer; five minutes
	$(BIN)/python benchmarks/real_logs.py

LOGS ?=
snapshot: $(DEVELOPMENT)  ## write what logparse says of every fixture and sample, and of LOGS="folder ...", to out/snapshot
	rm -rf out/snapshot
	$(BIN)/python benchmarks/snapshot.py write out/snapshot $(LOGS)

setup: $(DEVELOPMENT)

lint: $(DEVELOPMENT)  ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What runs logparse and installs it; what tests it comes on top, so that either may be asked for first.
# pip compiles the Python files of what it installs, but not those of a checkout.
$(RUNTIME): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed; name one: make PYTHON=python3.12 ...")'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "the venv module is missing; install python3-venv"; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) install --require-hashes -r constraints.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q logparse analysis
	@touch $@

$(DEVELOPMENT): $(RUNTIME) constraints-dev.txt
	$(PIP) install --require-hashes -r constraints-dev.txt
	@touch $@

COMPILE := uv pip compile pyproject.toml --universal --generate-hashes --no-header --no-emit-index-url --no-annotate -q

# Installing takes the two packages that build; without them pip would fetch some unpinned.
constraints:  ## pin anew what pyproject.toml asks for (needs uv)
	$(COMPILE) --all-extras -o constraints-dev.txt
	printf '%s\n' editables hatchling | $(COMPILE) - --extra cloud --extra pictures -c constraints-dev.txt -o constraints.txt

clean:
	rm -rf .venv dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
