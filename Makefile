# Penstock. `make demo` and `make test` are all that is needed; each sets up what it lacks.

.DEFAULT_GOAL := help
BIN := .venv/bin
CHECKED := src apps tests bench scripts
export PYTHON

.PHONY: help setup demo test check unit pictures servers chaos nexmark bench-services bench-pipelines bench-serving bench-connectors bench-live bench-nexmark docs docs-serve format lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv and fetch the jars
	@sh scripts/setup.sh

demo: setup ## devices that fail, found and recovered from, live (Ctrl-C ends it and makes a report)
	@$(BIN)/python -m apps.anomaly demo

test: check ## the checks and all tests (half an hour)
	$(BIN)/python scripts/run_tests.py

check: setup ## format, lint, types, import contract, module size
	$(BIN)/ruff format --check $(wildcard $(CHECKED))
	$(BIN)/ruff check $(wildcard $(CHECKED))
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_tree.py

unit: setup ## the tests that need neither broker nor JVM
	$(BIN)/pytest tests/unit

servers: setup ## the sinks to OpenSearch and QuestDB against the real servers (100 MB of jars, two minutes)
	PENSTOCK_SERVERS=1 $(BIN)/pytest tests/servers

chaos: setup ## play every fault scenario with several seeds, and many more examples (two hours)
	PENSTOCK_CHAOS_SEEDS="1 2 3" $(BIN)/pytest tests/unit --timeout 3600
	$(BIN)/python tests/chaos/run.py
	PENSTOCK_CHAOS_SEEDS="1 2 3" $(BIN)/pytest tests/broker/test_serving_openapi.py --timeout 3600
	PENSTOCK_CHAOS_SEEDS="1" $(BIN)/pytest tests/chaos/test_anomaly.py
	PENSTOCK_CHAOS_SEEDS="1 2 3" $(BIN)/pytest tests/broker/test_serving_live_deaths.py --timeout 1200
	PENSTOCK_CHAOS_SEEDS="1 2 3" $(BIN)/pytest tests/spark/test_exactly_once.py tests/spark/test_lake_deaths.py tests/spark/test_history.py -k many_deaths
	PENSTOCK_CHAOS_SEEDS="1 2 3" $(BIN)/pytest tests/spark/test_same_answer.py tests/spark/test_sqlgate.py -k "many_generated or let_through"

nexmark: setup ## all Nexmark queries over several seeds and disorders, compared with a database (15 minutes)
	$(BIN)/python bench/nexmark/verify.py

bench-services: setup ## services and joins beside Kafka Streams and Quix (15 minutes)
	$(BIN)/python bench/services/compare.py
	$(BIN)/python bench/services/joins.py

bench-pipelines: setup ## pipelines beside Flink SQL and hand-written PySpark, latency, a cluster (25 minutes)
	$(BIN)/python bench/pipelines/run.py

bench-serving: setup ## serving beside the bare server and producer, look-ups under load (two minutes)
	$(BIN)/python bench/serving/run.py

bench-connectors: setup ## connectors beside the bulk loaders of their systems (a minute)
	$(BIN)/python bench/connectors/run.py

bench-live: setup ## live queries: evaluations, the index, fan-out, the grid, and from a write to a frame (four minutes)
	$(BIN)/python bench/live/run.py

bench-nexmark: setup ## events a second per core of each Nexmark query (20 minutes)
	$(BIN)/python bench/nexmark/bench.py --markdown bench/nexmark/speeds.md --json bench/nexmark/speeds.json

pictures: setup ## take the pictures in docs/images anew: of the console, and of the todo application
	PENSTOCK_PICTURES=build/pictures $(BIN)/pytest -q tests/browser/test_console.py tests/browser/test_todo.py
	cp $(foreach name,overview killed topology way sql windows,build/pictures/console-$(name).png) docs/images
	cp build/pictures/todo-light.png docs/images

docs: setup ## build the documentation site into build/site; a broken link fails
	@sh scripts/docs.sh build

docs-serve: setup ## serve the documentation site while you write (Ctrl-C ends it)
	@sh scripts/docs.sh serve

format: setup ## format the code and mend what the linter can
	$(BIN)/ruff format $(wildcard $(CHECKED))
	$(BIN)/ruff check --fix $(wildcard $(CHECKED))

lock: setup ## choose versions anew: Python packages and jars
	for name in bootstrap build java runtime development docs; do \
	  UV_SYSTEM_CERTS=true $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	    --generate-hashes --no-header --upgrade \
	    requirements/$$name.in --output-file requirements/$$name.txt || exit 1; \
	done
	$(BIN)/python scripts/lock_jars.py

clean: ## remove what checks and tests leave (not .venv, not the data in .penstock)
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src apps tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +
