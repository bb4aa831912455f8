# Everything runs in .venv, which the first command creates. PYTHON=python3.13 make ... chooses another Python for it.
PYTHON ?= python3
BIN = .venv/bin
READY = .venv/ready

.PHONY: help setup demo test trial lint type fuzz bench clean

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 8

setup: $(READY)  ## create .venv, and get a MySQL for the demo and the tests
	$(BIN)/python -m docker.local.get_mysql

demo: $(READY)  ## play the tutorial between two real MySQL servers; ARGS=--keep leaves them up
	@$(BIN)/python -m docker.local.demo $(ARGS)

test: $(READY)  ## run the tests, some at a time; ARGS="-k name" goes to pytest, ARGS=-n0 runs one after the other
	$(BIN)/pytest -n auto --dist loadgroup --max-worker-restart=0 $(ARGS)

trial: $(READY)  ## beside native replication: FILES="a.sql b.test", or SECONDS=600 SEED=1 for invented SQL; GTIDS=off COMPRESSION=on ROWS=sql WORKERS=1 ORDER=independent
	PYTHONPATH=.:tests $(BIN)/python -m trial $(FILES) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) \
		--gtids $(or $(GTIDS),on) --compression $(or $(COMPRESSION),off) --rows $(or $(ROWS),auto) \
		--workers $(or $(WORKERS),4) --order $(or $(ORDER),leader) $(ARGS)

lint: $(READY)  ## check style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

type: $(READY)  ## check types
	$(BIN)/mypy

fuzz: $(READY)  ## alter what is read from outside; TARGET=json RUNS=1000000
	$(BIN)/python tests/fuzz/run.py $(TARGET) $(if $(RUNS),--runs $(RUNS)) $(ARGS)

bench: $(READY)  ## measure, one benchmark after the other
	for file in capture replay end_to_end initial_copy parity; do $(BIN)/python benchmarks/$$file.py $(ARGS) || exit; done

clean:  ## remove .venv, the private MySQL and what the tools left
	rm -rf .venv .mysql trial-finds .pytest_cache .hypothesis .mypy_cache .ruff_cache build *.egg-info

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable ".[parity]" --group dev
	@touch $@
