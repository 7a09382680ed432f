# Every target works as the first command after a clone: it makes .venv, installs what it needs there, and says what it does.
# The second time nothing is installed again, until pyproject.toml or requirements/ change.

VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --quiet --disable-pip-version-check install
STAMPS := $(VENV)/.stamps

# Make's own lines are kept short: the commands below print one line each instead.
.SILENT:
.PHONY: help demo test lint types bench clean
.DELETE_ON_ERROR:

help:
	echo "make demo    load a .pt into arrays, and list, convert, verify and compare two weight files"
	echo "make test    run all tests, and every example of the documentation"
	echo "make lint    ruff, the import contracts, the length of files"
	echo "make types   mypy --strict over src"
	echo "make bench   measure against safetensors, torch and the real Burn"
	echo "make clean   remove the virtual environment and the caches"
	echo
	echo "PYTHON=/path/to/python3 chooses the interpreter (3.11 or newer) when .venv is made."

demo: $(STAMPS)/core
	$(PY) examples/demo.py

test: $(STAMPS)/test
	echo "▸ python -m pytest"
	$(PY) -m pytest

lint: $(STAMPS)/lint
	echo "▸ ruff check"
	$(VENV)/bin/ruff check .
	echo "▸ ruff format --check"
	$(VENV)/bin/ruff format --check .
	echo "▸ lint-imports"
	$(VENV)/bin/lint-imports --no-logo
	echo "▸ no file of src is over 400 lines"
	find src -name '*.py' -exec awk 'END { if (NR > 400) { print FILENAME ": " NR " lines"; exit 1 } }' {} \; | { ! grep .; }

types: $(STAMPS)/lint
	echo "▸ mypy --strict"
	$(PY) -m mypy

bench: $(STAMPS)/test
	$(PY) -m benchmarks

clean:
	rm -rf $(VENV) .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the virtual environment -------------------------------------------------------------------------------------------------

$(STAMPS)/venv:
	python=$$(sh requirements/find-python.sh "$(PYTHON)") || exit 1; \
	echo "▸ making $(VENV) with $$python ($$($$python -V))"; \
	rm -rf $(VENV) && $$python -m venv $(VENV)
	mkdir -p $(STAMPS) && touch $@

$(STAMPS)/core: $(STAMPS)/venv pyproject.toml
	echo "▸ installing burnstore and its four dependencies"
	$(PIP) --editable .
	touch $@

$(STAMPS)/lint: $(STAMPS)/core requirements/lint.txt requirements/core.txt
	echo "▸ installing the tools of requirements/lint.txt"
	$(PIP) -r requirements/lint.txt
	touch $@

# torch goes by a command of its own: with other requirements beside it, pip may choose a build of several gigabytes.
$(STAMPS)/torch: $(STAMPS)/core
	echo "▸ installing torch, which some tests compare with; this takes a minute"
	$(PIP) torch==2.13.0
	touch $@

$(STAMPS)/test: $(STAMPS)/torch requirements/test.txt requirements/lint.txt requirements/core.txt
	echo "▸ installing the packages of requirements/test.txt"
	$(PIP) -r requirements/test.txt
	touch $@
