# make demo   set everything up, reproduce the four papers' figures in about a minute, write a report
# make test   set everything up, check style, types and layers, run all tests
# make lint   style, types and layers alone
# make bench  speed and memory against their targets

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out

.PHONY: demo test lint bench browser database clean

demo: $(VENV)/ready
	$(BIN)/dpbandits reproduce --scale quick --out $(OUT)/demo

test: lint browser database
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

browser:
	@command -v chromium > /dev/null || { apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null; } || \
	{ echo "the tests of the report need chromium: install it, and run make test again"; exit 1; }

database:
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null || { apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql > /dev/null; } || \
	{ echo "the tests of the service need PostgreSQL's programs: install postgresql, and run make test again"; exit 1; }

bench: $(VENV)/ready
	$(BIN)/dpbandits bench

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpbandits needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(OUT) build dist
