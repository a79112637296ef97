"""Reading the files of an import: errors with their place, progress in bytes, and a record of all files read."""

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.core.columnar import SUFFIXES, columnar_rows
from harness.core.errors import DataError
from harness.core.text_files import (
    COMPRESSED,
    Line,
    bare_name,
    byte_lines,
    decoded,
    json_file,
    json_lines,
    text_lines,
)

Row = dict[str, Any]
"""One record of a table or of a JSON file, by column."""

Rows = Iterable[tuple[Line, Row]]
"""Records with their places."""

csv.field_size_limit(2**31 - 1)


class Source:
    """A folder to import from, or one file; `used` records the files read, in order. Raises DataError if missing.

    `remote` sources are names of data sets elsewhere.
    """

    def __init__(self, path: Path, encoding: str, advance: Callable[[int], None], *, remote: bool = False) -> None:
        if not remote and not path.exists():
            raise DataError(f"{path}: no such file or folder")
        self.path, self._encoding, self._advance = path, encoding, advance
        self.used: dict[str, Path] = {}

    @property
    def folder(self) -> Path:
        """The folder, or the folder of the file."""
        return self.path if self.path.is_dir() else self.path.parent

    def file(self, name: str) -> Path:
        """A file by its path in the folder, or its compressed form. Raises DataError if there is none."""
        for candidate in (name, *(f"{name}{suffix}" for suffix in COMPRESSED)):
            if (self.folder / candidate).is_file():
                return self.folder / candidate
        raise DataError(f"{self.folder / name}: no such file")

    def one(self, what: str, *patterns: str, option: str = "", only: Callable[[Path], bool] | None = None) -> Path:
        """The file itself, or the one file in the folder that matches a pattern and satisfies `only`.

        Raises DataError if there is not exactly one.
        """
        if self.path.is_file():
            return self.path
        found = [path for pattern in patterns for path in self.all(pattern) if only is None or only(path)]
        if len(found) == 1:
            return found[0]
        many = f"{len(found)} files could be {what}: {', '.join(path.name for path in found[:5])}"
        none = f"contains no file ({', '.join(patterns)}) that could be {what}"
        remedy = f"name one with {option}" if option else "name the file itself"
        raise DataError(f"{self.path}: {many if found else none}; {remedy}")

    def all(self, pattern: str) -> list[Path]:
        """The files that match, including compressed ones, sorted by name."""
        return sorted({path for suffix in ("", *COMPRESSED) for path in self.folder.glob(f"{pattern}{suffix}")})

    def text_lines(self, path: Path) -> Iterator[tuple[Line, str]]:
        """The lines of a text file, in the encoding of the source. Raises DataError."""
        return text_lines(self.used_file(path), self._encoding, self._advance)

    def json_lines(self, path: Path) -> Iterator[tuple[Line, Row]]:
        """The objects of a JSONL file. Raises DataError."""
        return json_lines(self.used_file(path), self._advance)

    def json(self, path: Path) -> Any:
        """The value of a JSON file. Raises DataError."""
        return json_file(self.used_file(path), self._advance)

    def whole_text(self, path: Path) -> str:
        """The content of a text file; line ends are kept, as offsets depend on them. Raises DataError."""
        content = b"".join(part for _, part in byte_lines(self.used_file(path), self._advance))
        try:
            return content.decode("utf-8-sig" if self._encoding == "utf-8" else self._encoding)
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not {self._encoding.upper()} (byte {error.start}); see --encoding") from None

    def rows(self, path: Path) -> Iterator[tuple[Line, Row]]:
        """The records of a CSV, TSV, JSONL, Parquet or Arrow file, or of the array in a JSON file. Raises DataError."""
        suffix = bare_name(path).rpartition(".")[2].lower()
        if path.suffix in SUFFIXES:
            return columnar_rows(self.used_file(path), self._advance)
        if suffix in ("csv", "tsv"):
            return self._table(path, "\t" if suffix == "tsv" else ",")
        if suffix == "json" and self._begins_with(path, b"["):
            return self._array(path)
        return self.json_lines(path)

    def _table(self, path: Path, delimiter: str) -> Iterator[tuple[Line, Row]]:
        """Rows as mappings from column to cell; the line number is that of the row's last line."""
        # With their line ends, which may be part of a quoted field.
        parts = byte_lines(self.used_file(path), self._advance)
        lines = (decoded(line, content) for line, content in parts)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            head = next(reader, [])
            if not head:
                raise Line(path, 1).fault("expected a header with column names, got nothing")
            if len(set(head)) < len(head):
                raise Line(path, 1).fault("two columns have the same name")
            for row in reader:
                line = Line(path, reader.line_num)
                if not row:
                    continue
                if len(row) != len(head):
                    raise line.fault(f"expected {len(head)} columns ({', '.join(head)[:80]}), got {len(row)}")
                yield line, dict(zip(head, row, strict=True))
        except csv.Error as error:
            raise Line(path, reader.line_num).fault(f"{error}") from None

    def _array(self, path: Path) -> Iterator[tuple[Line, Row]]:
        value = self.json(path)
        for number, row in enumerate(value, 1):
            line = Line(path, number, f"[{number - 1}]")
            if not isinstance(row, dict):
                raise line.fault(f"expected an object, not {type(row).__name__}")
            yield line, row

    def _begins_with(self, path: Path, start: bytes) -> bool:
        first = next((content for _, content in byte_lines(path) if content.strip(b"\xef\xbb\xbf \t\r\n")), b"")
        return first.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(start)

    def count(self, path: Path) -> None:
        """Count a file that was read by other means towards the progress."""
        self._advance(path.stat().st_size)

    def used_file(self, path: Path) -> Path:
        """The path itself, after recording it in `used`."""
        name = path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else path.name
        self.used[name] = path
        return path
