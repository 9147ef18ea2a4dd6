# Headwater's everyday commands; `make help` lists them.

.DEFAULT_GOAL := help
SHELL := bash
BIN := .venv/bin

.PHONY: help setup demo test test-all lint docs bench dist verify soak requirements clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv ready: pinned requirements, Headwater itself, Java
	@scripts/setup

demo: setup ## Run a traffic stream, trace one alert to its reports and back, open a page on it
	@$(BIN)/headwater demo

test: setup ## Lint, types and tests (minutes)
	@scripts/test

test-all: setup ## The same with the long parts in full (the gate for finished work)
	@HEADWATER_TEST=all scripts/test

lint: setup ## Lint, format check and types only
	@scripts/lint

docs: setup ## Build the documentation's site into build/site
	@scripts/docs

bench: setup ## Measure what capturing provenance costs
	@$(BIN)/headwater bench capture

dist: setup ## Build the wheel and the source distribution into dist/
	@scripts/dist

verify: ## From a clean clone: make demo, make test, and the wheel in an environment of its own
	@scripts/verify

soak: setup ## Everything at once for MINUTES=30, with faults (SEED=1), and check all of it
	@scripts/soak

requirements: setup ## Compile requirements/*.txt anew from pyproject.toml and requirements/*.in
	@scripts/requirements

clean: ## Remove caches and what runs left behind (keeps .venv)
	@rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov build dist \
		artifacts derby.log metastore_db spark-warehouse headwater-demo
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
