"""Notes on trials of other systems, which may leave something uncertain."""

from harness.core.plurals import plural
from harness.running.launch_result import Launch


def system_notes(launch: Launch, metric: str) -> list[str]:
    """Returns notes on queries without an answer, and on passages that are not in the corpus."""
    notes = []
    for result in launch.results:
        found = result.uncertain.get(metric)
        if found is None:
            continue
        missing, open_ = found.total - found.complete, int((found.low < found.high).sum())
        if missing:
            message = "the mean is withheld" if found.withheld else "the mean is over the others"
            notes.append(f"{result.name}: {missing} of {found.total} queries have no answer; {message}")
        if open_ > missing:
            message = f"{plural(open_ - missing, 'query')} may have evidence in passages that are not in the corpus"
            notes.append(f"{result.name}: {message}, which counts as none")
    return [*notes, *(["intervals and verdicts hold for whatever is missing or not located"] if notes else ())]
