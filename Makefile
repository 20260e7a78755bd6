# Two commands do everything on a fresh machine with Python 3.11+:
#   make demo    environment, install, a real defended training with a table and a picture
#   make test    environment, install, linters, types, the tests
# `make docs` builds the site with its gallery; `make test-all` runs that, and the long tests as well.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check
# Tests run in two processes; one BLAS thread each keeps them from fighting over the cores. A file's tests stay in one
# process, so that what they share (a cluster, a browser, a fitted model) is made once.
JOBS   ?= 2
SITE   := build/docs
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test test-all test-oldest lint types docs bench results browser clean
.SILENT:

demo: $(VENV)/.demo
	$(BIN)/python examples/plot_demo.py demo.png

test: lint types browser
	$(THREADS) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" --durations=20

test-all: lint types docs browser
	$(THREADS) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --durations=20

# The oldest versions that pyproject.toml names, in an environment of their own.
OLDEST := numpy==1.26.* scipy==1.11.* scikit-learn==1.6.0 joblib==1.3.* threadpoolctl==3.1.* narwhals==2.0.* skops==0.16.* pandas==2.1.* pyarrow==15.*
test-oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install -qq --disable-pip-version-check -e . -e ./bench pytest hypothesis polars $(OLDEST:%='%')
	$(THREADS) $(VENV)-oldest/bin/python -m pytest -m "not slow" tests/base tests/labels tests/certify tests/floral tests/test_doors.py

lint: $(VENV)/.dev
	$(BIN)/ruff check --quiet src bench/src tests benchmarks examples docs/conf.py docs/_ext
	$(BIN)/ruff format --check --quiet src bench/src tests benchmarks examples docs/conf.py docs/_ext

types: $(VENV)/.dev
	$(BIN)/mypy --no-error-summary

# The gallery runs while the site is built, so that a broken example breaks the build; warnings are errors. Examples that
# were run before are run again when the library has changed since.
docs: $(VENV)/.dev
	if [ -f $(SITE)/index.html ] && [ -n "$$(find src bench/src -name '*.py' -newer $(SITE)/index.html | head -1)" ]; then rm -rf docs/gallery; fi
	rm -rf docs/api/generated
	$(THREADS) GALLERY_JOBS=$(JOBS) $(BIN)/python -m sphinx -q -E -W --keep-going -b html -d build/doctrees docs $(SITE)
	touch $(SITE)/index.html
	echo "documentation: $(CURDIR)/$(SITE)/index.html"

# Pages are tested in Chromium. Where it is missing and Debian's packages can be installed, install it; elsewhere those
# tests are skipped and say so.
browser:
	if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing Chromium for the tests of pages (first time only)"; \
	  { apt-get -qq update && apt-get -qq install -y chromium chromium-driver; } >/dev/null 2>&1 || true; \
	fi

# Every suite of the paper that needs no GPU, again, into docs/results: an hour or two on two cores, from a clean tree.
results: $(VENV)/.dev
	$(THREADS) $(BIN)/python benchmarks/run_suites.py run --jobs $(JOBS)
	$(BIN)/python benchmarks/run_suites.py publish

# A look at the suites that need no file and no GPU, each in a small version.
BENCH := moon sensitivity nn-integration questions crowd
bench: $(VENV)/.dev
	$(THREADS) $(BIN)/floral bench $(BENCH) --quick --jobs $(JOBS)

clean:
	rm -rf $(VENV) $(VENV)-oldest build dist docs/gallery docs/api/generated docs/api/backreferences .mypy_cache .ruff_cache .hypothesis demo.png

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "floral-learn needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	echo "creating the environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml bench/pyproject.toml
	echo "installing floral-learn and what it needs: one to three minutes, the first time only; pip is quiet meanwhile"
	$(PIP) -e '.[cli]' -e ./bench
	touch $@

# torch is pinned to a release, so that the environment is the same everywhere.
$(VENV)/.dev: $(BIN)/python pyproject.toml bench/pyproject.toml
	echo "installing floral-learn with its test tools, torch among them: some minutes, the first time only; pip is quiet meanwhile"
	$(PIP) torch==2.13.0
	$(PIP) -e '.[dev]' -e './bench[peers]'
	touch $@ $(VENV)/.demo
