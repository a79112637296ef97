"""Scale: run, compare, report and gate with the size of ArguAna, and with 100,000 queries."""

from pathlib import Path

import pytest

from harness import Compare, Experiment, Trial, run
from harness.components.chunkers import Fixed
from harness.components.retrievers import TrecRun
from harness.components.selectors import TopK
from harness.data.importers import Options, import_dataset
from harness.running.acceptance import accept
from reports import compare, report
from reports.gate import compare_with_baseline


def judged_data(folder: Path, queries: int, documents: int) -> Path:
    """One relevant document per query. A run ranks it first for 1/2 of the queries, second for 1/6, else not at all."""
    source = folder / "source"
    source.mkdir()
    gold = [f"d{at % documents}" for at in range(queries)]
    (source / "qrels").write_text("".join(f"q{at} 0 {doc} 1\n" for at, doc in enumerate(gold)))
    ranked = []
    for at, doc in enumerate(gold):
        other = f"d{(at + 1) % documents}"
        first = (doc, other) if at % 2 == 0 else (other, doc) if at % 3 == 0 else (other,)
        ranked += [f"q{at} Q0 {name} {rank} {-rank} x\n" for rank, name in enumerate(first, 1)]
    (source / "run").write_text("".join(ranked))
    import_dataset("trec", source, folder / "data", options=Options(runs={"run": "run"}))
    return folder / "data"


@pytest.mark.parametrize(
    ("queries", "documents"),
    [
        pytest.param(1406, 1406, id="arguana"),
        pytest.param(100_000, 10_000, id="100,000 queries", marks=pytest.mark.long),
    ],
)
def test_run_compare_report_and_gate(queries: int, documents: int, tmp_path: Path) -> None:
    """The second passage adds 1/6 to recall, the page is written, and the launch passes its own baseline."""
    data = judged_data(tmp_path, queries, documents)
    base = Trial(
        str(data), Fixed(size=64), TrecRun(run="run"), tokenizer="words", selector=(TopK(k=1),), metrics=("recall@5",)
    )
    settings = Compare({"selector.top_k.k": "1"}, on="recall@5")
    experiment = Experiment("many", base, {"selector.top_k.k": [1, 2]}, compare=settings)
    launch = run(experiment, store=tmp_path / "store", log=False)
    found = compare(launch)
    assert found.clusters == documents
    assert found.rows[0].mean == pytest.approx(1 / 2, abs=0.001)
    assert found.rows[1].difference == pytest.approx(1 / 6, abs=0.001)
    assert (found.rows[1].verdict, found.rows[1].difference_low > 0.1) == ("better", True)
    page = report(launch)
    assert "is better than the baseline" in page.answer
    assert len(page.html) < 5_000_000
    verdicts = compare_with_baseline(launch, accept(launch, who="Ada", when="2026-01-01", why="it is good"))
    assert verdicts.exit_code == 0
