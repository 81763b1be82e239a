"""Files of text: written so that no partial file ever bears its final name, read with errors that name the place."""

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nplm.errors import InputError


@contextmanager
def complete_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block ends without an exception."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text with LF line ends, all of it or nothing."""
    with complete_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: object) -> None:
    """Write indented JSON (NaN refused), all of it or nothing."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_csv(path: str | Path, rows: Iterable[Mapping[str, object]], columns: Iterable[str]) -> None:
    """Write a header of column names and one line per row, all of it or nothing.

    None is an empty cell; a float is written so that it reads back the same. A row must have exactly these columns.
    """
    columns = list(columns)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        if row.keys() != set(columns):
            raise ValueError(f"row with columns {sorted(row)} in a table of {sorted(columns)}")
        writer.writerow([row[column] for column in columns])
    write_text(path, text.getvalue())


def read_text(path: str | Path) -> str:
    """The UTF-8 text of a file. Raises InputError when it is missing or is not UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise InputError(f"{path}: no such file; make it first, or give another path") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8; convert the file to UTF-8") from None


def read_json(path: str | Path) -> dict:
    """The JSON object in a file. Raises InputError when the file is missing or holds anything else."""
    try:
        value = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}); remove it and make it anew") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: holds a JSON {type(value).__name__} where an object is expected; give another path")
    return value


def read_csv(path: str | Path, columns: Iterable[str] = (), delimiter: str = ",") -> list[dict[str, str]]:
    """The rows of a file whose first line names its columns, every cell as text.

    Raises InputError when the file is missing, lacks one of `columns` or has a line of another length.
    """
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), delimiter=delimiter)
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{path}: has no column '{missing[0]}' in its first line; give another path or add it")
    rows = []
    for row in reader:
        if None in row or None in row.values():
            raise InputError(f"{path}, line {reader.line_num}: has not as many cells as the first line; mend that line")
        rows.append(row)
    return rows
