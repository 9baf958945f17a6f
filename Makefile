# Two commands are all that a newcomer needs: `make demo` and `make test`.
# Both build .venv (VENV=... names another) when it is missing and install again only when pyproject.toml or constraints.txt has changed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip --disable-pip-version-check -qq install --constraint constraints.txt
WHAT_IS_INSTALLED := pyproject.toml constraints.txt
TESTS ?=
DEMO ?=
# Tests wait for disks, servers and deadlines half of their time: two cores have work for four processes.
WORKERS := --quiet --numprocesses 4 --dist loadfile --no-loadscope-reorder --durations 50 --durations-min 1

.DEFAULT_GOAL := help
.PHONY: help demo test soak format docs bench gallery clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.demo ## a tour of an invented clinic, then a server for it; DEMO=--no-serve ends after the tour
	@$(BIN)/tacit demo $(DEMO)

# Each worker, and each process that a test starts, reads compiled modules instead of compiling them anew.
test soak: export PYTHONDONTWRITEBYTECODE :=
# Four workers share two cores: threads of their own for numerical libraries would wait for one another.
test soak: export OMP_NUM_THREADS := 1

test: $(VENV)/.test ## style, types, architecture and every test; TESTS=tests/unit runs a part of them
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy --no-error-summary
	$(BIN)/pytest $(WORKERS) $(TESTS)

soak: $(VENV)/.test ## the long forms of checks, which take about an hour; TESTS=tests/conformance runs a part of them
	$(BIN)/pytest -m soak $(WORKERS) $(TESTS)

format: $(VENV)/.test ## put every file into the common form
	@$(BIN)/ruff check --fix --exit-zero --quiet
	@$(BIN)/ruff format --quiet

docs: $(VENV)/.demo ## write the generated pages of docs/reference and the import graph of ARCHITECTURE.md again
	@$(BIN)/python -m docs.generate

bench: $(VENV)/.demo ## run one benchmark: make bench NAME=install
	@$(BIN)/python -m bench $(NAME)

gallery: $(VENV)/.test ## run the classic attacks, and draw them into gallery/plots; TACIT_DATA=... adds real data
	@$(BIN)/python -m gallery

clean: ## remove .venv and every cache
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "tacit needs Python 3.11 or newer, and $(PYTHON) is older or missing; try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made $(WHAT_IS_INSTALLED)
	@echo "installing tacit with its server and prompt"
	@$(INSTALL) --editable '.[cli,server]'
	@touch $@

$(VENV)/.test: $(VENV)/.made $(WHAT_IS_INSTALLED)
	@echo "installing tacit with what its tests need"
	@$(INSTALL) --editable '.[test]'
	@touch $(VENV)/.demo $@
