"""Files of text: written so that no partial file ever bears its final name, read with errors that name the place."""

import csv
import errno
import io
import json
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape, glob
from pathlib import Path

from nplm.errors import InputError

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""errors of writing, which name no file"""
csv.field_size_limit(1 << 30)  # a cell may hold a token, and nothing bounds those


@contextmanager
def complete_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block ends without an exception.

    Where `path` is a link, the file that it leads to is replaced. Raises InputError when the file cannot be written:
    before the block runs, unless only writing can tell (a full disk).
    """
    require_writable([path])
    partial = partial_path(path)
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        partial.replace(os.path.realpath(path))
    except OSError as error:
        if str(error.filename) == str(partial) or error.errno in NO_ROOM:
            raise unwritable(path, error) from None
        raise
    finally:
        partial.unlink(missing_ok=True)


def require_writable(outputs: Iterable[str | Path | None], inputs: Iterable[str | Path] = ()) -> None:
    """Raise InputError unless every one of `outputs` can be written; None stands for a file that is not asked for.

    Long work calls this before it starts, with its `inputs`: an output may be none of them, and not another output.
    """
    taken = {os.path.realpath(path): "an input" for path in inputs}
    for path in filter(None, outputs):
        real = os.path.realpath(path)
        if real in taken:
            raise InputError(f"{path}: is {taken[real]} as well; give another file to write")
        taken[real] = "another output"
        if os.path.isdir(path):
            raise InputError(f"{path}: is a folder; give the file to write")
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"{path}: is no regular file, and is not replaced by one; give another file to write")
        partial = partial_path(path)
        try:
            if not partial.parent.exists():
                partial.parent.mkdir(parents=True, exist_ok=True)
            partial.touch()
            partial.unlink()
        except OSError as error:
            raise unwritable(path, error) from None


def partial_path(path: str | Path) -> Path:
    """Where this process makes a file or folder until it is complete: beside it, or beside what a link leads to.

    What processes of this machine left there of it when they were killed is removed.
    """
    path = Path(os.path.realpath(path))
    partial = str(path.with_name(f".{path.name}.partial-{socket.gethostname()}-"))
    for left in glob(escape(partial) + "*"):
        with suppress(OSError, ValueError):
            try:
                os.kill(int(left.removeprefix(partial)), 0)
            except ProcessLookupError:
                shutil.rmtree(left) if os.path.isdir(left) else os.unlink(left)
    return Path(f"{partial}{os.getpid()}")


def unwritable(path: str | Path, error: OSError) -> InputError:
    """The error to raise where writing `path` failed."""
    return InputError(f"{path}: cannot be written ({error.strerror}); give another path, or make this one writable")


def require_file(path: str | Path) -> None:
    """Raise InputError unless there is a regular file, or a link to one, at `path`: a pipe would be waited for."""
    if not os.path.exists(path):
        raise InputError(f"{path}: no such file; make it first, or give another path")
    if not os.path.isfile(path):
        raise InputError(f"{path}: is {'a folder' if os.path.isdir(path) else 'no regular file'}; give a file")


def unreadable(path: str | Path, error: OSError) -> InputError:
    """The error to raise where reading `path` failed."""
    return InputError(f"{path}: cannot be read ({error.strerror}); give a readable file")


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
    """The UTF-8 text of a file. Raises InputError when it is missing, cannot be read or is not UTF-8."""
    require_file(path)
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(path, error) from None
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
