# Each target works on a machine that has only Python 3.11 or newer; `.venv` is made from the locks on first use.
SHELL := /bin/sh
BIN := .venv/bin
WORKSPACE ?= examples/workspace
DATA ?= .memoryd

# The torch extra takes gigabytes: it is installed in CI, or where asked for by TORCH=1.
EXTRAS := dev
ifneq ($(filter 1 true,$(TORCH) $(CI)),)
EXTRAS += torch
endif

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run test lint format proto eval bench bench-embedder chaos up down k8s images image-check lock clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## Make .venv with what memoryd needs to run
	@tools/setup.sh base

setup-dev:
	@tools/setup.sh base $(EXTRAS)

run: setup ## Serve a folder of Markdown: make run WORKSPACE=some/folder (default: the example)
	@$(BIN)/memoryd model prepare
	@exec $(BIN)/memoryd serve "$(WORKSPACE)" --data-dir "$(DATA)"

test: setup-dev ## Run the tests: make test ARGS="-k outline -n 0"; TORCH=1 adds the torch engines
	@$(BIN)/pytest --numprocesses 2 --dist loadfile $(ARGS)

lint: setup-dev ## Check style, types, imports, the proto files and the generated code
	@status=0; check() { echo "lint: $$1"; shift; "$$@" || status=1; }; \
	check ruff $(BIN)/ruff check --quiet; \
	check formatting $(BIN)/ruff format --check --quiet; \
	check types $(BIN)/mypy --no-error-summary; \
	check imports $(BIN)/lint-imports --no-logo; \
	check proto $(BIN)/buf lint; \
	check "proto formatting" $(BIN)/buf format --diff --exit-code; \
	check "proto compatibility" tools/buf_breaking.sh; \
	check "generated code" $(BIN)/python -m tools.generate_proto --check; \
	check compose $(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml; \
	exit $$status

format: setup-dev ## Format the code and fix what can be fixed without thought
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

proto: setup-dev ## Generate memoryd/v1 from proto/
	@$(BIN)/buf format --write
	@$(BIN)/python -m tools.generate_proto

eval: setup ## Measure retrieval quality: make eval SET=some/folder; SHAPE=distributed does it in six processes
	@[ -n "$(SET)" ] || { echo "eval: name the set's folder: make eval SET=some/folder" >&2; exit 2; }
	@case "$(SHAPE)" in \
	distributed) tools/setup.sh base dev && exec $(BIN)/python -m bench.distributed.evaluate $(SET) $(ARGS);; \
	*) exec $(BIN)/memoryd eval $(SET) $(ARGS);; \
	esac

bench: setup-dev ## Measure speed and memory: make bench ARGS=--json
	@$(BIN)/python -m bench $(ARGS)

bench-embedder: setup ## Measure the embedder beside its raw engine: make bench-embedder ARGS="bulk --json"
	@$(BIN)/python -m bench.embedder $(ARGS)

chaos: setup-dev ## Kill the indexer 200 times under edits, and count what is wrong: make chaos ARGS="--kills 20"
	@$(BIN)/python -m tests.chaos $(ARGS)

up: setup ## Run the services in containers: make up WORKSPACE=some/folder
	@WORKSPACE="$(abspath $(WORKSPACE))" tools/compose.sh up --build --detach --wait
	@echo 'It serves on 127.0.0.1:7420. Try:'
	@echo '  export MEMORYD_SERVER=127.0.0.1:7420'
	@echo '  export MEMORYD_KEY=$$(docker compose exec -T gateway memoryd key create --workspace workspace)'
	@echo '  $(BIN)/memoryd search "what do we do if a cold room is warming up in the middle of the night?"'

down: ## Stop them; their data stays
	@tools/compose.sh down

k8s: setup-dev ## Render deploy/k8s and validate it
	@tools/k8s.sh

images: ## Build the services' images; TORCH=1, ENGINE=podman, see tools/build_images.sh
	@tools/build_images.sh $(ARGS)

image-check: ## Build them without Docker and start each (root, Debian, minutes): make image-check ARGS=embedder
	@tools/check_images.sh $(ARGS)

lock: ## Write requirements/*.txt from pyproject.toml; UPGRADE=1 takes the newest versions
	@tools/setup.sh build
	@UPGRADE=$(UPGRADE) tools/lock.sh

clean: ## Remove what the tools made; .venv and .memoryd stay
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
