# Two commands on a fresh machine: `make demo` and `make test`. Both set everything up first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench-batch bench-gate bench clean help

help:            ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

$(VENV)/ready: pyproject.toml constraints.txt scripts/setup.sh
	PYTHON=$(PYTHON) VENV=$(VENV) sh scripts/setup.sh
	touch $@

$(VENV)/servers: scripts/test-servers.sh $(VENV)/ready
	sh scripts/test-servers.sh
	touch $@

$(VENV)/flink/ready: scripts/flink.sh $(VENV)/ready
	VENV=$(VENV) sh scripts/flink.sh
	touch $@

demo: $(VENV)/ready     ## run a fleet on embedded Spark and show what happened
	$(BIN)/python examples/demo.py

test: $(VENV)/servers $(VENV)/flink/ready lint ## all checks and tests
	$(BIN)/pytest

lint: $(VENV)/ready
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples
	$(BIN)/mypy

bench-batch: $(VENV)/ready ## CPU per micro-batch: stock, each setting of the session alone, all
	$(BIN)/python -m slackwater.bench.batch

bench-gate: $(VENV)/ready ## what each gate costs per batch and per query
	$(BIN)/slackwater bench gate

bench: $(VENV)/ready    ## latency of YSB windows under every policy
	$(BIN)/slackwater bench ysb

clean:           ## remove what was generated
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
