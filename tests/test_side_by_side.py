"""The shipped example that compares our search, an engine and an outside service, as `make systems` runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HARNESS = str(Path(sys.executable).parent / "harness")


def test_it_runs(tmp_path: Path) -> None:
    """All passages of the service are located; each trial is compared with both baselines."""
    store = {**os.environ, "HARNESS_STORE": str(tmp_path / "store")}
    command = [HARNESS, "run", "experiments/side_by_side.yaml", "--no-mlflow"]
    served = [sys.executable, "experiments/search_service.py", *command]
    done = subprocess.run(served, cwd=ROOT, env=store, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "against the baseline 'none · http'" in done.stdout
    # The service is gone, and is not asked again.
    again = subprocess.run(command, cwd=ROOT, env=store, capture_output=True, text=True, check=True)
    assert "computed: nothing" in again.stdout
    compare = [HARNESS, "compare", "experiments/side_by_side.yaml", "--json"]
    shown = subprocess.run(compare, cwd=ROOT, env=store, capture_output=True, text=True, check=True)
    content = json.loads(shown.stdout)
    assert content["baseline"] == "recursive · dense"
    assert [one["baseline"] for one in content["against"]] == ["none · http"]
    rows = {row["name"]: row for row in content["rows"]}
    assert rows["none · http"]["values"]["unmapped"] == 0
    assert rows["recursive · lancedb"]["values"]["ann_recall"] > 0.99
    assert rows["none · http"]["mean"] > 0.5
