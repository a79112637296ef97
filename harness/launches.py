"""The launches a store remembers: written when one ends, read back to be compared."""

import json
from dataclasses import asdict
from pathlib import Path

from harness.errors import ConfigError, did_you_mean
from harness.experiment import Compare, Experiment, Trial
from harness.judging import results_of
from harness.launch import Launch
from harness.reader import Reader
from harness.session import Session, default_store
from harness.store import canonical, explained


def record_launch(session: Session, launch: Launch) -> None:
    """Leave the launch's trials in the store, so that `compare NAME` finds them."""
    record = {
        "id": launch.id,
        "experiment": launch.experiment.name,
        "final": session.final,
        "beside": str(launch.experiment.beside),
        "data": str(session.manifest.root),
        "question": launch.experiment.question,
        "compare": asdict(launch.experiment.compare),
        "reader": asdict(launch.experiment.reader) if launch.experiment.reader else None,
        "trials": [json.loads(trial.to_json()) for trial in session.trials],
    }
    with explained(session.store):
        folder = session.store / "launches"
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{launch.id}"
        draft.write_text(canonical(record), encoding="utf-8")
        draft.rename(folder / f"{launch.id}.json")


def stored_launch(experiment: Experiment | str, *, store: Path | None = None) -> Launch:
    """A launch read back from the store: of an experiment all of whose trials are stored, or the newest of a name.

    Raises ConfigError where trials are missing or no launch of that name is known.
    """
    place = store or default_store()
    launch_id = _recorded(experiment, place)[0] if isinstance(experiment, str) else ""
    session = stored_session(experiment, store=place)
    results, judging = results_of(session)
    return Launch(launch_id, session.experiment, results, judging=judging)


def stored_session(experiment: Experiment | str, *, store: Path | None = None) -> Session:
    """The session of an experiment all of whose trials are stored, or of the newest launch of a name.

    Raises ConfigError where trials are missing or no launch of that name is known.
    """
    place = store or default_store()
    final = False
    if isinstance(experiment, str):
        _, experiment, final = _recorded(experiment, place)
    session = Session(experiment, place, final=final)
    missing = sum(not session.pipeline(trial).stored(trial)["score"] for trial in session.trials)
    if missing:
        told = f"{missing} of {len(session.trials)} trials of '{experiment.name}'"
        raise ConfigError(f"{told} have not run; `harness run` does that")
    return session


def _recorded(name: str, store: Path) -> tuple[str, Experiment, bool]:
    """The newest launch of an experiment: its id, its trials as an experiment, and whether it opened the locked set."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((store / "launches").glob("*.json"))]
    found = [record for record in records if record["experiment"] == name]
    if not found:
        known = sorted({record["experiment"] for record in records})
        told = f"{did_you_mean(name, known)} Known: {', '.join(known)}" if known else " None has run here"
        raise ConfigError(f"compare: no launch of an experiment '{name}' in {store}.{told}")
    record = found[-1]
    trials = tuple(Trial.from_json(canonical({**trial, "data": record["data"]})) for trial in record["trials"])
    told = record["compare"]
    compare = Compare(**{**told, "show": tuple(told.get("show", ()))})
    reader = Reader(**record["reader"]) if record.get("reader") else None
    beside = Path(record["beside"])
    made = Experiment(
        name, trials[0], question=record["question"], compare=compare, beside=beside, fixed=trials, reader=reader
    )
    return record["id"], made, record["final"]
