"""The commands of every day: plan, run, compare, report, list, ui."""

import argparse
import math
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.data import add_data_commands
from harness.cli.exit_codes import CANNOT_TELL, CRASHED, INVALID, OK, STOPPED, USAGE
from harness.cli.judge import add_judge_commands, add_model_options, models_of
from harness.cli.output import OutputClosedError, safe_file, safe_output, show, width
from harness.core.blame import ended_by
from harness.core.characters import in_one_line
from harness.core.errors import ConfigError, HarnessError

if TYPE_CHECKING:
    from harness.experiment.experiment import Experiment
    from harness.run.launch_result import Launch

CLUSTERS = ("documents", "queries")
ROLES = ("chunkers", "augmenters", "embedders", "retrievers", "selectors", "judges", "metrics")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a user's fault becomes one line on stderr, and what nobody foresaw its traceback and code 70."""
    with safe_output():
        options = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], int] = options.command
        try:
            return command(options)
        except HarnessError as error:
            print(f"harness: {in_one_line(str(error))}", file=sys.stderr)
            return USAGE
        except OutputClosedError:
            # Python would complain once more while closing it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        except KeyboardInterrupt:
            print("harness: stopped; what was finished is kept, run again to go on", file=sys.stderr)
            return STOPPED
        except SystemExit as ended:
            # Exit code 0 without a result, or 1 without an answer, would be taken for what they mean.
            print(f"harness: {ended_by(ended)}", file=sys.stderr)
            return USAGE
        except BaseException:
            traceback.print_exc()
            return CRASHED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="harness", description="Evaluate retrieval: one YAML file, a scored grid in MLflow."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, work: Callable[[argparse.Namespace], int], summary: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=summary, description=summary)
        made.set_defaults(command=work)
        return made

    planned = command("plan", _plan, "show the trials of an experiment and what running them would cost")
    planned.add_argument("experiment", type=Path, help="the experiment file")
    started = command("run", _run, "run an experiment and log it to MLflow")
    started.add_argument("experiment", type=Path, help="the experiment file")
    started.add_argument("--workers", type=int, default=1, metavar="N", help="tasks at a time (default 1)")
    started.add_argument(
        "--on", default="processes", metavar="WHERE", help="processes, or package.module:callable giving an Executor"
    )
    started.add_argument(
        "--final", action="store_true", help="score the chosen trial and the baseline on the locked query set; recorded"
    )
    started.add_argument(
        "--choose", action="append", default=[], metavar="PARAM=VALUE", help="params of the trial for --final"
    )
    started.add_argument("--no-mlflow", action="store_true", help="log nothing")
    compared = command("compare", _compare, "compare the trials of an experiment on one metric")
    compared.add_argument("experiment", help="the experiment file, or the name of an experiment that has run")
    compared.add_argument("--metric", help="the metric (default: the experiment's compare.on)")
    compared.add_argument(
        "--baseline", action="append", default=[], metavar="PARAM=VALUE", help="params of the baseline trial"
    )
    compared.add_argument("--margin", type=float, metavar="D", help="the difference that matters in practice")
    compared.add_argument("--effect", type=float, metavar="D", help="the difference to tell queries needed for")
    compared.add_argument(
        "--clusters", choices=CLUSTERS, help="whether the claim is about further documents, or queries on the same"
    )
    compared.add_argument("--final", action="store_true", help="the newest launch that opened the locked query set")
    compared.add_argument(
        "--published",
        action="store_true",
        help="show published figures beside ours; exit code 1 if any differs",
    )
    form = compared.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, with every metric and fact of each trial")
    form.add_argument("--csv", action="store_true", help="print CSV, a row per trial, a column per metric and fact")
    compared.add_argument(
        "--show",
        metavar="NAMES",
        help="metrics and other facts to show too, separated by commas; only these in JSON and CSV",
    )
    reported = command("report", _report, "write the report on an experiment: one HTML file that opens from disk")
    reported.add_argument("experiment", help="the experiment file, or the name of an experiment that has run")
    reported.add_argument("--out", type=Path, metavar="FILE", help="the file to write (default NAME.html)")
    reported.add_argument("--metric", help="the metric (default: the experiment's compare.on)")
    reported.add_argument("--final", action="store_true", help="the newest launch that opened the locked query set")
    reported.add_argument(
        "--explore", action="append", default=[], metavar="TRIAL", help="a trial the query explorer holds in any case"
    )
    gated = command("gate", _gate, "hold today's results against the accepted baseline; exit code 1 if worse")
    gated.add_argument("experiment", type=Path, help="the experiment file")
    gated.add_argument("--accept", action="store_true", help="accept today's results as the baseline instead")
    gated.add_argument("--why", default="", metavar="TEXT", help="why they are accepted")
    gated.add_argument("--who", metavar="NAME", help="who accepts them (default: the user)")
    gated.add_argument("--out", type=Path, metavar="DIR", help="write gate.md, gate.json, junit.xml, history.svg there")
    gated.add_argument("--fresh", action="store_true", help="forget what is stored: models elsewhere answer anew")
    gated.add_argument("--workers", type=int, default=1, metavar="N", help="tasks at a time (default 1)")
    banded = command("bands", _bands, "tell how often a hit in each band of cosine scores is relevant")
    banded.add_argument("experiment", help="the experiment file; its trials must have run")
    banded.add_argument("--edges", metavar="NUMBERS", help="where bands part (default 0.9,0.8,…,0.3)")
    banded.add_argument("--plot", type=Path, metavar="FILE", help="write a picture as well (PNG)")
    banded.add_argument("--json", action="store_true", help="print JSON")
    for made in (planned, started, compared, reported, gated, banded):
        made.add_argument("--store", type=Path, help="folder of stage outputs (default: HARNESS_STORE, else .harness)")
    listed = command("list", _list, "list the built-in components of a role, or the metrics")
    listed.add_argument("role", choices=ROLES)
    begun = command("init", _init, "write the beginning of a project: an experiment, a small data set, a component")
    begun.add_argument("folder", type=Path, help="the folder to make")
    shown = command("ui", _ui, "open the MLflow UI on the tracking store")
    shown.add_argument("--port", type=int, default=5000)
    for made in (started, gated, shown):
        made.add_argument(
            "--tracking", metavar="URI", help="MLflow tracking URI (default: MLFLOW_TRACKING_URI, else ./mlflow.db)"
        )
    add_model_options(planned, spends=False)
    add_model_options(started)
    add_model_options(gated)
    add_data_commands(commands)
    add_judge_commands(commands)
    return parser


def _plan(options: argparse.Namespace) -> int:
    from harness.experiment.yaml_file import read_experiment
    from harness.run.plan import plan

    made = plan(read_experiment(options.experiment), store=options.store, models=models_of(options))
    width = max(len(trial.name) for trial in made.trials)
    stages = list(made.trials[0].stored)
    print(f"{'trial':<{width}}  " + "  ".join(f"{stage:<8}" for stage in stages))
    for trial in made.trials:
        print(f"{trial.name:<{width}}  " + "  ".join(f"{'stored' if trial.stored[s] else 'to do':<8}" for s in stages))
    print(f"\n{len(made.trials)} trials, {sum(all(t.stored.values()) for t in made.trials)} of them stored")
    for embedder, count in made.texts.items():
        usd = made.usd[embedder]
        price = "price unknown" if usd is None else f"${usd:.4f}" if usd else "no charge"
        print(f"to embed with {embedder}: {count} distinct texts, {made.tokens[embedder]} tokens, {price}")
    if not made.texts:
        print("nothing to embed")
    for line in made.calls:
        print(line)
    return OK


def _run(options: argparse.Namespace) -> int:
    from harness.experiment.yaml_file import read_experiment
    from harness.run.launch import run
    from reports import columns, compare, launch_report
    from reports.answer import answer
    from reports.final import final_scores, lines
    from reports.judging import judge_table
    from reports.tables import table

    if options.choose and not options.final:
        raise ConfigError("run: --choose goes with --final")
    launch = run(
        read_experiment(options.experiment),
        workers=options.workers,
        on=options.on,
        store=options.store,
        tracking=options.tracking,
        log=not options.no_mlflow,
        final=options.final,
        choose=_params("--choose", options.choose),
        report=launch_report,
        models=models_of(options),
        tell=lambda line: print(line, flush=True),
    )
    comparison = compare(launch)
    show(table(comparison, width()))
    print(answer(comparison))
    final = final_scores(launch)
    for line in lines(final) if final else ():
        print(line)
    if launch.experiment.compare.show:
        show(columns.table(launch, launch.experiment.compare.show))
    if launch.results[0].judged:
        show(judge_table(launch))
    done = ", ".join(f"{count} {stage}" for stage, count in launch.work.items()) or "nothing, all of it was stored"
    print(f"\n{len(launch.results)} trials in {launch.seconds:.0f} s; worked out: {done}")
    if launch.links:
        print(f"In MLflow, {_how_to_open(options.tracking)}:")
        for name, link in launch.links.items():
            print(f"  {name:<14} {link}")
    if launch.withheld:
        print(f"harness: withheld: {', '.join(launch.withheld)}; too many judgments are missing", file=sys.stderr)
        return CANNOT_TELL
    return OK


def _how_to_open(tracking: str | None) -> str:
    from harness.tracking import default_uri

    return "on its server" if (tracking or default_uri()).startswith("http") else "after `harness ui`"


def _compare(options: argparse.Namespace) -> int:
    from reports import columns, compare
    from reports.tables import as_csv, as_json, table

    launch = _launch(options)
    if options.published:
        return _published(options, launch)
    comparison = compare(
        launch,
        on=options.metric,
        baseline=_params("--baseline", options.baseline),
        margin=options.margin,
        effect=options.effect,
        clusters=options.clusters,
    )
    named = options.show.split(",") if options.show else launch.experiment.compare.show
    if options.json or options.csv:
        values = columns.beside(launch, named if options.show else columns.every(launch))
        print(as_json(comparison, values) if options.json else as_csv(comparison, values), end="\n" * options.json)
    else:
        beside = [columns.table(launch, named)] if named else []
        for shown in (table(comparison, width()), *beside):
            show(shown)
    return CANNOT_TELL if any(math.isnan(row.mean) for row in comparison.rows) else OK


def _published(options: argparse.Namespace, launch: "Launch") -> int:
    import json

    from reports.plain import plain
    from reports.published import differing, figures, records, text

    found = figures(launch)
    published = launch.experiment.published
    assert published is not None
    if options.json:
        print(json.dumps(plain({"source": published.source, "figures": records(found)}), indent=1, ensure_ascii=False))
    else:
        print(text(found, published.source))
    return INVALID if differing(found) else OK


def _gate(options: argparse.Namespace) -> int:
    from harness.experiment.yaml_file import read_experiment
    from reports.gate_run import accept_launch, gate
    from reports.nightly import files, markdown, refused

    experiment = read_experiment(options.experiment)
    given: dict[str, Any] = {
        "workers": options.workers,
        "store": options.store,
        "tracking": options.tracking,
        "models": models_of(options),
        "tell": lambda line: print(line, file=sys.stderr, flush=True),
    }
    if options.accept:
        accepted = accept_launch(experiment, why=options.why, who=options.who, **given)
        print(f"{experiment.name}: {accepted.who} accepts launch {accepted.launch}: {accepted.why}")
        for trial in accepted.trials:
            told = (f"{name} {trial.mean(name):.3f}" for name in (*experiment.metrics, *experiment.judged))
            print(f"  {trial.name}: {', '.join(told)}")
        return OK
    if options.why or options.who:
        raise ConfigError("gate: --why and --who go with --accept")
    try:
        found = gate(experiment, fresh=options.fresh, **given)
    except HarnessError as error:
        # What lies there from an earlier night must not be taken for this one's result.
        if options.out:
            for name, content in refused(experiment.name, str(error)).items():
                _write(options.out / name, content)
        raise
    if options.out:
        for name, content in files(found).items():
            _write(options.out / name, content)
    print(markdown(found))
    print(f"In MLflow, {_how_to_open(options.tracking)}: {found.link}")
    return found.exit_code


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(safe_file(content))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None


def _report(options: argparse.Namespace) -> int:
    from harness.storage.files import file_name
    from reports import report

    launch = _launch(options)
    made = report(launch, on=options.metric, explore=tuple(options.explore))
    path = made.write(options.out or Path(f"{file_name(launch.experiment.name)}.html"))
    print(made.answer)
    print(f"{path}: {len(made.html.encode()) / 1e6:.1f} MB")
    return CANNOT_TELL if any(math.isnan(row.mean) for row in made.comparison.rows) else OK


def _params(option: str, given: Sequence[str]) -> dict[str, str]:
    """Params by name, from PARAM=VALUE."""
    for pair in given:
        if "=" not in pair:
            raise ConfigError(f"{option} {pair}: write PARAM=VALUE, such as chunker=fixed")
    return dict(pair.split("=", 1) for pair in given)


def _experiment(options: argparse.Namespace) -> "Experiment | str":
    """The experiment of a file, or a name as it stands."""
    from harness.experiment.yaml_file import read_experiment

    path = Path(options.experiment)
    return read_experiment(path) if path.suffix in (".yaml", ".yml") or path.is_file() else str(options.experiment)


def _launch(options: argparse.Namespace) -> "Launch":
    from harness.run.launch_history import stored_launch

    return stored_launch(_experiment(options), store=options.store, final=options.final)


def _bands(options: argparse.Namespace) -> int:
    from harness.run.launch_history import stored_session
    from harness.run.score_bands import EDGES, score_bands
    from reports import bands

    try:
        edges = [float(part) for part in options.edges.split(",")] if options.edges else EDGES
    except ValueError:
        raise ConfigError(f"--edges {options.edges}: write numbers parted by commas, such as 0.8,0.6,0.4") from None
    found = score_bands(stored_session(_experiment(options), store=options.store), edges)
    if not found:
        raise ConfigError("bands: no trial searches embeddings by cosine; add a `dense` or `hybrid` retriever")
    print(bands.as_json(found) if options.json else bands.text(found))
    if options.plot:
        _write(options.plot, bands.picture(found))
    return OK


def _list(options: argparse.Namespace) -> int:
    if options.role == "metrics":
        from harness.evaluation.metrics.measures import LEVEL_MEASURES, MEASURES

        for name, measure in (*MEASURES.items(), *((f"{name}@0.1", one) for name, one in LEVEL_MEASURES.items())):
            print(f"{name:<24} {(measure.__doc__ or '').splitlines()[0]}")
        return OK
    from harness.experiment.catalog import describe

    if options.role == "selectors":
        _list_presets()
    for name, summary, settings in describe(options.role.removesuffix("s")):
        print(f"{name}: {summary}")
        for setting, default, runtime in settings:
            print(f"    {setting} = {default}" + ("  (speed or cost only)" if runtime else ""))
    return OK


def _list_presets() -> None:
    from harness.components.selectors.presets import PRESETS

    for name, preset in PRESETS.items():
        steps = f"top_k {preset.fetch}, rerank, normalize, mmr {preset.k} with relevance {preset.relevance:g}"
        print(f"{name}: A preset: the steps {steps}.")
        print('    rerank = "rerank"')


def _init(options: argparse.Namespace) -> int:
    from harness.cli.init import scaffold

    for path in scaffold(options.folder):
        print(path)
    print(f"now: cd {options.folder} && harness run experiment.yaml")
    return OK


def _ui(options: argparse.Namespace) -> int:
    from harness.core.secrecy import bare_address
    from harness.tracking import QUIET, default_uri, sqlite_file, sqlite_uri

    uri = options.tracking or default_uri()
    if uri.startswith("http"):
        raise ConfigError(f"ui: {bare_address(uri)} is a server; open it in a browser")
    database = sqlite_file(uri)
    if database and not database.is_file():
        told = f"{database} does not exist"
        raise ConfigError(f"ui: {told}; run an experiment first, or name a store with --tracking")
    # One worker and no job runner: half a gigabyte and seconds instead of the default's ten processes.
    environment = {**os.environ, **QUIET, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    command = [
        sys.executable,
        "-P",
        "-m",
        "mlflow",
        "ui",
        "--backend-store-uri",
        sqlite_uri(database) if database else uri,
        "--port",
        str(options.port),
        "--workers",
        "1",
    ]
    print(f"MLflow UI on http://127.0.0.1:{options.port} (Ctrl-C stops it)", flush=True)
    os.execve(sys.executable, command, environment)
