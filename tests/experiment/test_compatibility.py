"""Incompatible components, presets, prices and columns: reported in one line before any work starts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from messages import without_line

from harness.components.selectors import MMR, Normalize, Rerank, RerankLlm, TopK
from harness.core.errors import ConfigError
from harness.experiment.experiment import Experiment
from harness.experiment.yaml_file import read_experiment

BASE = "name: n\ndata: d\nchunker: fixed\n"


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], Experiment]:
    def made(text: str) -> Experiment:
        (tmp_path / "x.yaml").write_text(text)
        return read_experiment(tmp_path / "x.yaml")

    return made


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "retriever: bm25\nselector: adaptive\n",
            "x.yaml: selector.adaptive: the scores of bm25 are of unknown range, but this step needs scores that are "
            "between 0 and 1 or cosines; put `normalize` before it",
        ),
        ("retriever: hybrid\nselector: [dedup, mmr]\n", "x.yaml: selector.mmr: the scores of hybrid are of unknown"),
        ("retriever: dense\nselector: [rerank, elbow]\n", "x.yaml: selector.elbow: the scores of rerank are of"),
        ("retriever: dense\nselector: [{normalize: {method: z_score}}, adaptive]\n", "the scores of normalize are of"),
        ("retriever: {dense: {similarity: dot}}\nselector: query_adaptive\n", "the scores of dense are of unknown"),
        (
            "retriever: dense\nselector: {top_k: {k: 80}}\n",
            "x.yaml: selector.top_k: takes 80 hits, but the retriever returns 50; set retriever.depth to 80",
        ),
        ("retriever: dense\nselector: aggressive\n", "takes 200 hits, but the retriever returns 50; set retriever"),
        (
            "retriever: dense\nselector: {rerank_llm: {model: gpt-x}}\njudges: [{context_precision: {model: GPT-X}}]\n",
            "x.yaml: selector.rerank_llm: gpt-x is also the model of context_precision, which would judge its own",
        ),
        (
            "retriever: dense\nselector: {balanced: {k: 3}}\n",
            "x.yaml: selector: balanced: expected nothing, or `rerank`",
        ),
        ("retriever: dense\nselector: {balanced: {rerank: top_k}}\n", "balanced.rerank: top_k is not a reranker"),
        ("retriever: dense\nselector: balenced\n", "no selector named 'balenced'. Did you mean 'balanced'?"),
        ("retriever: dense\nreader: {model: no-such-model}\n", "x.yaml: reader: the price of 'no-such-model' is not"),
        ("retriever: dense\nreader: {}\n", "x.yaml: reader: neither a model nor a price; give `price` in dollars per"),
        ("retriever: dense\nreader: {price: -1}\n", "x.yaml: reader: price: expected at least 0, got -1"),
        ("retriever: dense\nreader: cheap\n", "x.yaml: reader: expected a mapping with the keys model or price"),
        ("retriever: dense\ncompare: {show: [recal@5]}\n", "x.yaml: compare.show: 'recal@5' is not a metric."),
        ("retriever: dense\ncompare: {show: [index_byte]}\n", "is not a metric. Did you mean 'index_bytes'?"),
        ("retriever: dense\ncompare: {show: recall@5}\n", "compare.show: expected a list of metrics and facts"),
    ],
)
def test_incompatible_components_are_reported(read: Any, lines: str, expected: str) -> None:
    """One line with the location, what is wrong and what would be right."""
    with pytest.raises(ConfigError) as caught:
        read(BASE + lines)
    assert expected in without_line(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "lines",
    [
        "retriever: bm25\nselector: [normalize, adaptive]\n",
        "retriever: {hybrid: {fusion: weighted}}\nselector: mmr\n",
        "retriever: ensemble\nselector: [elbow, {metadata_boost: {now: 2026-01-31}}]\n",
        "retriever: bm25\nselector: [{multi_signal: {now: 2026-01-31}}, mmr]\n",
        "retriever: dense\nselector: [rerank, normalize, diversify, mmr, merge_adjacent, context_budget]\n",
        "retriever: bm25\nselector: [confidence_k, dedup, task_k, threshold]\n",
    ],
)
def test_compatible_components_are_accepted(read: Any, lines: str) -> None:
    """Steps in any valid order."""
    assert len(read(BASE + lines).trials()) == 1


def test_presets(read: Any) -> None:
    """A preset expands to steps, alone or among others, with the given reranker or none."""
    grid = "grid: {selector: [conservative, {balanced: {rerank: none}}, [dedup, aggressive, task_k]]}\n"
    conservative, balanced, aggressive = read(BASE + "retriever: {dense: {depth: 200}}\n" + grid).trials()
    assert conservative.selector == (TopK(100), Rerank(), Normalize(), MMR(5, 0.7, None))
    assert balanced.selector == (TopK(50), Normalize(), MMR(10, 0.6, None))
    assert [step.name() for step in aggressive.selector] == [
        *("dedup", "top_k", "rerank", "normalize", "mmr", "task_k"),
    ]
    assert (aggressive.selector[1].k, aggressive.selector[4].k, aggressive.selector[4].relevance) == (200, 20, 0.5)
    text = "retriever: {dense: {depth: 50}}\nselector: {balanced: {rerank: {rerank_llm: {model: m}}}}\n"
    assert isinstance(read(BASE + text).trials()[0].selector[1], RerankLlm)


def test_a_date_needs_no_quotes(read: Any) -> None:
    """2026-01-31 is read as text, as in YAML 1.2."""
    (trial,) = read(BASE + "retriever: dense\nselector: {metadata_boost: {now: 2026-01-31}}\n").trials()
    assert trial.selector[0].now == "2026-01-31"
