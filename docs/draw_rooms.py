"""Draw docs/rooms.svg: the rooms of the repository in their layers, and what they import from each other.

The layers are those of the import-linter contract in pyproject.toml, the arrows those of the import graph, the captions
the docstrings of the packages. `python -P docs/draw_rooms.py` writes the file; with `--check` it fails if the file is
not what it would write.
"""

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

import grimp

from reports.appearance import LIGHT

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "rooms.svg"
LEFT, TOP, WIDTH, HEIGHT, GAP = 240, 56, 740, 62, 14
REACH = 300
"""Pixels that the longest arrow swings out to its side."""

STYLE = f"""
  text {{ font-family: system-ui, sans-serif; fill: {LIGHT["ink"]} }}
  .name {{ font-size: 16px; font-weight: 600 }} .caption, .size {{ font-size: 12px; fill: {LIGHT["soft"]} }}
  .room {{ fill: {LIGHT["panel"]}; stroke: {LIGHT["faint"]}; rx: 6px }}
  .arrow {{ fill: none; stroke: {LIGHT["link"]}; opacity: .45 }} .arrow:hover {{ stroke: {LIGHT["worse"]}; opacity: 1 }}
  .paper {{ fill: {LIGHT["paper"]} }} .tip {{ fill: {LIGHT["link"]}; opacity: .6 }}
"""


class Room(NamedTuple):
    """A package of the contract: where its box is, and how large it is."""

    name: str
    x: float
    y: float
    width: float
    caption: str
    size: str

    @property
    def on_the_left(self) -> bool:
        """Whether another room of the layer is to the right of it."""
        return self.x + self.width < LEFT + WIDTH


def layers() -> list[list[str]]:
    """The layers of the contract, from the top; packages of one layer do not import each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    found = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in found]


def rooms() -> dict[str, Room]:
    """A box for each package, by its dotted name."""
    made = {}
    for row, names in enumerate(layers()):
        width = (WIDTH - GAP * (len(names) - 1)) / len(names)
        for column, name in enumerate(names):
            folder = ROOT / name.replace(".", "/")
            caption = (ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "").splitlines()[0]
            files = [file for file in folder.rglob("*.py") if "scaffold" not in file.parts]
            x, y = LEFT + column * (width + GAP), TOP + row * (HEIGHT + GAP)
            made[name] = Room(name, x, y, width, caption, f"{len(files)} modules")
    return made


def arrows(names: list[str]) -> Counter[tuple[str, str]]:
    """How many modules of one package a package imports from another."""
    graph = grimp.build_graph("harness", "judges", "reports", cache_dir=None)
    room = {module: name for name in names for module in graph.modules if f"{module}.".startswith(f"{name}.")}
    counts: Counter[tuple[str, str]] = Counter()
    for module, home in room.items():
        for imported in graph.find_modules_directly_imported_by(module):
            other = room.get(imported)
            if other is not None and other != home:
                counts[home, other] += 1
    return counts


def picture() -> Iterator[str]:
    """The lines of the SVG."""
    boxes = rooms()
    height = max(room.y for room in boxes.values()) + HEIGHT + 50
    width = LEFT + WIDTH + REACH + 30
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" role="img" aria-label="Rooms">'
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="paper" width="{width}" height="{height:g}"/>'
    yield f'<text class="name" x="{LEFT}" y="32">A room imports only from the rooms below it</text>'
    farthest = height - TOP
    for (home, other), count in sorted(arrows(list(boxes)).items()):
        # Arrows of a room that has another to its right are drawn on the left side.
        side = -1 if boxes[home].on_the_left or boxes[other].on_the_left else 1
        x = LEFT if side < 0 else LEFT + WIDTH
        y1, y2 = boxes[home].y + HEIGHT / 2 - 6, boxes[other].y + HEIGHT / 2 + 6
        swing = x + side * (24 + REACH * (y2 - y1) / farthest)
        path = f"M {x} {y1:.0f} C {swing:.0f} {y1:.0f} {swing:.0f} {y2:.0f} {x} {y2:.0f}"
        # In three steps, so that the picture changes when the structure does and not with every import.
        width = 1 if count < 10 else 2 if count < 50 else 4
        yield f'<path class="arrow" stroke-width="{width}" d="{path}"><title>{home} imports from {other}</title></path>'
        yield f'<circle class="tip" cx="{x}" cy="{y2:.0f}" r="3"/>'
    for room in boxes.values():
        yield f'<rect class="room" x="{room.x:g}" y="{room.y:g}" width="{room.width:g}" height="{HEIGHT}"/>'
        yield f'<text class="name" x="{room.x + 14:g}" y="{room.y + 24:g}">{room.name.replace(".", "/")}</text>'
        end = f'x="{room.x + room.width - 14:g}" y="{room.y + 24:g}" text-anchor="end"'
        yield f'<text class="size" {end}>{room.size}</text>'
        yield f'<text class="caption" x="{room.x + 14:g}" y="{room.y + 46:g}">{escape(_short(room))}</text>'
    yield f'<text class="caption" x="{LEFT}" y="{height - 18:g}">Arrows are wider from 10 and from 50 imports.</text>'
    yield "</svg>"


def _short(room: Room) -> str:
    """The caption, as much of it as fits the box."""
    limit = int(room.width / 7)
    return room.caption if len(room.caption) <= limit else f"{room.caption[: limit - 1].rstrip()}…"


def main() -> int:
    """Write the picture, or compare it with what is there."""
    made = "\n".join(picture()) + "\n"
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(made)
        return 0
    if PICTURE.is_file() and PICTURE.read_text() == made:
        return 0
    print(f"{PICTURE.relative_to(ROOT)} is not what the import graph shows; run `make architecture`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
