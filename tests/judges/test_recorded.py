"""A server replays the labels of a real LLM judge from TREC: the whole pipeline must report its known kappa."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from openai_server import Asked, Server, grade_all

from harness import run
from harness.evaluation.stats.rater_agreement import kappa, ppi_by_query
from harness.experiment.yaml_file import read_experiment
from harness.running.judging.agreement_study import agree
from harness.running.judging.grading_sheet import Row
from harness.running.models import Models
from harness.storage.digest import digest

RETRIEVER = '''
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness import Retriever
from harness.components import Artifact, Rankings


@dataclass(frozen=True)
class Pool(Retriever):
    """The passages that people have graded for each query."""

    depth: int = 1000

    def search(self, index, corpus, texts, vectors):
        pools = json.loads((Path(__file__).parent / "pools.json").read_text())
        rows = [np.array(pools[text]) for text in texts]
        return Rankings.of([(row, -np.arange(len(row), dtype=float)) for row in rows])
'''


def read_labels(path: Path) -> dict[tuple[str, str], int]:
    """Grades by query and passage."""
    rows = (line.split() for line in path.read_text().splitlines() if line.strip())
    return {(query, passage): int(grade) for query, _, passage, grade in rows}


@pytest.fixture
def labels(shared: Callable[[str], Path]) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """NIST's grades and those of `h2oloo-fewself`."""
    folder = shared("llmjudge")
    return read_labels(folder / "llmjudge_test_qrel_idx.txt"), read_labels(folder / "labels" / "h2oloo-fewself.txt")


def test_the_pipeline_reports_the_known_kappa(
    labels: tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]],
    make_data: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """4,423 pairs through retrieval, pooling, some 450 calls and the answer cache: kappa(>= 2) with NIST is 0.428."""
    people, recorded = labels
    assert len(people) == 4423
    assert set(people) == set(recorded)
    passages = sorted({passage for _, passage in people})
    queries = sorted({query for query, _ in people})
    make_data(
        [{"id": passage, "text": f"passage {passage}"} for passage in passages],
        [{"id": query, "text": f"query {query}", "evidence": []} for query in queries],
        name="dl23",
    )
    pools = {f"query {q}": [passages.index(p) for (other, p) in people if other == q] for q in queries}
    (tmp_path / "pools.json").write_text(json.dumps(pools))
    (tmp_path / "pool.py").write_text(RETRIEVER)
    (tmp_path / "x.yaml").write_text(
        "name: recorded\ndata: dl23\ntokenizer: words\nchunker: {fixed: {size: 50}}\nretriever: pool.py:Pool\n"
        "metrics: [hit@1]\njudges: [{context_precision: {model: h2oloo-fewself}}]\n"
    )

    def behave(asked: Asked) -> dict[str, object]:
        query = asked.question.removeprefix("query ")
        return grade_all(asked, lambda _, text: recorded[query, text.removeprefix("passage ")])

    monkeypatch.setenv("OPENAI_API_KEY", "any")
    study = read_experiment(tmp_path / "x.yaml")
    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        launch = run(study, store=tmp_path / "s", log=False)
        assert (launch.judging_report.judges[0].judgments, launch.judging_report.judges[0].failures) == (4423, {})
        assert len(server.calls) == launch.judging_report.judges[0].missing == launch.judging_report.spend.calls
        sizes = {query: sum(other == query for other, _ in people) for query in queries}
        pooled = {q: digest(sorted(f"passage {p}" for o, p in people if o == q))[:16] for q in queries}
        rows = [
            Row(query, f"query {query}", "", f"passage {passage}", sizes[query], sizes[query], pooled[query], grade)
            for (query, passage), grade in people.items()
        ]
        found = agree(study, rows, store=tmp_path / "s", models=Models(offline=True))
    assert found.labels == 4423
    assert found.kappa.value == pytest.approx(0.428, abs=0.001)
    assert found.kappa.low < 0.428 < found.kappa.high
    # All passages have human grades, so the corrected mean equals the human mean.
    truth = np.mean([np.mean([people[q, p] >= 2 for (o, p) in people if o == q]) for q in queries])
    assert found.trials[0].corrected is not None
    assert found.trials[0].corrected.value == pytest.approx(truth)


def binary(
    labels: tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]],
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    people, recorded = labels
    pairs = list(people)
    return (
        np.array([people[pair] >= 2 for pair in pairs], float),
        np.array([recorded[pair] >= 2 for pair in pairs], float),
        [query for query, _ in pairs],
    )


def test_kappa_from_the_labels_alone(
    labels: tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]],
) -> None:
    """The published value, computed directly from the two files."""
    y, f, _ = binary(labels)
    table = [(y * f).sum(), (y * (1 - f)).sum(), ((1 - y) * f).sum(), ((1 - y) * (1 - f)).sum()]
    assert float(kappa(table)) == pytest.approx(0.428, abs=0.0005)


@pytest.mark.parametrize(("per_query", "shared_part"), [(2, False), (4, False), (2, True)])
def test_corrected_means_by_query_cover_the_truth(
    per_query: int, shared_part: bool, labels: tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]
) -> None:
    """Ten passages per query, some with human grades: the mean, and the difference of two overlapping trials."""
    y, f, queries = binary(labels)
    by_query = [np.flatnonzero(np.array(queries) == query) for query in sorted(set(queries))]
    rng = np.random.default_rng(11)
    truth = float(np.mean([y[at].mean() for at in by_query]))
    hits, off, draws = 0, 0, 1500
    for _ in range(draws):
        parts = []
        for which in rng.integers(0, len(by_query), 60):
            pool = rng.choice(by_query[which], 15, replace=False)
            drawn = rng.choice(15, per_query, replace=False)
            weight = np.zeros(15)
            weight[drawn] = 15 / per_query
            first = np.r_[np.ones(10), np.zeros(5)] / 10
            second = np.r_[np.zeros(5), np.ones(10)] / 10
            member = first - second if shared_part else first
            parts.append(
                [(member * weight * y[pool]).sum(), (member * weight * f[pool]).sum(), (member * f[pool]).sum()]
            )
        found = ppi_by_query(*np.array(parts).T)
        alone = np.array(parts)[:, 2]
        off += abs(alone.mean() - truth) > 1.96 * alone.std(ddof=1) / np.sqrt(len(alone))
        hits += found.low <= (0.0 if shared_part else truth) <= found.high
    assert 0.93 <= hits / draws <= 0.97
    if not shared_part:
        assert off / draws > 0.055  # the interval of the judge alone misses more often than 5 %


def test_a_random_judge_gets_no_weight() -> None:
    """The estimate equals that of the human labels alone."""
    rng = np.random.default_rng(3)
    people, noise, everywhere = rng.random(400) < 0.3, rng.random(400), rng.random(400)
    alone = float(people.mean())
    assert ppi_by_query(people.astype(float), noise, everywhere).value == pytest.approx(alone, abs=0.02)
