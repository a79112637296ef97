"""`manifest.yaml`: the files of a data set, pinned by sha256, and where they come from."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from harness.core.columnar import SUFFIXES
from harness.core.errors import DataError, did_you_mean
from harness.core.strict_yaml import StrictDumper, load_yaml
from harness.core.text_files import COMPRESSED
from harness.data.remote_files import is_remote, local_path
from harness.storage.files import folder_digest

MANIFEST = "manifest.yaml"
Copies = Literal["credit", "ignore"]
_KEYS = {"name", "description", "licence", "source", "corpus", "queries", "runs", "copies", "imported", "split"}
_FILE_KEYS = {"file", "sha256", "locked", "synthetic"}


@dataclass(frozen=True)
class PinnedFile:
    """A file of the data set and the sha256 it must have: JSON lines, plain, compressed or as Parquet.

    A corpus may also be a folder of such files. `path` is where a file at a `url` is kept on this machine.
    A locked query set is opened only by `run --final`; the queries of a synthetic one were written by a language model.
    """

    path: Path
    sha256: str
    locked: bool = False
    synthetic: bool = False
    url: str = ""

    @property
    def size(self) -> int:
        """The size in bytes, of a folder that of its files; the file must be there."""
        parts = self.path.rglob("*") if self.path.is_dir() else (self.path,)
        return sum(path.stat().st_size for path in parts if path.is_file())


def require_plain(pinned: PinnedFile) -> None:
    """Raise DataError unless the lines of the file can be edited: those of a plain file of the data set."""
    if pinned.url:
        raise DataError(f"{pinned.url}: is at a URL; copy it into the data set, and name the copy in the manifest")
    if pinned.path.suffix in COMPRESSED:
        raise DataError(f"{pinned.path}: is compressed; unpack it, and name the plain file in the manifest")
    if pinned.path.suffix in SUFFIXES:
        raise DataError(f"{pinned.path}: is a table; write it as JSON lines, and name that file in the manifest")


@dataclass(frozen=True)
class Manifest:
    """The contents of `manifest.yaml`.

    `runs` are rankings of other systems (TREC run files); `imported` records the format and the files that the folder
    was imported from, `split` how its queries were split into validation and test. `copies` says whether verbatim
    copies of evidence count as evidence, unless the experiment sets it: `ignore` if every document was judged
    individually, so that scores equal those of trec_eval.
    """

    root: Path
    name: str
    corpus: PinnedFile
    queries: Mapping[str, PinnedFile]
    description: str = ""
    licence: str = ""
    source: str = ""
    runs: Mapping[str, PinnedFile] = field(default_factory=dict)
    imported: Mapping[str, Any] = field(default_factory=dict)
    copies: Copies = "credit"
    split: Mapping[str, Any] = field(default_factory=dict)

    def query_set(self, name: str) -> PinnedFile:
        """The file of a query set. Raises DataError if there is no set of that name, or none at all."""
        if not self.queries:
            message = f"no query set yet; `harness data evidence {self.root} --to {name}` marks evidence and makes it"
            raise DataError(f"{self.root / MANIFEST}: {message}")
        if name not in self.queries:
            close, known = did_you_mean(name, self.queries), ", ".join(self.queries)
            raise DataError(f"{self.root / MANIFEST}: no query set named '{name}'.{close} It has: {known}")
        return self.queries[name]

    def run(self, name: str) -> PinnedFile:
        """The file of another system's run. Raises DataError if there is no run of that name."""
        if name not in self.runs:
            known = f" It has: {', '.join(self.runs)}" if self.runs else ""
            message = f"no run named '{name}'.{did_you_mean(name, self.runs)}{known}"
            raise DataError(f"{self.root / MANIFEST}: {message} Name its file under `runs`, then `harness data pin`")
        return self.runs[name]


def find_dataset(name: str, beside: Path) -> Path:
    """The folder of a data set: a path relative to the experiment file, or a name under a `datasets` folder.

    `datasets` is searched for in the working folder, then in the folder `beside` and its parents. Raises DataError if
    no data set is found.
    """
    direct = (beside / name).resolve()
    roots = [Path.cwd(), beside.resolve(), *beside.resolve().parents]
    candidates = [root / "datasets" / name for root in roots]
    if "/" in name or name.startswith("."):
        candidates = [direct, Path.cwd() / name]
    try:
        found = next((folder for folder in candidates if (folder / MANIFEST).is_file()), None)
    except (OSError, ValueError) as error:
        raise DataError(f"data: {name[:60]!r} cannot be the name of a folder: {error}"[:200]) from None
    if found:
        return found
    near = sorted({path.parent.name for root in roots[:3] for path in root.glob(f"datasets/*/{MANIFEST}")})
    known = f" Found: {', '.join(near)}" if near else ""
    raise DataError(
        f"data: no data set '{name}' ({candidates[0] / MANIFEST} does not exist).{did_you_mean(name, near)}{known}"
    )


def sha256_of(path: Path) -> str:
    """The sha256 of a file in hexadecimal, or of the names and contents of a folder's files.

    Raises DataError if it cannot be read.
    """
    try:
        if path.is_dir():
            return folder_digest(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def read_manifest(root: Path) -> Manifest:
    """The manifest of a data set folder. Raises DataError naming the faulty key. The listed files are not opened."""
    path = root / MANIFEST
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; a data set is a folder with a {MANIFEST}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a mapping with the keys {', '.join(sorted(_KEYS))}")
    for key in content:
        if key not in _KEYS:
            raise DataError(
                f"{path}: unknown key '{key}'.{did_you_mean(str(key), _KEYS)} Keys: {', '.join(sorted(_KEYS))}"
            )
    queries = content.get("queries") or {}
    if not isinstance(queries, dict):
        raise DataError(f"{path}: queries: expected a mapping of query set names to files")
    for key in ("runs", "imported", "split"):
        if not isinstance(content.get(key, {}), dict):
            raise DataError(f"{path}: {key}: expected a mapping")
    for name in (*queries, *content.get("runs", {})):
        if not isinstance(name, str):
            raise DataError(f"{path}: the name {name!r} of a set or run is not text; write it in quotes")
    return Manifest(
        root=root,
        name=_text(path, content, "name", root.name),
        corpus=_pinned(path, "corpus", content.get("corpus")),
        queries={str(name): _pinned(path, f"queries.{name}", entry) for name, entry in queries.items()},
        description=_text(path, content, "description"),
        licence=_text(path, content, "licence"),
        source=_text(path, content, "source"),
        runs={str(name): _pinned(path, f"runs.{name}", entry) for name, entry in content.get("runs", {}).items()},
        imported=content.get("imported", {}),
        copies=_copies(path, content.get("copies", "credit")),
        split=content.get("split", {}),
    )


def write_manifest(manifest: Manifest) -> None:
    """Write `manifest.yaml` with the current hashes of the files. Raises DataError if one cannot be read."""

    def entry(file: PinnedFile) -> dict[str, Any]:
        pinned: dict[str, Any] = {
            "file": file.url or file.path.relative_to(manifest.root).as_posix(),
            "sha256": sha256_of(file.path),
        }
        return pinned | {flag: True for flag in ("locked", "synthetic") if getattr(file, flag)}

    content = {
        "name": manifest.name,
        "description": manifest.description,
        "licence": manifest.licence,
        "source": manifest.source,
        "corpus": entry(manifest.corpus),
    }
    if manifest.queries:
        content["queries"] = {name: entry(file) for name, file in manifest.queries.items()}
    if manifest.runs:
        content["runs"] = {name: entry(file) for name, file in manifest.runs.items()}
    if manifest.copies != "credit":
        content["copies"] = manifest.copies
    if manifest.split:
        content["split"] = dict(manifest.split)
    if manifest.imported:
        content["imported"] = dict(manifest.imported)
    text = yaml.dump(content, Dumper=StrictDumper, sort_keys=False, allow_unicode=True, width=100)
    temporary = manifest.root / f".{MANIFEST}"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(manifest.root / MANIFEST)


def _copies(path: Path, value: Any) -> Copies:
    if value not in ("credit", "ignore"):
        raise DataError(f"{path}: copies: expected credit or ignore, not {value!r}")
    return "ignore" if value == "ignore" else "credit"


def _text(path: Path, content: dict[str, Any], key: str, default: str = "") -> str:
    value = content.get(key, default)
    if not isinstance(value, str):
        raise DataError(f"{path}: {key}: expected text, not {value!r}")
    return value


def _pinned(path: Path, where: str, entry: Any) -> PinnedFile:
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        raise DataError(f"{path}: {where}: expected {{file: NAME}}; `harness data pin` adds its sha256")
    if not isinstance(entry.get("sha256", ""), str):
        raise DataError(f"{path}: {where}.sha256: expected text, not {entry['sha256']!r}")
    remote = is_remote(entry["file"])
    if not remote and ("\0" in entry["file"] or Path(entry["file"]).is_absolute() or ".." in Path(entry["file"]).parts):
        message = "expected a path inside the data set, or a URL"
        raise DataError(f"{path}: {where}.file: {message}, got {entry['file']!r}")
    unknown = set(entry) - _FILE_KEYS
    if unknown:
        known = ", ".join(sorted(_FILE_KEYS))
        raise DataError(f"{path}: {where}: unknown key '{sorted(map(str, unknown))[0]}'. Keys: {known}")
    flags = [entry.get(flag, False) for flag in ("locked", "synthetic")]
    for flag, value in zip(("locked", "synthetic"), flags, strict=True):
        if not isinstance(value, bool):
            raise DataError(f"{path}: {where}.{flag}: expected true or false")
    url = entry["file"] if remote else ""
    file = local_path(url) if remote else path.parent / entry["file"]
    locked, synthetic = flags
    return PinnedFile(file, entry.get("sha256", ""), locked, synthetic, url)
