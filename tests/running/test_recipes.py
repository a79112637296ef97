"""The recipes of docs/systems.md for other servers, on responses as their documentation describes them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.components.retrievers import Http
from harness.core.records import Returned
from harness.experiment.catalog import component
from harness.llm.transport import Refused

DOCS = Path(__file__).parents[2] / "docs" / "systems.md"
QUESTION = 'Which "beans", {k}?'

HITS = {"body": "Soak them.", "doc_id": "beans"}, {"body": "Salt them.", "doc_id": "salt"}
RESPONSES: dict[str, Any] = {
    "search.example.com": {
        "took": 3,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {
            "total": {"value": 2, "relation": "eq"},
            "max_score": 4.5,
            "hits": [
                {
                    "_index": "passages",
                    "_id": "a1",
                    "_score": 4.5,
                    "_source": {"body": "Soak them.", "doc_id": "beans"},
                },
                {"_index": "passages", "_id": "a2", "_score": 1.0, "_source": HITS[1]},
            ],
        },
    },
    "qdrant.example.com": {
        "result": {
            "points": [
                {"id": 1, "version": 3, "score": 0.9, "payload": HITS[0]},
                {"id": 2, "version": 3, "score": 0.4, "payload": HITS[1]},
            ]
        },
        "status": "ok",
        "time": 0.001,
    },
    "vespa.example.com": {
        "root": {
            "id": "toplevel",
            "relevance": 1.0,
            "fields": {"totalCount": 2},
            "coverage": {"coverage": 100, "documents": 2, "full": True},
            "children": [
                {"id": "id:p:p::1", "relevance": 0.9, "fields": HITS[0]},
                {"id": "id:p:p::2", "relevance": 0.4, "fields": HITS[1]},
            ],
        }
    },
    "weaviate.example.com": {
        "data": {
            "Get": {
                "Passage": [
                    {"body": "Soak them.", "docId": "beans", "_additional": {"id": "u-1", "certainty": 0.9}},
                    {"body": "Salt them.", "docId": "salt", "_additional": {"id": "u-2", "certainty": 0.4}},
                ]
            }
        }
    },
}
NOTHING: dict[str, Any] = {
    "search.example.com": {"hits": {"total": {"value": 0}, "max_score": None, "hits": []}},
    "qdrant.example.com": {"result": {"points": []}, "status": "ok"},
    "vespa.example.com": {"root": {"id": "toplevel", "fields": {"totalCount": 0}}},
    "weaviate.example.com": {"data": {"Get": {"Passage": []}}},
}
ERRORS: dict[str, Any] = {
    "search.example.com": {"error": {"type": "index_not_found_exception"}, "status": 404},
    "qdrant.example.com": {"status": {"error": "Not found"}, "time": 0.0},
    "vespa.example.com": {"root": {"id": "toplevel", "errors": [{"code": 8, "summary": "Error in search reply."}]}},
    "weaviate.example.com": {"data": {"Get": {"Passage": None}}, "errors": [{"message": "no such class"}]},
}


def recipes() -> dict[str, Http]:
    """The recipes, by host."""
    blocks = [part.partition("```")[0] for part in DOCS.read_text().split("```yaml\n")[1:]]
    specs = [spec for block in blocks if block.startswith("retriever:\n  http:") for spec in [yaml.safe_load(block)]]
    made = [component("retriever", spec["retriever"], where="docs", base_dir=Path()) for spec in specs]
    return {one.url.split("/")[2]: one for one in made if isinstance(one, Http)}


def test_there_is_one_for_each_response() -> None:
    assert recipes().keys() == RESPONSES.keys()


@pytest.mark.parametrize("server", RESPONSES)
def test_recipes(server: str) -> None:
    """The query is sent as it is, with the number of passages; errors are no empty results."""
    recipe = recipes()[server]
    sent = recipe.request(QUESTION, {}).body
    values = json.dumps(sent, ensure_ascii=False)
    assert QUESTION in str(sent) or json.dumps(QUESTION, ensure_ascii=False) in sent["query"]
    assert "10" in values
    first, second = recipe.read(RESPONSES[server])
    assert first.passage == Returned("Soak them.", "beans")
    assert first.score is not None
    assert second.score is not None
    assert first.score > second.score
    assert first.id
    assert recipe.read(NOTHING[server]) == ()
    with pytest.raises(Refused, match="has no list"):
        recipe.read(ERRORS[server])
