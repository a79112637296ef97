"""The launches recorded in a store: written when a launch ends, read back to compare it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.core.errors import ConfigError, HarnessError, did_you_mean
from harness.evaluation.results import gathered
from harness.experiment.experiment import Experiment, TrialSet
from harness.experiment.reader_price import Reader
from harness.experiment.settings import Compare, Gate
from harness.experiment.trial import Trial
from harness.running.judging.judging import results_of
from harness.running.launch_result import Launch
from harness.running.session import Session, store_folder
from harness.running.stages.model_access import PriceGiven
from harness.running.stages.stage import Stage
from harness.storage.digest import canonical, digest
from harness.storage.sealed import read_sealed, write_sealed
from harness.storage.store import object_name

FORMAT = 2
"""Version of the format of a launch record."""


def record_launch(session: Session, launch: Launch) -> None:
    """Write the launch's record to the store, so that `compare NAME` finds its trials."""
    record = {
        "id": launch.id,
        "experiment": launch.experiment.name,
        "final": session.final,
        "beside": str(launch.experiment.base_dir),
        "data": str(session.manifest.root),
        "question": launch.experiment.question,
        "compare": asdict(launch.experiment.compare),
        "gate": asdict(launch.experiment.gate),
        "reader": asdict(launch.experiment.reader) if launch.experiment.reader else None,
        "price": session.price,
        "trials": [json.loads(trial.to_json()) for trial in session.trials],
        "names": session.names,
        "chosen": launch.experiment.chosen,
        "partial": launch.experiment.partial,
        "uses": used_by(session),
    }
    write_sealed(session.store / "launches" / f"{launch.id}.json", record, FORMAT)


def used_by(session: Session) -> dict[str, list[str]]:
    """Return the names in the store of all that a session's trials use, by stage; see `harness.running.inventory`."""
    found: dict[str, dict[str, None]] = {}
    left: list[Stage] = [session.outputs(trial).stages.scores for trial in session.trials]
    seen: set[str] = set()
    while left:
        stage = left.pop()
        if stage.address in seen:
            continue
        seen.add(stage.address)
        left += stage.inputs
        for kind, name in stage.stored_as:
            found.setdefault(kind, {})[name] = None
    for data in {id(data): data for trial in session.trials if (data := session.outputs(trial).data)}.values():
        for key in data.stored:
            found.setdefault(str(key["stage"]), {})[object_name(digest(key))] = None
    return {kind: sorted(names) for kind, names in sorted(found.items())}


def stored_launch(experiment: Experiment | str, *, store: Path | str | None = None, final: bool = False) -> Launch:
    """Return a launch read back from the store: of an experiment, or the newest launch of an experiment's name.

    All its trials must be stored. `final` reads the newest launch that opened the locked query set. Raises ConfigError
    if a trial is missing or there is no such launch.
    """
    place = store_folder(store, None if isinstance(experiment, str) else experiment.base_dir)
    launch_id, price = "", None
    if final or isinstance(experiment, str):
        name = experiment if isinstance(experiment, str) else experiment.name
        launch_id, experiment, price = _recorded(name, place, final=final)
    session = _all_stored(Session(experiment, place, final=final, price=price))
    results, report, judging = results_of(session)
    warnings = [*session.notes(results), *gathered(results)]
    return Launch(
        launch_id,
        session.experiment,
        results,
        warnings=warnings,
        judging_report=report,
        session=session,
        judging=judging,
    )


def final_of(launch: Launch) -> Launch | None:
    """Return the newest final launch whose trials and corpus are those of this launch; None if there is none.

    A final launch is one that scored the locked query set.
    """
    assert launch.session is not None
    records = [record for record in records_of(launch.session.store) if record["final"]]
    if launch.experiment.name not in {record["experiment"] for record in records}:
        return None
    try:
        found = stored_launch(launch.experiment.name, store=launch.session.store, final=True)
    except HarnessError:
        return None  # its data or its scores have changed or are gone
    known = {_without_queries(trial) for trial in launch.session.trials}
    assert found.session is not None
    same_data = found.session.manifest.corpus.sha256 == launch.session.manifest.corpus.sha256
    return found if same_data and all(_without_queries(trial) in known for trial in found.session.trials) else None


def _without_queries(trial: Trial) -> str:
    """A digest of a trial that does not depend on its query set or its data set's name."""
    return digest({**trial.identity(), "queries": "", "data": ""})


def stored_session(experiment: Experiment | str, *, store: Path | str | None = None) -> Session:
    """Return the session of an experiment, or of the newest launch of an experiment's name, if all trials are stored.

    Raises ConfigError if a trial is missing or no launch of that name is known.
    """
    place = store_folder(store, None if isinstance(experiment, str) else experiment.base_dir)
    if isinstance(experiment, str):
        _, experiment, _ = _recorded(experiment, place)
    return _all_stored(Session(experiment, place))


def _all_stored(session: Session) -> Session:
    missing = sum(not session.outputs(trial).stored()["score"] for trial in session.trials)
    if missing:
        message = f"{missing} of {len(session.trials)} trials of '{session.experiment.name}'"
        raise ConfigError(f"{message} have not run; run them with `harness run`{_hint(session)}")
    return session


def _hint(session: Session) -> str:
    """Why the newest launch of this name does not count: it ran a part, or something changed since."""
    found = [record for record in records_of(session.store) if record["experiment"] == session.experiment.name]
    if not found or session.experiment.partial:
        return ""
    if not found[-1].get("partial"):
        name, launch = session.experiment.name, found[-1]["id"]
        return f"; its data, settings or components changed since launch {launch}, which the name '{name}' shows"
    return f", or name '{session.experiment.name}' instead of the file to see its partial run ({found[-1]['partial']})"


def records_of(store: Path) -> list[dict[str, Any]]:
    """The records of all launches in the store, the oldest first."""
    found = (read_sealed(path, FORMAT) for path in sorted((store / "launches").glob("*.json")))
    return [record for record in found if record is not None]


def _recorded(name: str, store: Path, *, final: bool = False) -> tuple[str, Experiment, PriceGiven]:
    """The newest launch of an experiment: its id, its trials as an experiment, and the prices it was given."""
    records = [record for record in records_of(store) if record["final"] == final]
    found = [record for record in records if record["experiment"] == name]
    if not found:
        known = sorted({record["experiment"] for record in records})
        text = f"{did_you_mean(name, known)} Known: {', '.join(known)}" if known else " It holds none"
        kind = "final launch" if final else "launch"
        raise ConfigError(f"compare: no {kind} of an experiment '{name}' in {store}.{text}")
    record = found[-1]
    trials = tuple(Trial.from_json(canonical({**trial, "data": record["data"]})) for trial in record["trials"])
    text = record["compare"]
    compare = Compare(**{**text, "show": tuple(text.get("show", ()))})
    reader = Reader(**record["reader"]) if record.get("reader") else None
    base_dir = Path(record["beside"])
    made = Experiment(
        name,
        trials[0],
        question=record["question"],
        compare=compare,
        base_dir=base_dir,
        trial_set=TrialSet(trials, tuple(record.get("names", ())), record.get("chosen", "")),
        reader=reader,
        gate=Gate(**record.get("gate", {})),
        partial=record.get("partial", ""),
    )
    price = record.get("price")
    return record["id"], made, (price[0], price[1]) if price else None
