"""The report on a launch: one self-contained HTML page."""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from harness.core.characters import visible
from harness.core.errors import ConfigError
from harness.core.secrecy import redact
from harness.running.launch_result import Launch
from reports.answer import answer
from reports.compare import compare
from reports.comparison import Comparison
from reports.final import final_scores
from reports.page import page


@dataclass(frozen=True)
class Report:
    """The page as `html`, the comparison it shows, and the answer in two sentences."""

    html: str
    comparison: Comparison
    answer: str

    def write(self, path: Path | str) -> Path:
        """Writes the page without secrets and returns its path. Raises ConfigError if it cannot be written."""
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(visible(redact(self.html)), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"report: {target}: cannot be written: {error.strerror}") from None
        return target

    def _repr_html_(self) -> str:
        # In an iframe, because the page's styles and scripts must not affect the notebook.
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:46rem;border:0" title="report"></iframe>'


def report(launch: Launch, *, on: str | None = None, explore: tuple[str, ...] = ()) -> Report:
    """Returns the report on a launch for the metric `on` (default: the experiment's primary metric).

    `explore` names trials that the query explorer includes even if it has no room for all of them. Raises ConfigError
    for an unknown metric or trial, or a launch without a session.
    """
    comparison = compare(launch, on=on)
    final = final_scores(launch, comparison.metric)
    return Report(page(launch, comparison, final, explore=explore), comparison, answer(comparison))
