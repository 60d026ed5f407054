# Every target sets up what it needs. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
LOCK_VENV := build/lock-venv
UV_VERSION := 0.13.7
# Processes that run the tests side by side; a file stays in one of them, so that its vectors are read once.
WORKERS ?= 2
# The first interpreter that is new enough; `make setup PYTHON=...` chooses another one.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## make .venv with the pinned packages (does nothing when it is up to date)
	@:

$(STAMP): pyproject.toml requirements/dev.txt
	@test -n "$(PYTHON)" || { echo "setup: ottla needs Python 3.11 or newer; none found (set PYTHON=...)" >&2; exit 2; }
	@echo "setup 1/3: environment in $(VENV) with $$($(PYTHON) --version)"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "setup 2/3: $$(grep -c '^[a-z].*==' requirements/dev.txt) pinned packages (some minutes on a slow line, 1.3 GB on disk, most of it Spark)"
	@set -o pipefail; $(BIN)/python -m pip install --disable-pip-version-check --no-input --progress-bar off \
		--require-hashes -r requirements/dev.txt | sed -un 's/^Collecting \([^ ]*\).*/  fetching \1/p; s/^Installing.*/  installing/p'
	@echo "setup 3/3: ottla itself, editable"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation --editable .
	@touch $@
	@echo "setup: done; try $(BIN)/ottla --help"

.PHONY: demo
demo: setup ## a small cluster with real workloads, three incidents and a report; about 5 minutes (DEMO_STAY=1 keeps its nodes)
	@$(BIN)/ottla demo $(if $(DEMO_STAY),--stay)

.PHONY: tour
tour: setup ## a guided tour of what there is, with claims that are checked; some seconds
	@$(BIN)/ottla tour

.PHONY: test
test: check suite ## everything that continuous integration runs: lint, types, contracts, generated files, tests

.PHONY: suite
suite: setup
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile

.PHONY: check
check: lint types fresh ## lint, types, import contracts and generated files, without running the tests

.PHONY: lint
lint: setup ## ruff (rules and format) and the import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo

.PHONY: types
types: setup ## mypy, strict
	@$(BIN)/mypy src simulation tools $(wildcard tests/types)

.PHONY: fresh
fresh: setup
	@$(BIN)/python tools/generate_types.py --check

.PHONY: generate
generate: setup ## write the generated types anew from src/ottla/wire/schemas
	@$(BIN)/python tools/generate_types.py

.PHONY: format
format: setup ## let ruff mend what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# tests/interop/parts.py says what is in them.
INTEROP_PARTS := interop-clients interop-groups interop-spark interop-pipeline

.PHONY: interop
interop: setup ## real clients and Apache Kafka's own tools, in four parts (needs Java 17 and Maven)
	@$(BIN)/python tools/in_turn.py $(INTEROP_PARTS)

.PHONY: $(INTEROP_PARTS) interop-moving
interop-clients: ## the first part of it: single clients, tools, files, pages
interop-groups: ## the second: groups of all kinds, transactions, Kafka Streams
interop-spark: ## the third: PySpark's sources and sinks
interop-pipeline: ## the fourth: the pipeline's tables, streams and reports
interop-moving: ## groups, transactions and Kafka Streams once more, on three nodes whose leaders move
interop-moving: export OTTLA_INTEROP_BROKERS := moving
$(INTEROP_PARTS) interop-moving: interop-%: setup
	@$(BIN)/python -m tests.interop.jars
	@$(BIN)/pytest -m interop -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --durations=10 \
		$$($(BIN)/python -m tests.interop.parts $*)

.PHONY: slow-controller
slow-controller: setup ## the tests of the broker with a controller that takes a second for each request (they mostly wait)
	@$(BIN)/pytest -q -n 6 --dist loadfile --controller-delay 1 tests/unit/broker tests/component/broker

# The newest PySpark that ottla allows, in a folder before the packages of .venv, which has the one of Delta and of Spark's own connector.
NEXT_PYSPARK := 4.3.0
NEXT := build/pyspark-$(NEXT_PYSPARK)

$(NEXT)/.ready: requirements/pyspark-next.txt | setup
	@echo "spark-next: pyspark $(NEXT_PYSPARK) in $(NEXT) (some minutes, 0.5 GB on disk)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --require-hashes \
		--upgrade --target $(NEXT) -r requirements/pyspark-next.txt
	@touch $@

.PHONY: spark-next
spark-next: setup $(NEXT)/.ready ## all tests of Spark once more, interop included, with the newest PySpark
	@export PYTHONPATH=$(CURDIR)/$(NEXT); \
	$(BIN)/python -c 'import pyspark, sys; sys.exit(pyspark.__version__ != "$(NEXT_PYSPARK)")'; \
	$(BIN)/pytest -n $(WORKERS) --dist loadfile tests/unit/spark tests/component/spark; \
	$(BIN)/python tools/in_turn.py interop-spark interop-pipeline

.PHONY: nightly
nightly: setup ## everything: check, tests, each part of interop, and Spark's newest; goes on after a failure and sums up
	@$(BIN)/python tools/in_turn.py check suite slow-controller $(INTEROP_PARTS) spark-next

.PHONY: bench
bench: setup ## benchmarks beside other libraries and brokers: make bench FOLDER=wire (or log, explain, broker)
	@$(BIN)/python -m benchmarks $(or $(FOLDER),wire)

.PHONY: docs
docs: setup ## build the documentation as a site: these pages, the reference, the protocol
	@$(BIN)/python -m tools.docs_site

.PHONY: lock
lock: ## pin the newest allowed packages anew in requirements/
	@test -x $(LOCK_VENV)/bin/uv || { $(PYTHON) -m venv $(LOCK_VENV) && $(LOCK_VENV)/bin/pip install --quiet uv==$(UV_VERSION); }
	@for set in "base" "dev --extra test --extra spark --group dev"; do \
		name=$${set%% *}; options=$${set#$$name}; echo "lock: requirements/$$name.txt"; \
		$(LOCK_VENV)/bin/uv pip compile --quiet pyproject.toml $$options --upgrade --universal --python-version 3.11 \
			--generate-hashes --no-header --no-emit-index-url --no-emit-find-links --output-file requirements/$$name.txt; done
	@echo "lock: requirements/pyspark-next.txt"; echo "pyspark==$(NEXT_PYSPARK)" | $(LOCK_VENV)/bin/uv pip compile --quiet - --no-deps \
		--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements/pyspark-next.txt

.PHONY: clean
clean: ## remove .venv, caches and build output
	rm -rf $(VENV) build dist site demo .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src simulation tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
