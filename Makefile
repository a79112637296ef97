# Everything happens in .venv; only Python 3.11+ and PyPI are needed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo systems test lint docs architecture bench clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[offline,test]'
	touch $@

demo: $(VENV)/.installed          ## run the sample experiment: 12 trials, scored, compared, logged to MLflow
	$(BIN)/harness run experiments/quickstart.yaml

systems: $(VENV)/.installed       ## our search, an engine and an outside service, side by side
	$(BIN)/python experiments/search_service.py $(BIN)/harness run experiments/side_by_side.yaml

test: $(VENV)/.installed          ## all tests
	HF_HUB_OFFLINE=1 MLFLOW_DISABLE_TELEMETRY=true $(BIN)/pytest -n auto --dist worksteal

lint: $(VENV)/.installed          ## ruff, mypy --strict, the layers of the architecture and their picture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -P docs/draw_rooms.py --check

docs: $(VENV)/.docs               ## build the documentation site in site/; warnings are errors
	$(BIN)/python -P docs/reference.py
	$(BIN)/python -P -m sphinx -q -E -W --keep-going -b html docs site

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	touch $@

architecture: $(VENV)/.installed ## draw docs/rooms.svg from the import graph
	$(BIN)/python -P docs/draw_rooms.py

bench: $(VENV)/.installed         ## ratios of cost, measured in one run each
	HF_HUB_OFFLINE=1 $(BIN)/python -P bench/bench.py

clean:                            ## remove the environment; results (.harness, mlflow.db, mlartifacts) stay
	rm -rf $(VENV) *.egg-info
