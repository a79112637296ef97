"""The experiment that uses every built-in, through the command line, against a server on this machine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from openai_server import Asked, Server, reranked

from harness.experiment.catalog import BUILTINS

HARNESS = str(Path(sys.executable).parent / "harness")
EXPERIMENT = Path(__file__).parents[1] / "experiments" / "every_component.yaml"
ROLES = ("chunker", "augmenter", "retriever", "selector")


def answer(asked: Asked) -> Any:
    """A model that does each of its tasks in the simplest correct way."""
    if asked.path.endswith("/rerank"):
        return reranked(asked)
    if asked.slots == ["division"]:
        numbers = re.search(r"pieces (\d+) to (\d+) does", asked.user)
        assert numbers
        return {"division": {"begins": [at for at in range(int(numbers[1]), int(numbers[2]) + 1) if at % 3 == 0]}}
    if asked.slots == ["questions"]:
        words = " ".join(asked.fenced["passage"].split()[:6]).rstrip(".,:;")
        return {"questions": {"questions": [f"What about {words}?"]}}
    if asked.slots in (["context"], ["summary"]):
        return {asked.slots[0]: {"text": " ".join(asked.fenced["document"].split()[:15])}}
    return {slot: {"grade": len(asked.fenced[slot]) % 11} for slot in asked.slots}


def named(spec: Any) -> list[str]:
    """The names of the components in a slot's spec."""
    if isinstance(spec, list):
        return [name for one in spec for name in named(one)]
    return [spec] if isinstance(spec, str) else list(spec)


def lacking() -> dict[str, list[str]]:
    """The built-in components of the four roles that are not in the file; they must run with their defaults."""
    content = yaml.safe_load(EXPERIMENT.read_text())
    found = {}
    for role in ROLES:
        used = {name for product in (content, *content["grid"]) for name in named(product.get(role, []))}
        used |= {"none"} if role in ("chunker", "augmenter") else set()
        # They need a server, another system, or its run in the data set; see tests/components/test_servers.py and
        # test_trec_run.py, and test_systems.py and test_http.py in tests/running.
        systems = {"trec_run", "passage_run", "http", "langchain", "llama_index", "pgvector"}
        used |= systems if role == "retriever" else set()
        # `threshold`, `token_budget` and others are in lists of steps, which `named` flattens.
        found[role] = [name for name in BUILTINS[role] if name not in used]
    return {role: names for role, names in found.items() if names}


def test_components_run_with_their_defaults(garden_data: Path, tmp_path: Path) -> None:
    """Those that the file does not name: a new built-in needs no line in it unless it has settings without defaults."""
    content = {"name": "new", "data": str(garden_data), "chunker": "fixed", "retriever": "bm25", "embedder": "hashing"}
    for role, names in lacking().items():
        for name in names:
            file = tmp_path / f"{name}.yaml"
            file.write_text(json.dumps(content | {role: [name] if role == "selector" else name}))
            environment = {**os.environ, "HARNESS_STORE": str(tmp_path / "store")}
            subprocess.run([HARNESS, "run", str(file), "--no-mlflow"], cwd=tmp_path, env=environment, check=True)


def test_every_component_runs(garden_data: Path, tmp_path: Path, cross_encoder: Path) -> None:
    """All in one grid: `plan` announces the work, and a second run computes and asks nothing."""
    with Server(answer) as server:
        environment = {
            **os.environ,
            "DATA": str(garden_data),
            "MODEL": "m",
            "OPENAI_API_KEY": "any",
            "OPENAI_BASE_URL": server.url,
            "RERANK_API_KEY": "any",
            "RERANK_URL": server.url,
            "RERANK_MODEL": str(cross_encoder),
            "HARNESS_STORE": str(tmp_path / "store"),
        }

        def harness(*arguments: str) -> str:
            done = subprocess.run(
                [HARNESS, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        planned = harness("plan", str(EXPERIMENT))
        assert server.asked == []
        for line in ("llm (m): ", "summary (m): 6 calls", "to embed with local all-MiniLM-L6-v2, for chunking: "):
            assert line in planned
        out = harness("run", str(EXPERIMENT), "--no-mlflow", "--workers", "2")
        for message in (
            "llm (m): ",
            "situate (m): ",
            "questions (m): ",
            "rerank_llm (m): ",
            "rerank_api (any): 13 requests",
        ):
            assert message in out
        trials = int(re.search(r"(\d+) trials in", out)[1])  # type: ignore[index]
        server.asked.clear()
        again = harness("run", str(EXPERIMENT), "--no-mlflow")
        assert f"{trials} trials" in again
        assert "nothing, all results were stored" in again
        assert server.asked == []
        rows = json.loads(harness("compare", str(EXPERIMENT), "--json"))["rows"]
        assert len(rows) == trials
        assert all(0 <= row["mean"] <= 1 for row in rows)
        # On these simple texts, every combination of components finds something.
        assert [row["name"] for row in rows if row["mean"] == 0] == []
