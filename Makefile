# What developers do many times a day. Each command is one line, and can be typed without make as well.
.DEFAULT_GOAL := help
.PHONY: help lint types test integration everything study docs pictures smoke
NAME ?= streams
tools := .venv/bin
made := $(tools)/ruff

help: ## List these commands
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' Makefile | expand -t 14

lint: $(made) ## Check style and format of Python and Snakemake files
	$(tools)/ruff check . && $(tools)/ruff format --check . && $(tools)/snakefmt --check Snakefile workflow/Snakefile workflow/rules/*.smk

types: $(made) ## Check types
	$(tools)/mypy

test: ## Run the default tests: units, results, one write and read of each system, one smoke pipeline (5 minutes)
	./tidemark test

integration: ## Also conformance, servers, the browser and slow results (15 minutes)
	./tidemark test --integration

everything: ## Also every study's pipeline, kills, faults, stacks and Nix (45 minutes, more on a slow machine); CI runs this
	./tidemark test --all

study: ## Run the tests of one study: make study NAME=freshness
	./tidemark test tests/studies/$(NAME) -n 2 --dist loadscope

docs: ## Write the generated pages again, and build the documentation as a site
	./tidemark artifact .
	./tidemark docs

pictures: $(made) ## Take the documentation's pictures of report and site again, from shipped results
	$(tools)/python -m tests.results.screenshots

smoke: ## Measure two systems at the smallest size, up to the report
	./tidemark all --config protocol=smoke 'streams.systems={ducklake: {}, delta-rs: {}}'

$(made):
	./tidemark test --version
