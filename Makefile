# Everything runs from one virtual environment, made on first use: no step beyond Python and make.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Pythons can live side by side: make PYTHON=python3.14 VENV=.venv-3.14 test
VENV := .venv
BIN := $(VENV)/bin
JAX_VENV := .venv-jax
PACKAGES_VENV := .venv-packages

# The first Python that runs, is new enough and can make environments; `make PYTHON=...` overrides.
# The search takes a second or two: it runs on first use, and `eval` keeps its result.
PYTHON ?= $(eval PYTHON := $(shell for python in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
		>/dev/null 2>&1; then command -v $$python; break; fi; done))$(PYTHON)

# The version of jaxlib to install; by default the newest that pyproject.toml allows.
JAXLIB ?=
CONSTRAINT := $(if $(JAXLIB),jaxlib==$(JAXLIB))

# The image and the command of `make newest`.
PYTHON_IMAGE ?= python:3.14
COMMAND ?= make test

INSTALLED := $(VENV)/.installed
INSTALLED_DEMO := $(VENV)/.installed-demo
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_DOCS := $(VENV)/.installed-docs
INSTALLED_JAX := $(JAX_VENV)/.installed
INSTALLED_PACKAGES := $(PACKAGES_VENV)/.installed

# Compiling all modules of all packages takes half of an installation; Python compiles those that
# are imported, when they are.
PIP_OPTIONS := --quiet --disable-pip-version-check --no-compile

WORKERS ?= auto
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses=8 --dist=worksteal

# The folders of tests that `make quick` can run.
ROOMS := $(patsubst tests/%/,%,$(sort $(dir $(wildcard tests/*/test_*.py))))

# What selects the sample of `make test`: the commit, or the number that the header of a run printed.
SEED ?= commit

# With CPU_REPORT=FILE `make test` writes the CPU time of each test to the file.
CPU_REPORT ?=

# How long `make fuzz` and `make soak` run.
MINUTES ?= 30

# Workers, and the programs that tests start, import minijax from compiled modules.
unexport PYTHONDONTWRITEBYTECODE
FEATURES := .features.json
SOURCES := $(shell find minijax tools tests examples -name '*.py' 2>/dev/null) docs/features.md

WEB := web/node_modules/.package-lock.json

.PHONY: help demo test test-all test-web test-docs web docs wheel release bench check features size parity packages exports fuzz soak mutants clean quick known-room newest

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s%s\n", $$1, $$2}' Makefile

demo: $(INSTALLED_DEMO) ## train a network on real digits and show every stage of the compiler
	$(BIN)/python examples/demo.py

test: $(INSTALLED) ## run a sample of the tests, about six minutes on two cores
	$(PYTEST) --sample=$(SEED) --features-report=$(FEATURES) $(if $(CPU_REPORT),--cpu-report=$(CPU_REPORT))

quick: known-room $(INSTALLED) ## run a few tests of one room within a minute: make quick ROOM=lax
	$(PYTEST) --sample=$(SEED) --quick $(addprefix tests/,$(ROOM))

# A separate target, so that a misspelt name is reported before anything is installed.
known-room:
	@$(if $(and $(ROOM),$(if $(filter-out $(ROOMS),$(ROOM)),,known)),:,$(error make quick: ROOM must be one of the rooms below, got '$(ROOM)'; for example make quick ROOM=lax. Rooms: $(ROOMS)))

newest: export PYTHON_IMAGE := $(PYTHON_IMAGE)
newest: export COMMAND := $(COMMAND)
newest: export JAXLIB := $(JAXLIB)
newest: ## run COMMAND='make test' on the newest Python, in a container; JAXLIB=x.y.z selects jaxlib
	@sh tools/newest.sh

test-all: $(INSTALLED) ## run every test on all of its parameters, compiled as users compile
	$(PYTEST) --features-report=$(FEATURES)

web: $(WEB) ## build the front end of pages anew; needs node and npm, which users do not
	cd web && npm run --silent check && npm run --silent build

test-web: $(INSTALLED) $(WEB) ## open pages in Chromium, point, click, search; screenshots go to out/pages
	$(BIN)/python -m pytest -q tests/explain/pages/test_browser.py --sample=$(SEED)

docs: $(INSTALLED_DOCS) ## build the site of the documents into out/site, without a network
	$(BIN)/python -m tools.site

test-docs: docs $(WEB) ## look for dead links in the site, and in Chromium for blank figures
	MINIJAX_SITE=out/site $(BIN)/python -m pytest -q tests/docs/test_site.py

wheel: $(INSTALLED) ## build the wheel and the source distribution into dist
	$(BIN)/python -m tools.release build

release: $(INSTALLED) ## check that this version can be released, and print the commands that do it
	$(BIN)/python -m tools.release

check: $(INSTALLED_DEV) ## check format, lint, types and architecture
	$(BIN)/python -m tools.check

features: $(FEATURES) ## print which rows of docs/features.md no passing test shows
	@$(BIN)/python -m tools.features $(FEATURES)

size: $(INSTALLED) ## count files and lines of each room, beside its budget
	@$(BIN)/python -m tools.size

bench: $(INSTALLED) $(INSTALLED_JAX) ## compare speed with JAX, within ten minutes; every row goes to out/bench.txt
	$(BIN)/python benchmarks/run.py --jax-python $(JAX_VENV)/bin/python --table out/bench.txt

parity: $(INSTALLED) $(INSTALLED_JAX) ## compare names, results, types and jaxprs with JAX
	$(BIN)/python benchmarks/parity.py --jax-python $(JAX_VENV)/bin/python

packages: $(INSTALLED_PACKAGES) $(INSTALLED_JAX) ## run programs of optax, flax, diffrax and others against figures of JAX
	$(BIN)/python -m tools.packages --python $(PACKAGES_VENV)/bin/python --jax-python $(JAX_VENV)/bin/python

exports: $(INSTALLED) $(INSTALLED_JAX) ## carry exported programs to JAX and from it; try 2,000 random ones with symbols
	$(BIN)/python -m benchmarks.export_files --jax-python $(JAX_VENV)/bin/python
	$(BIN)/python -m pytest -q tests/export/test_symbolic.py -k random_programs --hypothesis-profile=deepest -o faulthandler_timeout=0

fuzz: $(INSTALLED) $(INSTALLED_JAX) ## compare random programs with JAX for MINUTES=30, and shorten those that differ
	$(BIN)/python -m tools.fuzz --jax-python $(JAX_VENV)/bin/python --minutes $(MINUTES)

soak: $(INSTALLED) ## do new work for MINUTES=30, and draw into out/soak.svg what memory does
	@mkdir -p out
	$(BIN)/python -m tools.soak --minutes $(MINUTES) --chart out/soak.svg --samples out/soak.json

mutants: $(INSTALLED) ## plant faults in the rules of collectives, and count those that tests notice
	$(BIN)/python -m tests.mutants.run

clean: ## remove the environments and everything generated
	rm -rf $(VENV) .venv-[0-9]* $(JAX_VENV) $(PACKAGES_VENV) $(FEATURES) web/node_modules build dist out .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A failing test must not hide the table: the report counts it as not passing.
$(FEATURES): $(SOURCES) | $(INSTALLED)
	-$(PYTEST) -q --sample=$(SEED) --features-report=$@

# The metadata of the installation contain the version, which is in minijax/__init__.py.
# The demo starts sooner without what only tests need.
$(INSTALLED_DEMO): pyproject.toml minijax/__init__.py
	$(if $(PYTHON),,$(error Python 3.11 or newer with the venv module was not found; say make PYTHON=/path/to/python))
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_OPTIONS) --editable '.[examples]' $(CONSTRAINT)
	touch $@

$(INSTALLED): pyproject.toml minijax/__init__.py
	$(if $(PYTHON),,$(error Python 3.11 or newer with the venv module was not found; say make PYTHON=/path/to/python))
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_OPTIONS) --editable '.[test,examples]' $(CONSTRAINT)
	touch $(INSTALLED_DEMO) $@

$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/python -m pip install $(PIP_OPTIONS) --editable '.[dev]'
	touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	$(BIN)/python -m pip install $(PIP_OPTIONS) --editable '.[docs]'
	touch $@

$(WEB): web/package-lock.json
	cd web && npm ci --silent
	touch $@

$(INSTALLED_JAX): benchmarks/requirements.txt
	$(if $(PYTHON),,$(error Python 3.11 or newer with the venv module was not found; say make PYTHON=/path/to/python))
	test -x $(JAX_VENV)/bin/python || $(PYTHON) -m venv $(JAX_VENV)
	$(JAX_VENV)/bin/python -m pip install $(PIP_OPTIONS) --requirement $<
	touch $@

$(INSTALLED_PACKAGES): $(wildcard benchmarks/packages/requirements*.txt) | $(INSTALLED)
	$(if $(PYTHON),,$(error Python 3.11 or newer with the venv module was not found; say make PYTHON=/path/to/python))
	test -x $(PACKAGES_VENV)/bin/python || $(PYTHON) -m venv $(PACKAGES_VENV)
	$(PACKAGES_VENV)/bin/python -m pip install $(PIP_OPTIONS) --editable . --requirement benchmarks/packages/requirements-rest.txt
	$(PACKAGES_VENV)/bin/python -m pip install $(PIP_OPTIONS) --no-deps --requirement benchmarks/packages/requirements.txt
	touch $@
