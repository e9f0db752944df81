# Everything a contributor runs. `make` alone explains; CI runs these same commands.

PYTHON ?= python3
# More arguments for pytest, the benchmarks or the development server: make test ARGS="-k claim"
ARGS ?=

BIN := .venv/bin
STAMP := .venv/.setup-stamp
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal -ra
# Node comes as a wheel, so that nobody has to install it.
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix web --no-update-notifier
MODULES := web/node_modules/.stamp
DASHBOARD := src/rota/server/static/index.html

.DEFAULT_GOAL := help
.PHONY: help setup web check test test-long demo bench bench-peers bench-growth dev

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv with the package and its tools; again only when pyproject.toml changed

web: $(DASHBOARD) ## Build the dashboard into the package

check: setup $(MODULES) ## Lint, formatting and types, of Python and of the dashboard
	$(NPM) run --silent check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/mypy

test: setup web ## The tests, on a real Valkey and a real Redis; says what was skipped and why
	$(NPM) run --silent test
	$(PYTEST) $(ARGS)

test-long: setup web ## The same with far more examples and longer runs
	ROTA_TEST_LONG=1 $(PYTEST) --timeout 3600 $(ARGS)

demo: setup web ## Example jobs of every kind on an embedded server, until Ctrl-C (ONCE=1: ends by itself)
	@$(BIN)/python -m examples.demo $(if $(ONCE),--once)

bench: setup ## What Rota alone costs and how fast it is, in under two minutes
	@$(BIN)/python -m benchmarks.run $(ARGS)

bench-peers: setup ## The same side by side with other queues, in 20 minutes; goes on where it was ended
	@$(BIN)/python -m benchmarks.compare $(ARGS)
	@$(BIN)/python -m docs.generate

bench-growth: setup ## What a job costs as everything grows, as plots
	@$(BIN)/python -m benchmarks.growth $(ARGS)
	@$(BIN)/python -m docs.generate

dev: setup web ## Server and worker with reload, for work on Rota itself
	@$(BIN)/rota dev $(ARGS)

# The pip that comes with an older Python knows no dependency groups, so it is renewed first.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Rota needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Creating .venv"; $(PYTHON) -m venv .venv; }
	@echo "Installing Rota and its tools into .venv"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[cli,server,speed,otlp]' --group dev
	@$(install-servers)
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

# Valkey comes as a wheel; Redis, Prometheus and Chromium do not. Without them the tests that want them are skipped, and say so.
define install-servers
if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	missing=""; \
	command -v redis-server >/dev/null || missing="redis-server"; \
	command -v prometheus >/dev/null || missing="$$missing prometheus"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	if test -n "$$missing"; then \
		echo "Installing $$missing, which some tests need"; \
		export DEBIAN_FRONTEND=noninteractive; \
		{ apt-get update && apt-get install -y --no-install-recommends $$missing; } >/dev/null 2>&1 \
			|| echo "$$missing could not be installed: the tests that need it will be skipped"; \
	fi; \
fi
endef
