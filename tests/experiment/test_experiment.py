"""Grids, identities and names, from YAML and from Python."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import without_line

from harness import Compare, Experiment, Trial, read_experiment
from harness.components.chunkers import Fixed, Paragraph, Recursive, Sentence
from harness.components.embedders import Hashing, Local
from harness.components.retrievers import BM25, Dense, Hybrid
from harness.components.selectors import Dedup, Threshold, TokenBudget, TopK
from harness.core.errors import ConfigError
from harness.experiment.params import find_baseline
from harness.experiment.trial_names import labels, names
from harness.storage.digest import digest

YAML = """
name: sizes
question: Which size?
data: cookbook
chunker: {fixed: {size: 512}}
embedder: {local: {model: all-MiniLM-L6-v2}}
retriever: {hybrid: {depth: 50}}
selector: [dedup, {top_k: {k: 8}}]
metrics: [recall@5, ndcg@10]
grid:
  chunker:
    - fixed: {size: 512}
    - recursive: {size: 512, overlap: 64}
  selector.top_k.k: [4, 8, 16]
compare: {baseline: {chunker: fixed}, on: recall@1000t}
"""
PYTHON = Experiment(
    "sizes",
    Trial("cookbook", Fixed(512), Hybrid(depth=50), selector=(Dedup(), TopK(8)), metrics=("recall@5", "ndcg@10")),
    grid={"chunker": [Fixed(512), Recursive(512, 64)], "selector.top_k.k": [4, 8, 16]},
    question="Which size?",
    compare=Compare({"chunker": "fixed"}, "recall@1000t"),
)


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def reading(text: str) -> Experiment:
        path = tmp_path / "x.yaml"
        path.write_text(text)
        return read_experiment(path)

    return reading


def test_yaml_and_python_give_the_same_trials(read: Any) -> None:
    """Six trials of equal identity, in the same order."""
    from_yaml, from_python = read(YAML).trials(), PYTHON.trials()
    assert len(from_yaml) == 6
    assert [digest(trial.identity()) for trial in from_yaml] == [digest(trial.identity()) for trial in from_python]
    assert from_yaml == from_python


def test_the_primary_metric_is_scored(read: Any) -> None:
    """Even if `metrics` does not list it."""
    assert all("recall@1000t" in trial.metrics for trial in read(YAML).trials())


CHUNKERS = st.one_of(
    st.builds(Fixed, st.integers(1, 999), st.just(0), st.sampled_from(["tokens", "characters"])),
    st.builds(Sentence, st.integers(10, 999), st.integers(0, 9)),
    st.builds(Paragraph, st.none() | st.integers(1, 99)),
    st.builds(
        Recursive, st.integers(1, 999), separators=st.lists(st.text(min_size=1, max_size=3), max_size=3).map(tuple)
    ),
)
SELECTORS = st.lists(
    st.one_of(
        st.builds(TopK, st.integers(1, 50)),
        st.builds(Threshold, st.floats(-2, 2)),
        st.builds(TokenBudget, st.integers(1, 9999), st.sampled_from(["stop", "skip", "cut"])),
    ),
    max_size=3,
).map(tuple)
RETRIEVERS = st.one_of(
    st.builds(Dense, st.integers(50, 99)),
    st.builds(BM25, k1=st.floats(0, 3)),
    st.builds(Hybrid, weight=st.floats(0, 1)),
)


@given(chunker=CHUNKERS, selector=SELECTORS, retriever=RETRIEVERS)
@settings(max_examples=100, deadline=None)
def test_a_trial_survives_a_json_round_trip(chunker: Any, selector: Any, retriever: Any) -> None:
    """With any settings, to the last digit of a float."""
    trial = Trial("d", chunker, retriever, selector=selector, embedder=Hashing(64))
    assert Trial.from_json(trial.to_json()) == trial


def test_a_list_is_a_union_of_products(read: Any) -> None:
    """2 + 3 trials, one of them in both: four distinct."""
    grid = "grid:\n  - chunker.size: [100, 200]\n  - chunker: [{fixed: {size: 200}}, sentence, paragraph]\n"
    trials = read(f"name: n\ndata: d\nchunker: fixed\nretriever: bm25\n{grid}").trials()
    assert [(t.chunker.name(), getattr(t.chunker, "size", None)) for t in trials] == [
        ("fixed", 100),
        ("fixed", 200),
        ("sentence", 256),
        ("paragraph", None),
    ]


def test_the_embedder_is_ignored_without_vector_search(read: Any) -> None:
    """BM25 with two embedders is one trial."""
    grid = "grid:\n  embedder: [hashing, {hashing: {dimensions: 64}}]\n  retriever: [dense, bm25]\n"
    trials = read(f"name: n\ndata: d\nchunker: fixed\n{grid}").trials()
    assert [trial.retriever.name() for trial in trials] == ["dense", "bm25", "dense"]
    assert [trial.params()["embedder"] for trial in trials] == ["hashing", "none", "hashing"]


def test_dotted_paths_reach_nested_components(read: Any) -> None:
    """Into the retriever's own BM25, with or without naming the retriever."""
    for path in ("retriever.bm25.k1", "retriever.hybrid.bm25.k1"):
        trials = read(f"name: n\ndata: d\nchunker: fixed\nretriever: hybrid\ngrid: {{{path}: [0.9, 1.5]}}\n").trials()
        assert [trial.retriever.bm25.k1 for trial in trials] == [0.9, 1.5]


def test_runtime_settings_are_not_part_of_the_identity() -> None:
    """`device` is a runtime setting."""
    one, other = (
        Trial("d", Fixed(), Dense(), embedder=Local(device="cpu")),
        Trial("d", Fixed(), Dense(), embedder=Local(device="cuda")),
    )
    assert one.identity() == other.identity()
    assert one.to_json() != other.to_json()


def params(trials: list[Trial]) -> list[dict[str, str]]:
    return [trial.params() for trial in trials]


def test_labels_by_slot() -> None:
    """A label lists settings that differ between trials with the same component; an unused embedder does not vary."""
    every = [
        {"chunker": "fixed", "chunker.size": "1", "embedder": "local", "retriever": "dense"},
        {"chunker": "fixed", "chunker.size": "2", "embedder": "none", "retriever": "bm25"},
        {"chunker": "markdown", "chunker.size": "1", "embedder": "local", "retriever": "dense"},
    ]
    assert labels(every) == [
        {"chunker": "fixed size=1", "retriever": "dense"},
        {"chunker": "fixed size=2", "retriever": "bm25"},
        {"chunker": "markdown", "retriever": "dense"},
    ]


def test_names_show_what_varies() -> None:
    """And nothing else."""
    assert names(params(PYTHON.trials()))[:2] == ["fixed · dedup+top_k k=4", "fixed · dedup+top_k k=8"]
    sizes = [Trial("d", Fixed(size), Dense()) for size in (1, 2)]
    assert names(params(sizes)) == ["fixed size=1", "fixed size=2"]
    assert names(params(sizes[:1])) == ["fixed · dense"]


HEAD = "name: n\ndata: d\n"
BASE = f"{HEAD}chunker: fixed\nretriever: dense\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a mapping with the keys name"),
        ("name: [", "x.yaml:1: "),
        ("name: a\nname: b", "x.yaml:2: key 'name' is written twice"),
        ("data: d", "x.yaml: name: expected text, but it is missing"),
        ("name: 5\ndata: d", "x.yaml: name: expected text, got 5"),
        (f"{HEAD}retriever: dense", "x.yaml: chunker: is missing"),
        (f"{BASE}retreiver: dense", "x.yaml: unknown key 'retreiver'. Did you mean 'retriever'?"),
        (f"{BASE}metrics: [recal@5]", "x.yaml: metrics[0]: no metric named 'recal@5'. Did you mean 'recall'?"),
        (f"{BASE}metrics: []", "x.yaml: metrics: expected a list of names"),
        (f"{BASE}selector: [top_k, {{top: 3}}]", "x.yaml: selector[1]: no selector named 'top'. Did you mean 'top_k'?"),
        (f"{BASE}evidence: {{coverage: 0}}", "x.yaml: coverage: expected a number above 0"),
        (f"{BASE}evidence: {{coverag: 1}}", "x.yaml: evidence: expected a mapping with the keys coverage, copies"),
        (
            f"{BASE}judges: [{{context_precision: {{modle: m}}}}]",
            "x.yaml: judges[0].context_precision: context_precision has no setting 'modle'. Did you mean 'model'?",
        ),
        (
            f"{BASE}grid: {{judges.context_precision.k: [1, 2]}}",
            "x.yaml: grid.judges.context_precision.k: all trials have the same judges",
        ),
        (
            f"{BASE}judges: [context_precison]",
            "x.yaml: judges[0]: no judge named 'context_precison'. Did you mean 'context_precision'?",
        ),
        (f"{BASE}grid: [chunker]", "x.yaml: grid[0]: expected a mapping"),
        (f"{BASE}grid: {{chunker: fixed}}", "x.yaml: grid.chunker: expected a list of values"),
        (f"{BASE}grid: {{chunker: [fixed, recursve]}}", "x.yaml: grid.chunker[1]: no chunker named 'recursve'"),
        (
            f"{BASE}grid: {{chunkr.size: [1]}}",
            "x.yaml: grid.chunkr.size: no slot named 'chunkr'. Did you mean 'chunker'?",
        ),
        (f"{BASE}grid: {{chunker.sise: [1]}}", "grid.chunker.sise: fixed has no setting 'sise'. Did you mean 'size'?"),
        (f"{BASE}grid: {{chunker.size: ['1']}}", "grid.chunker.size: size: input should be a valid integer"),
        (
            f"{BASE}grid: {{chunker: [fixed, paragraph], chunker.unit: [tokens]}}",
            "write `grid` as a list to vary a setting of only some trials",
        ),
        (
            f"{BASE}selector: [top_k, top_k]\ngrid: {{selector.k: [1]}}",
            "several steps have this setting; name one, such as selector.top_k_2.k",
        ),
        (f"{BASE}compare: {{on: recal}}", "x.yaml: compare.on: no metric named 'recal'"),
        (f"{BASE}compare: {{basline: x}}", "x.yaml: compare: expected a mapping with the keys baseline, on"),
        (
            f"{BASE}question: ${{NO_SUCH_VARIABLE}}",
            "x.yaml: question: the environment variable NO_SUCH_VARIABLE is not set; set it or write "
            "${NO_SUCH_VARIABLE:-default}",
        ),
    ],
)
def test_invalid_files(read: Any, text: str, message: str) -> None:
    """The message has file, key, what is wrong and what would be right, before any work starts."""
    with pytest.raises(ConfigError) as caught:
        read(text).trials()
    assert message in without_line(caught.value) or message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_environment(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`${NAME}` and `${NAME:-default}` are replaced in any text."""
    monkeypatch.setenv("CORPUS", "cookbook")
    made = read(BASE.replace("data: d", "data: ${CORPUS}") + "queries: ${SET:-validation}\n")
    assert (made.base.data, made.base.queries) == ("cookbook", "validation")


def test_on_is_read_as_text(read: Any) -> None:
    """YAML 1.1 would read the key `on` as true."""
    assert read(f"{BASE}compare: {{on: recall@5}}").compare.on == "recall@5"


def test_steps_with_the_same_name_are_numbered(read: Any) -> None:
    """In params, names and dotted paths."""
    trials = read(
        f"{BASE}selector: [{{top_k: {{k: 20}}}}, dedup, top_k]\ngrid: {{selector.top_k_2.k: [3, 4]}}\n"
    ).trials()
    assert [trial.params()["selector.top_k_2.k"] for trial in trials] == ["3", "4"]
    assert trials[0].params()["selector.top_k.k"] == "20"
    assert names(params(trials)) == ["top_k+dedup+top_k k=3", "top_k+dedup+top_k k=4"]


def test_yaml_is_read_as_version_1_2(read: Any) -> None:
    """0200 is not the octal 128, 1e-3 is a number, merge keys work, and a list as a key is reported."""
    with pytest.raises(ConfigError, match='size: input should be a valid integer, got "0200"'):
        read(f"{HEAD}chunker: {{fixed: {{size: 0200}}}}\nretriever: dense")
    made = read(f"{HEAD}chunker: fixed\nretriever: {{hybrid: {{weight: 1e-3}}}}")
    assert made.base.retriever.weight == 0.001
    merged = read(
        f"{HEAD}chunker: fixed\nretriever: {{bm25: &b {{k1: 1.5}}}}\n"
        "grid: {retriever: [{bm25: {<<: *b, b: 0.1}}]}"
    )
    assert (merged.trials()[0].retriever.k1, merged.trials()[0].retriever.b) == (1.5, 0.1)
    for text in ("? [a, b]\n: 1\n", f"{BASE}selector: {{threshold: {{score: .nan}}}}", f'{BASE}question: "\\ud800"'):
        with pytest.raises(ConfigError, match="x.yaml"):
            read(text)


def test_baselines_are_selected_by_yaml_values() -> None:
    """With booleans, nulls, a param that only some trials have, or a component by its reference."""
    every = [{"chunker": "fixed"}, {"chunker": "by_heading", "chunker.level": "3", "x": "false", "y": "null"}]
    for wanted in ({"chunker.level": 3}, {"x": False}, {"y": None}, {"chunker": "my_chunkers.py:ByHeading"}):
        assert find_baseline(every, wanted) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chunker": (Fixed(),)}, "chunker: expected a component of the role chunker"),
        ({"augmenter": ()}, "augmenter: expected a component of the role augmenter"),
        ({"retriever": [BM25()]}, "retriever: expected a component of the role retriever"),
        ({"judges": (Fixed(),)}, r"judges\[0\]: expected a component of the role judge"),
        ({"judges": None}, r"judges\[0\]: expected a component of the role judge, got None"),
        ({"chunker": Fixed(size=-3)}, "size"),
        ({"embedder": Fixed()}, "embedder: expected a component of the role embedder"),
    ],
)
def test_a_wrong_trial_in_python_is_one_line(change: dict[str, Any], message: str) -> None:
    """Its components are checked as those of a file are."""
    base = Trial("d", Fixed(), BM25())
    with pytest.raises(ConfigError, match=message):
        Experiment("n", replace(base, **change)).trials()


def test_a_single_selector_step_needs_no_tuple() -> None:
    """As in a file."""
    (trial,) = Experiment("n", Trial("d", Fixed(), BM25(), selector=TopK(5))).trials()  # type: ignore[arg-type]
    assert trial.selector == (TopK(5),)


def test_a_folder_may_be_text() -> None:
    """As everywhere in Python."""
    assert Experiment("n", Trial("d", Fixed(), BM25()), base_dir="here").base_dir == Path("here")  # type: ignore[arg-type]


def test_only_the_trials_of_the_grid_must_fit_together() -> None:
    """The base alone takes more hits than its retriever returns; no trial does."""
    base = Trial("d", Fixed(), BM25(depth=10), selector=(TopK(20),))
    trials = Experiment("n", base, {"retriever": [BM25(depth=30), BM25(depth=40)]}).trials()
    assert [trial.retriever.depth for trial in trials] == [30, 40]
