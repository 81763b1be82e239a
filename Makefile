# Everything runs inside .venv, which `make setup` creates; no root, conda or system package is needed.
# Another interpreter: make setup PYTHON=python3.12. Fewer cores: make run CORES=2.

PYTHON ?= python3
CORES ?= all
SHELL := bash
QUICK := workflow/configs/quick.yaml
INSTALLED := .venv/installed

export PATH := $(CURDIR)/.venv/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup run full test test-slurm lock clean

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(INSTALLED) ## Create .venv and install everything at the locked versions

$(INSTALLED): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $(PYTHON) is $$($(PYTHON) --version 2>&1), but 3.11 or later is needed; try: make setup PYTHON=python3.12" >&2; exit 1; }
	@echo "Installing into .venv: about a minute, more where torch is still to be downloaded"
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --constraint requirements.lock --editable '.[dev]'
	@touch $@

run: setup ## The quick experiment on the Brown corpus: every n-gram, one network, a few epochs (minutes)
	snakemake --cores $(CORES) --configfile $(QUICK)
	@cat reports/quick/table1.md
	@echo "The whole report, to open in a browser: $(CURDIR)/reports/quick/index.html"

full: setup ## The full experiment of config.yaml: every row of the paper's table (an hour or more)
	snakemake --cores $(CORES)

test: setup ## Style checks, then the whole test suite
	ruff check
	ruff format --check
	snakefmt --check Snakefile workflow/rules
	snakemake --lint
	pytest --ignore tests/slurm

# They fail, rather than skip, where the cluster cannot be started.
test-slurm: setup ## The tests on a SLURM cluster of two nodes on this machine; needs slurm-wlm, munge and root
	NPLM_REQUIRE_SLURM=1 pytest tests/slurm

lock: ## Renew requirements.lock from what pyproject.toml allows today
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	$(PYTHON) -m venv "$$scratch" && \
	"$$scratch/bin/python" -m pip install --quiet --editable '.[dev]' && \
	{ sed '/^[^#]/d' requirements.lock && "$$scratch/bin/python" -m pip freeze --exclude-editable | sed 's/+cpu$$//'; } \
	  > requirements.lock.new && mv requirements.lock.new requirements.lock

clean: ## Remove .venv and the tools' caches; resources, results and reports stay
	rm -rf .venv .snakemake .pytest_cache .ruff_cache
