# `make demo` and `make test` set up everything they need on first use; all it takes is Python 3.11 or newer.
.DEFAULT_GOAL := help
.PHONY: help demo test faults check fix golden bench clean
unexport PYTHONHOME PYTHONPATH
SETUP := @sh scripts/setup
BIN := .venv/bin

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s%s\n", $$1, $$2 }' Makefile

demo: ## record an episode and read it back
	$(SETUP) rich
	@$(BIN)/trackway demo

test: check ## check, then every test
	@sh scripts/system-tools
	@$(BIN)/pytest -q -n 2 -rs
	@echo "trackway: all checks and tests passed"

faults: ## the fault matrix alone: each promise, and whether it held
	$(SETUP) dev
	@sh scripts/system-tools
	@$(BIN)/pytest -q -n 2 -rs -m promise

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

bench: ## the benchmarks, beside their peers
	$(SETUP) bench
	@$(BIN)/python -m benchmarks

clean: ## remove everything made here, .venv too
	@rm -rf .venv .venv-tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
