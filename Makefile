# Commands on a fresh machine: `make demo`, `make check`, `make test`. Each sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
unexport PYTHONDONTWRITEBYTECODE  # compiled code is kept: the tests start hundreds of processes
VERSIONS := 3.5 4.0 4.1 4.2
FAST := not (spark or cluster or flink or browser or server or kafka or lake)

.PHONY: demo check test test-lake test-versions test-versions-quick wheel docs figures screenshots lint bench-batch bench-gate bench clean help

help:            ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

$(VENV)/ready: pyproject.toml constraints.txt scripts/setup.sh
	PYTHON=$(PYTHON) VENV=$(VENV) sh scripts/setup.sh
	touch $@

$(VENV)/servers: scripts/test-servers.sh $(VENV)/ready
	sh scripts/test-servers.sh
	touch $@

$(VENV)/flink/ready: scripts/flink.sh scripts/flink.xml $(VENV)/ready
	VENV=$(VENV) sh scripts/flink.sh
	touch $@

$(VENV)/kafka/complete: scripts/kafka.sh scripts/kafka.xml $(VENV)/ready
	VENV=$(VENV) sh scripts/kafka.sh

$(VENV)/lake/complete: scripts/lake.sh scripts/lake.xml $(VENV)/ready
	PYTHON=$(PYTHON) VENV=$(VENV) sh scripts/lake.sh

$(VENV)/spark-%/ready: scripts/versions.sh constraints.txt $(VENV)/ready
	PYTHON=$(PYTHON) VENV=$(VENV) sh scripts/versions.sh $*

demo: $(VENV)/ready     ## the same small fleet on plain Spark, then with Slackwater, side by side
	$(BIN)/python examples/demo.py

check: lint             ## before each commit: lint, types, the tests that need no Spark, Flink, browser or server
	$(BIN)/pytest -q -n 4 --dist worksteal -m "$(FAST)"  # many wait for processes: more than there are cores

test: $(VENV)/servers $(VENV)/flink/ready $(VENV)/kafka/complete check docs wheel test-versions-quick test-lake ## all checks and tests
	$(BIN)/pytest -m "not ($(FAST)) and not versions and not lake"

test-lake: $(VENV)/lake/complete $(VENV)/kafka/complete $(VENV)/spark-4.1/ready ## Delta, Iceberg and checkpoints at S3, on Spark 4.1
	VENV=$(VENV) $(BIN)/python scripts/test_versions.py --lake

test-versions: $(VERSIONS:%=$(VENV)/spark-%/ready) ## the contract of gates and fleets on Spark 3.5 to 4.3; writes the table in docs/compatibility.md
	VENV=$(VENV) $(BIN)/python scripts/test_versions.py

test-versions-quick: $(VENV)/spark-3.5/ready $(VENV)/spark-4.1/ready ## its quickest part, on 3.5 and 4.1
	VENV=$(VENV) $(BIN)/python scripts/test_versions.py --quick 3.5 4.1

wheel: $(VENV)/ready    ## build the wheel, install it into an empty environment and run a fleet with it
	VENV=$(VENV) sh scripts/try-wheel.sh

docs: $(VENV)/ready     ## the documentation as a site, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

figures: $(VENV)/kafka/complete $(VENV)/flink/ready ## measure what is missing in docs/figures, write tables into the pages; QUICK=--quick: an hour
	$(BIN)/python -m slackwater_bench.figures $(QUICK)

screenshots: $(VENV)/servers ## pictures of the page for the README, taken by its test
	SLACKWATER_SCREENSHOTS=docs/images $(BIN)/pytest -q tests/operations/dashboard/test_browser.py

lint: $(VENV)/ready
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench-batch: $(VENV)/ready ## CPU per micro-batch: stock, each setting of the session alone, all
	$(BIN)/python -m slackwater_bench.costs.session

bench-gate: $(VENV)/ready ## what each gate costs per batch and per query
	$(BIN)/slackwater bench gate

bench: $(VENV)/ready    ## latency of YSB windows under every policy
	$(BIN)/slackwater bench ysb

clean:           ## remove what was generated
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
