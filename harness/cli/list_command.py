"""`harness list`: the built-in components of a role, or the metrics."""

import argparse

from harness.cli.arguments import CommandGroup
from harness.cli.exit_codes import OK

ROLES = ("chunkers", "augmenters", "embedders", "retrievers", "selectors", "judges", "metrics")


def add_list_command(commands: CommandGroup) -> None:
    """Adds `harness list`."""
    commands.add("list", _list, "list the built-in components of a role, or the metrics", _list_options)


def _list_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("role", choices=ROLES)


def _list(options: argparse.Namespace) -> int:
    if options.role == "metrics":
        from harness.evaluation.metrics import MEASURES

        for name, measure in MEASURES.items():
            print(f"{name + ('@0.1' if measure.cutoff == 'level' else ''):<24} {measure.help}")
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
