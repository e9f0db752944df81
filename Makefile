# Everything a contributor runs. `make` alone explains; CI runs these same commands.

PYTHON ?= python3
# More arguments for pytest, the benchmarks or the development server: make test ARGS="-k claim"
ARGS ?=

BIN := .venv/bin
STAMP := .venv/.setup-stamp
PYTEST := $(BIN)/python -m pytest -n 4 --dist worksteal -ra
# Node comes as a wheel, so that nobody has to install it.
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix web --no-update-notifier
MODULES := web/node_modules/.stamp
DASHBOARD := src/rota/server/static/index.html

.DEFAULT_GOAL := help
.PHONY: help setup lock servers web check test test-fast test-long chaos mutants test-infra dist demo bench bench-peers bench-growth simulate screenshots docs dev

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv with the package and the locked tools; again only when these changed

lock: setup ## Renew requirements-dev.lock; needs python3.11, 3.12 and 3.13 on the PATH
	@$(BIN)/python -m tools.lock_dependencies

web: $(DASHBOARD) ## Build the dashboard into the package

check: setup $(MODULES) ## Lint, formatting and types, of Python and of the dashboard
	$(NPM) run --silent check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m tools.lint_words
	$(BIN)/pyright
	$(BIN)/mypy

test: setup servers web ## The tests, on a real Valkey and a real Redis; says what was skipped and why
	$(NPM) run --silent test
	$(PYTEST) $(ARGS)

test-fast: setup ## Core, stories, and the store on Valkey alone, in under two minutes; for every edit
	$(PYTEST) -k "not redis7" tests/core tests/stories tests/store $(ARGS)

test-long: setup servers web ## The same with far more examples and longer runs
	ROTA_TEST_LONG=1 $(PYTEST) --timeout 3600 $(ARGS)

chaos: setup servers ## Faults of all kinds for a minute each, and the proof from journals (ARGS="network --seed 7 --seconds 600")
	@$(BIN)/python -m tests.crash.scenarios $(ARGS)

mutants: setup ## Seed bugs one by one into a copy, and show which check notices each, in half an hour
	@$(BIN)/python -m tests.mutants.run $(ARGS)

test-infra: setup ## The AWS stack of deploy/pulumi with Pulumi's mocks; installs Pulumi (270 MB)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --group infra
	$(BIN)/python -m pytest -q tests/deploy/test_pulumi.py $(ARGS)

dist: setup web ## Build a wheel and a source distribution into dist/; follow the tutorial with the wheel
	@rm -rf dist
	@$(BIN)/python -m hatchling build
	ROTA_TEST_DIST=$(CURDIR)/dist $(PYTEST) tests/newcomer $(ARGS)

demo: setup web ## Example jobs of every kind, embedded server, autoscaled workers, until Ctrl-C (ONCE=1: ends by itself)
	@$(BIN)/python -m examples.demo $(if $(ONCE),--once)

bench: setup ## What Rota alone costs and how fast it is, in under two minutes
	@$(BIN)/python -m benchmarks.run $(ARGS)

bench-peers: setup ## The same side by side with other queues, in 20 minutes; goes on where it was ended
	@$(BIN)/python -m benchmarks.compare $(ARGS)
	@$(BIN)/python -m docs.generate

bench-growth: setup ## What a job costs as everything grows, as plots
	@$(BIN)/python -m benchmarks.growth $(ARGS)
	@$(BIN)/python -m docs.generate

simulate: setup ## The autoscaler's policies against each other in virtual time, in four minutes
	@$(BIN)/python -m benchmarks.autoscaling.run
	@$(BIN)/python -m docs.generate

screenshots: setup servers web ## Screenshots of every page of the dashboard, into build/screenshots
	@$(BIN)/python -m docs.screenshots $(ARGS)

docs: setup ## The documentation site into build/site, with checked links; installs Zensical (100 MB)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --group docs
	@$(BIN)/python -m docs.build_site
	ROTA_TEST_SITE=$(CURDIR)/build/site $(BIN)/python -m pytest -q tests/docs/test_site.py $(ARGS)

dev: setup web ## Server and worker with reload, for work on Rota itself
	@$(BIN)/rota dev $(ARGS)

# Exactly what the lock file lists, pip and the build backend included: a new release of a dependency changes nothing here.
$(STAMP): pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Rota needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Creating .venv"; $(PYTHON) -m venv .venv; }
	@echo "Installing Rota and its tools into .venv"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# `npm ci` would insist on the binaries of every other platform, which not every registry carries.
$(MODULES): web/package-lock.json $(STAMP)
	@echo "Installing what the dashboard is built with"
	@$(NPM) install --silent --no-save
	@touch $@

$(DASHBOARD): $(MODULES) docs/reference/openapi.json $(shell find web -path web/node_modules -prune -o -type f ! -name schema.d.ts -print)
	@echo "Building the dashboard"
	@$(NPM) run --silent build -- --logLevel warn
	@touch $@

# Valkey comes as a wheel; Redis, Prometheus, Chromium and nginx do not. Without them the tests that want them are skipped, and say so.
servers:
	@if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
		missing=""; \
		command -v redis-server >/dev/null || missing="redis-server"; \
		command -v prometheus >/dev/null || missing="$$missing prometheus"; \
		command -v chromium >/dev/null || missing="$$missing chromium"; \
		command -v nginx >/dev/null || missing="$$missing nginx-light"; \
		if test -n "$$missing"; then \
			echo "Installing $$missing, which some tests need"; \
			export DEBIAN_FRONTEND=noninteractive; \
			{ apt-get update && apt-get install -y --no-install-recommends $$missing; } >/dev/null 2>&1 \
				|| echo "$$missing could not be installed: the tests that need it will be skipped"; \
		fi; \
	fi
