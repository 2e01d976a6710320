# make demo      set up what it needs, reproduce the four papers' figures in about a minute, write a report
# make test      set everything up, check style, types and layers, run all tests
# make lint      style, types and layers alone
# make docs      the documentation as a site, out/site; a warning is an error
# make coverage  all tests, and which lines they reach
# make install   try the package without extras on every Python that is here: 3.11, 3.12, 3.13
# make web       the page of dpbandits serve, in this checkout; needs Node 20.19 or newer
# make tour      the pictures of docs/tour.md, made again
# make bench     speed and memory against their targets

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out

.PHONY: demo test lint docs coverage install bench web tour browser database clean

demo: $(VENV)/runs
	$(BIN)/dpbandits reproduce --scale quick --out $(OUT)/demo

test:
	@$(MAKE) --no-print-directory --jobs=3 lint browser database web
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

database: | browser  # apt-get runs once at a time
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null || { apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql > /dev/null; } || \
	{ echo "the tests of the service need PostgreSQL's programs: install postgresql, and run make test again"; exit 1; }

coverage: $(VENV)/ready browser database web
	$(BIN)/python -m pytest -n auto --cov --cov-report=term --cov-report=html:$(OUT)/coverage

docs: $(VENV)/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --site-dir $(OUT)/site

# The page is built again when one of its sources is newer.
PAGE = src/dpbandits/service/web/index.html
web: $(PAGE)

$(PAGE): $(shell find web clients/js/src -type f -not -path '*/node_modules/*') web/node_modules/ready
	cd web && npm run --silent build -- --logLevel warn

web/node_modules/ready: web/package.json
	@command -v npm > /dev/null || { echo "the page needs Node 20.19 or newer, with npm: install them"; exit 1; }
	cd web && npm install --silent --no-audit --no-fund --no-package-lock
	touch $@

tour: $(VENV)/ready browser web
	TOUR=write $(BIN)/python -m pytest tests/page/test_tour.py

install: $(VENV)/runs
	$(BIN)/python tests/install/every_python.py

bench: $(VENV)/ready
	$(BIN)/dpbandits bench

# What is installed: to run commands (runs), to build the site (site), or everything that the tests need (ready).
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpbandits needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/runs: pyproject.toml constraints.txt | $(BIN)/python
	test $(VENV)/ready -nt pyproject.toml || $(INSTALL) '.[reproduce]'
	touch $@

$(VENV)/site: pyproject.toml constraints.txt | $(BIN)/python
	test $(VENV)/ready -nt pyproject.toml || $(INSTALL) '.[docs]'
	touch $@

$(VENV)/ready: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(OUT) build dist web/node_modules src/dpbandits/service/web
