# Headwater's everyday commands; `make help` lists them.

.DEFAULT_GOAL := help
SHELL := bash
BIN := .venv/bin

.PHONY: help setup demo test test-all lint bench requirements clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv ready: pinned requirements, Headwater itself, Java
	@scripts/setup

demo: setup ## Run a traffic stream, trace one alert to its reports and back, open a page on it
	@$(BIN)/headwater demo

test: setup ## Lint, types and tests with coverage (minutes)
	@scripts/test

test-all: setup ## The same with the long parts in full (the gate for finished work)
	@HEADWATER_TEST=all scripts/test

lint: setup ## Lint, format check and types only
	@scripts/lint

bench: setup ## Measure what capturing provenance costs
	@$(BIN)/headwater bench capture

requirements: setup ## Compile requirements/*.txt anew from pyproject.toml and requirements/*.in
	@scripts/requirements

clean: ## Remove caches and what runs left behind (keeps .venv)
	@rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov build dist \
		artifacts derby.log metastore_db spark-warehouse headwater-demo
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
