"""`harness store`: what a store contains, what can go, and what is damaged."""

import argparse
import datetime
from collections import Counter

from harness.cli.arguments import add_store_option
from harness.cli.exit_codes import INVALID, OK
from harness.cli.output import byte_size
from harness.cli.parser import CommandGroup, number
from harness.core.errors import ConfigError


def add_store_commands(commands: CommandGroup) -> None:
    """Adds `harness store` with its commands."""
    store = commands.add_group("store", "what a store contains: show, prune or verify it")
    store.add("show", _show, "what is stored, by stage and by experiment, and what can go", add_store_option)
    store.add("prune", _prune, "remove what the newest launch of no experiment uses", _prune_options)
    summary = "check everything against its checksum; exit code 1 if something is damaged"
    store.add("verify", _verify, summary, add_store_option)


def _prune_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="remove it; without this, only say what would go")
    parser.add_argument(
        "--older",
        type=number,
        default=1.0,
        metavar="DAYS",
        help="only what was written so many days ago (1): a launch may be working",
    )
    add_store_option(parser)


def _show(options: argparse.Namespace) -> int:
    from harness.core.plurals import plural
    from harness.running.inventory import DAY, inventory
    from harness.running.session import store_folder
    from harness.storage.bucket import address_of

    folder = store_folder(options.store)
    found = inventory(folder)
    print(address_of(folder))
    sizes, counts = Counter[str](), Counter[str]()
    for name, item in found.items.items():
        kind = found.kind(name)
        sizes[kind] += item.size
        counts[kind] += 1
    for kind, size in sizes.most_common():
        print(f"  {kind:<12} {counts[kind]:>8,} {byte_size(size):>10}")
    for use in found.uses:
        size = sum(item.size for name, item in found.items.items() if use.stage(name))
        print(f"experiment '{use.experiment}', launch {use.launch}: uses {byte_size(size)}")
    for name in found.unknown:
        print(f"experiment '{name}': did not record what it uses; run it again, which computes nothing")
    unused = found.unused(DAY, datetime.datetime.now(datetime.UTC))
    if unused:
        total = byte_size(sum(item.size for item in unused))
        print(f"not used by any experiment: {plural(len(unused), 'item')}, {total}; `harness store prune` removes them")
    return OK


def _prune(options: argparse.Namespace) -> int:
    from harness.core.plurals import plural
    from harness.running.inventory import inventory, remove
    from harness.running.session import store_folder

    folder = store_folder(options.store)
    found = inventory(folder)
    if found.unknown:
        names = ", ".join(f"'{name}'" for name in found.unknown)
        message = f"the newest launch of {names} did not record what it uses"
        raise ConfigError(f"store prune: {message}; run the experiment again first, which computes nothing")
    unused = found.unused(datetime.timedelta(days=options.older), datetime.datetime.now(datetime.UTC))
    total = f"{plural(len(unused), 'item')}, {byte_size(sum(item.size for item in unused))}"
    if not options.yes:
        print(f"would remove {total}; --yes removes it")
        return OK
    remove(folder, unused)
    print(f"removed {total}")
    return OK


def _verify(options: argparse.Namespace) -> int:
    from harness.core.plurals import plural
    from harness.running.inventory import damaged, inventory
    from harness.running.session import store_folder

    found = inventory(store_folder(options.store))
    bad = list(damaged(found))
    for place in bad:
        print(f"damaged: {place}")
    print(f"{plural(len(found.items), 'item')}, {plural(len(bad), 'damaged copy')}; a run makes what is damaged again")
    return INVALID if bad else OK
