"""`harness watch`: the launches that run on a store, with progress, time left, spending and failures."""

import argparse
import sys
import time
from typing import TYPE_CHECKING

from harness.cli.arguments import add_store_option
from harness.cli.exit_codes import OK
from harness.cli.parser import CommandGroup

if TYPE_CHECKING:
    from harness.tracking.running_launch import RunningLaunch

_SECONDS = 1.0


def add_watch_command(commands: CommandGroup) -> None:
    """Adds `harness watch`."""
    summary = "show the launches that run on a store, until they end; without a terminal, their state now"
    commands.add("watch", _watch, summary, add_store_option)


def _watch(options: argparse.Namespace) -> int:
    from harness.running.live import running
    from harness.running.session import store_folder

    store = store_folder(options.store)
    found = list(running(store))
    if not found:
        print(f"no launch is running on {store}")
        return OK
    if not sys.stdout.isatty():
        print("\n".join(map(_words, found)))
        return OK
    from rich.console import Console
    from rich.live import Live

    from harness.cli.output import plain

    try:
        with Live(console=Console(file=getattr(sys.stdout, "inner", sys.stdout)), auto_refresh=False) as shown:
            while found:
                shown.update(plain("\n\n".join(map(_words, found))), refresh=True)
                time.sleep(_SECONDS)
                found = list(running(store))
    except KeyboardInterrupt:
        return OK  # the launch goes on
    print("all launches have ended")
    return OK


def _words(state: "RunningLaunch") -> str:
    """A launch with its state, indented."""
    state = state._replace(updated=time.time())  # it is written when something happens
    first = f"experiment '{state.experiment}', launch {state.launch}, process {state.process} on {state.host}"
    return "\n  ".join([first, *state.words.splitlines()])
