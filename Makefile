# `make demo` and `make test` set up everything they need on first use; all it takes is Python 3.11 or newer.
.DEFAULT_GOAL := help
.PHONY: help demo test faults check fix golden bench formats bench-peers clean
unexport PYTHONHOME PYTHONPATH
SETUP := @sh scripts/setup
BIN := .venv/bin

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s%s\n", $$1, $$2 }' Makefile

demo: ## record an episode and read it back
	$(SETUP) rich
	@$(BIN)/trackway demo

test: check ## check, then every test
	@sh scripts/system-tools
	@$(BIN)/pytest -q -n 2 --dist worksteal -rs
	@echo "trackway: all checks and tests passed"

faults: ## the fault matrix alone: each promise, and whether it held
	$(SETUP) dev
	@sh scripts/system-tools
	@$(BIN)/pytest -q -n 2 --dist worksteal -rs -m promise

check: ## formatting, lint, types, layers
	$(SETUP) dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy src $(wildcard tests/typing)
	@$(BIN)/lint-imports --no-logo

fix: ## format, and repair what the linter can repair
	$(SETUP) dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

golden: ## rewrite the golden files; review the difference
	$(SETUP) dev
	@$(BIN)/pytest -q --golden

bench: ## the benchmarks; ARGS="--doc docs/benchmarks.md" keeps the figures
	$(SETUP) bench
	@$(BIN)/python -m benchmarks $(ARGS)

formats: ## every file beside the checkout imported, counted, given back; into docs/formats.md, or as ARGS say
	$(SETUP) dev
	@$(BIN)/python -m benchmarks.formats $(or $(ARGS),--doc docs/formats.md)

bench-peers: ## beside other recorders, each installed apart; into docs/benchmarks.md, or as ARGS say
	$(SETUP) bench
	@$(BIN)/python -m benchmarks.side_by_side $(or $(ARGS),--doc docs/benchmarks.md)

clean: ## remove everything made here, .venv too
	@rm -rf .venv .venv-peers .venv-tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
