"""A session: an experiment with its data and its store, its trials and access to what their stages make."""

import importlib.util
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.core.errors import ConfigError
from harness.core.project import project_folder
from harness.core.tokenizer import Tokenizer, fault_of_name
from harness.data.dataset import hashed, open_query_set
from harness.data.manifest import Manifest, find_dataset, read_manifest
from harness.data.record_files import verify
from harness.evaluation.metrics.loss_attribution import ABSENT
from harness.evaluation.results import TrialResult
from harness.experiment.experiment import Experiment
from harness.experiment.params import find_baseline
from harness.experiment.trial import Trial
from harness.experiment.trial_names import names
from harness.running.exchange import fetch
from harness.running.executors import Engine
from harness.running.parcel import pack
from harness.running.stages.graph import Graph
from harness.running.stages.model_access import PriceGiven
from harness.running.stages.stage import Stage
from harness.running.stages.trial_stages import TrialStages
from harness.running.stages.workspace import StageContext, workspace_for
from harness.running.trial_outputs import TrialOutputs
from harness.running.trial_result import trial_result, unpriced
from harness.storage.bucket import address_of, local_folder
from harness.storage.digest import digest


def store_folder(given: Path | str | None, base_dir: Path | None = None) -> Path:
    """Return the folder of a store: the given one, else that of HARNESS_STORE, else `.harness` in the project.

    For the URL of a bucket, it is the folder in front of it, with what other machines have added. `base_dir` is the
    folder of the experiment, by default the working folder. Raises StoreError if the bucket cannot be read.
    """
    named = given or os.environ.get("HARNESS_STORE")
    if not named:
        return project_folder(base_dir or Path.cwd()) / ".harness"
    folder = local_folder(named)
    fetch(folder)
    return folder


class Session:
    """The trials of an experiment, their data and access to what their stages make.

    `final` puts all trials on the locked query set. Raises DataError if the data cannot be found or a pinned file has
    changed, ConfigError if no trial is the baseline.
    """

    def __init__(self, experiment: Experiment, store: Path, *, final: bool = False, price: PriceGiven = None) -> None:
        self.experiment, self.store, self.final, self.price = experiment, store.resolve(), final, price
        trials = experiment.trials()
        root = find_dataset(experiment.base.data, experiment.base_dir)
        self.manifest = read_manifest(root)
        if final:
            trials = [replace(trial, queries=_locked(self.manifest)) for trial in trials]
        trials = [replace(trial, copies=trial.copies or self.manifest.copies) for trial in trials]
        every = [trial.params() for trial in trials]
        given = experiment.trial_set.names if experiment.trial_set else ()
        self._outputs: dict[int, tuple[Trial, TrialOutputs]] = {}
        self.trials, self.names = trials, list(given or names(every))
        # Raises now rather than after the work if no trial is a baseline.
        for wanted in experiment.compare.baselines:
            find_baseline(every, wanted)
        # The files are hashed once per launch; from here on their hashes stand for their content.
        sets = (open_query_set(self.manifest, name, final=final) for name in self.query_sets)
        files = [self.manifest.corpus, *sets]
        for file in files:
            verify(file)
        self._unpinned = [file.path for file in files if not file.sha256]
        self.manifest = hashed(self.manifest)

    def require_packages(self) -> None:
        """Raise ConfigError if an unfinished or judged trial needs a package that is not installed."""
        missing = fault_of_name(self.trials[0].tokenizer)
        if missing:
            raise ConfigError(f"{self.experiment.source or self.experiment.name}: tokenizer: {missing}")
        for trial in self.trials:
            if self.outputs(trial).stages.scores.done(self.outputs(trial).work) and not trial.judges:
                continue
            embedder = [trial.embedder] if trial.uses_vectors else []
            parts = (trial.chunker, trial.augmenter, *embedder, trial.retriever, *trial.selector, *trial.judges)
            for part in parts:
                for package, extra in part.packages().items():
                    if not _installed(package):
                        where = f"{self.experiment.source or self.experiment.name}: {part.role} {part.name()}"
                        message = f"{package} is missing; pip install 'retrieval-harness[{extra}]'"
                        raise ConfigError(f"{where}: {message}")

    @property
    def data(self) -> str:
        """A digest of the documents and the queries."""
        return digest([self.manifest.corpus.sha256, self.manifest.query_set(self.trials[0].queries).sha256])

    @property
    def corpus_bytes(self) -> int:
        """The size of the corpus, to which the time of most stages is in proportion."""
        return self.manifest.corpus.size

    @property
    def query_sets(self) -> list[str]:
        """The names of the query sets that the trials use."""
        return list(dict.fromkeys(trial.queries for trial in self.trials))

    @property
    def synthetic(self) -> bool:
        """Whether a language model wrote the queries."""
        return self.manifest.query_set(self.trials[0].queries).synthetic

    def notes(self, results: Sequence[TrialResult]) -> list[str]:
        """Return the caveats about the data that belong beside every reported number."""
        lines = []
        if self.experiment.partial:
            lines.append(f"partial run ({self.experiment.partial}): to try something out, not a result")
        if self._unpinned:
            files = " and ".join(path.name for path in self._unpinned)
            message = f"not pinned: {files} of '{self.manifest.name}', so a change to it goes unnoticed"
            lines.append(f"{message}; `harness data pin {self.experiment.base.data}` guards it")
        if self.synthetic:
            lines.append(f"synthetic: the queries of '{self.trials[0].queries}' were written by a language model")
        absent = results[0].losses().get(ABSENT, 0)
        if absent:
            items = f"{absent} of {sum(map(len, results[0].evidence_outcomes))} evidence items"
            lines.append(f"{items} are in documents missing from the corpus and cannot be found")
        return lines

    def outputs(self, trial: Trial) -> TrialOutputs:
        """Return access to what a trial's stages made."""
        if id(trial) not in self._outputs:
            context = self.context(trial)
            stages = TrialStages(trial, self.manifest, context.tokenizer_identity)
            self._outputs[id(trial)] = trial, TrialOutputs(stages, workspace_for(context))
        return self._outputs[id(trial)][1]

    def graph(self) -> Graph:
        """Return the graph of what is left to do until all trials are scored."""
        return self.graph_to(self.outputs(trial).stages.scores for trial in self.trials)

    def graph_to(self, goals: Iterable[Stage]) -> Graph:
        """Return the graph of what is left to do until the goals of all trials are reached, in the trials' order."""
        works = (self.outputs(trial).work for trial in self.trials)
        return Graph(zip(goals, works, strict=True))

    def send_to(self, engine: Engine) -> None:
        """Send the workers of other machines what they need, and have each of them check it before any work.

        Raises ConfigError, in one line, if a worker would compute something else than this process.
        """
        if engine.far:
            for trial in self.trials:
                self.outputs(trial).data.documents.lengths  # noqa: B018 - packs the corpus, of which workers have no file
            engine.parcel = pack(self.store, self.manifest, self.trials)
            for context in dict.fromkeys(map(self.context, self.trials)):
                engine.require(engine.sent(context))

    def result(self, trial: Trial, name: str) -> TrialResult:
        """Return the result of a trial, computed if needed; with `usd_per_query` if the experiment has a reader."""
        result = trial_result(self.outputs(trial), name, self.price)
        reader = self.experiment.reader
        if reader is None:
            return result
        facts, unknown = result.efficiency, unpriced(trial, self.price)
        if unknown:
            message = f"usd_per_query is not reported: the price of {', '.join(unknown)} is not known"
            return replace(result, warnings=[*result.warnings, message])
        asked = (facts.get("queries_usd", 0.0) + facts.get("rerank_usd", 0.0)) / max(1, len(result.queries))
        usd = reader.usd(facts["context_tokens"]) + asked
        return replace(result, efficiency={**facts, "usd_per_query": usd})

    def context(self, trial: Trial) -> StageContext:
        """Return what a process needs besides a stage of the trial to run it."""
        return StageContext(
            str(self.manifest.root),
            self.manifest.corpus.sha256,
            trial.queries,
            self.manifest.query_set(trial.queries).sha256,
            trial.tokenizer,
            Tokenizer(trial.tokenizer).identity,
            trial.copies or self.manifest.copies,
            address_of(self.store),
            self.final,
            trial.limit,
        )


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _locked(manifest: Manifest) -> str:
    locked = [name for name, pinned in manifest.queries.items() if pinned.locked]
    if len(locked) != 1:
        message = f"{len(locked)} locked query sets ({', '.join(locked) or 'none'})"
        raise ConfigError(f"--final: {manifest.root} has {message}; exactly one is required")
    return locked[0]
