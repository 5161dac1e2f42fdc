# Each target does all of its own set-up. What is needed beforehand: Linux, make, Python 3.11 with venv.
PYTHON ?= python3.11
BIN := .venv/bin
FUNCTION := crossplane/composition-function
# What is not in test-fast: see the markers in pyproject.toml.
SLOW := slow or demo or browser or go or node or crossplane or backstage

.PHONY: demo serve crossplane backstage test test-backstage test-crossplane test-fast check format lock clean
.DELETE_ON_ERROR:

# The whole path with sample teams, then it keeps serving. ONCE=1 ends after the table.
# CONTROL_PLANE=crossplane: on a real Crossplane (needs Go 1.26; builds once, for a quarter of an hour).
export CONTROL_PLANE
EMBEDDED := .venv/installed-$(if $(filter crossplane,$(CONTROL_PLANE)),crossplane,embedded)
demo: $(EMBEDDED)
	$(BIN)/python manage.py demo $(if $(ONCE),--once)

serve: $(EMBEDDED)
	$(BIN)/python manage.py serve

# A real Crossplane and two workload clusters, without containers. Needs Go 1.26; builds once, for a quarter of an hour.
crossplane: .venv/installed-crossplane
	$(BIN)/python manage.py crossplane

# The portal with sample teams and a real Backstage backend, wired both ways. Needs Node.js with npm.
backstage: $(EMBEDDED)
	$(BIN)/python manage.py backstage

# All but what needs a real Crossplane or a running Backstage. The slow tests stay together in one process, the others run
# beside them.
test: check
	$(BIN)/python manage.py backstage --install-only
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# With a real Backstage backend in front of the portal.
test-backstage: .venv/installed-dev
	$(BIN)/python manage.py backstage --install-only
	$(BIN)/python -m pytest -m "backstage and not crossplane"

# On a real Crossplane and two workload clusters. Needs Go 1.26; builds once, for a quarter of an hour.
test-crossplane: .venv/installed-dev
	$(BIN)/python manage.py crossplane --build-only
	$(BIN)/python -m pytest -m "crossplane and not backstage" --ignore=tests/benchmarks

# Under two minutes, without Go, Node.js or a browser.
test-fast: .venv/installed-dev
	$(BIN)/python -m pytest -n 2 -m "not ($(SLOW))"

check: .venv/installed-dev
	$(BIN)/ruff format --check --output-format concise .
	$(BIN)/ruff check --quiet --output-format concise .
	$(BIN)/mypy
	$(BIN)/mypy --config-file $(FUNCTION)/pyproject.toml --cache-dir .cache/mypy $(FUNCTION)/composition_function
	PYTHONPATH=$(FUNCTION) $(BIN)/lint-imports .importlinter
	DATABASE_URL=none $(BIN)/python manage.py makemigrations --check --dry-run
	DATABASE_URL=none $(BIN)/python manage.py build_templates --check

format: .venv/installed-dev
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

# After a change of dependencies in pyproject.toml. UPGRADE=1 takes the newest versions.
lock: .venv/installed-uv
	requirements/lock.sh $(BIN)/uv $(if $(UPGRADE),--upgrade)

# Removes what was made; the state folder var/ holds data and stays.
clean:
	rm -rf .venv .cache .ruff_cache .import_linter_cache .grimp_cache .pytest_cache

.venv/installed-uv: requirements/bootstrap.txt
	@command -v $(PYTHON) >/dev/null || \
	  { echo "make: $(PYTHON) is missing. On Debian 12: apt-get install python3.11 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "make: $(PYTHON) has no venv. On Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "make: $(PYTHON) is not Python 3.11: the lock files are for that version." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/bootstrap.txt
	@touch $@

.venv/installed-%: requirements/%.txt .venv/installed-uv
	requirements/install.sh $*
	@touch $@
