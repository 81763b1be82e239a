"""The files that a corpus consists of: of a folder in Brown's format, or of paths, folders and globs."""

import os
import re
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path

from nplm.errors import InputError

NOT_TEXT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""in the name of a file: control characters, and what stands for bytes that are not UTF-8"""


def expand_paths(paths: Iterable[str | Path]) -> list[Path]:
    """The files that paths, folders and globs name: in the order given, a glob's own matches sorted by name.

    A folder, named or matched by a glob, stands for all files in it and in its folders, sorted by name; as with globs,
    names that begin with a dot are not taken.
    Raises InputError for what is not there, a folder or glob without a file, a dangling link, what is no regular file,
    a name that is not text, and a file named twice, be it by links or by another way to it.
    """
    files: dict[str, tuple[Path, str]] = {}
    for path in map(str, paths):
        if os.path.exists(path):
            matches = _files_of(Path(path))
        elif has_magic(path):
            matches = (file for match in sorted(glob(path, recursive=True)) for file in _files_of(Path(match)))
        else:
            raise InputError(f"{path}: no such file; correct the path")
        found = list(dict.fromkeys(matches))  # with **, a glob matches a folder and the files in it
        if not found:
            raise InputError(f"{path}: {'matches' if has_magic(path) else 'holds'} no file; correct the path")
        for file in found:
            if NOT_TEXT.search(str(file)):
                raise InputError(f"{str(file)!a}: the name is not UTF-8 or holds a control character; rename the file")
            real = os.path.realpath(file)
            if real in files:
                first, by = files[real]
                raise InputError(f"{file}: is named twice, as {first} (by {by}) and by {path}; name every file once")
            files[real] = (file, path)
    return [file for file, _ in files.values()]


def _files_of(path: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """The path itself or, where it is a folder, the files below it."""
    if os.path.isdir(path):
        if path.resolve() in above:
            raise InputError(f"{path}: is a link to a folder that it stands in; remove it")
        try:
            entries = sorted(path.iterdir())
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}); give a readable folder") from None
        for entry in entries:
            if not entry.name.startswith("."):
                yield from _files_of(entry, (*above, path.resolve()))
    elif not os.path.exists(path):
        raise InputError(f"{path}: is a link to nothing; mend or remove it")
    elif not os.path.isfile(path):
        raise InputError(f"{path}: is no regular file; remove it, or give another path")
    else:
        yield path


def brown_files(folder: str | Path) -> list[Path]:
    """The texts of a folder in Brown's format, ca01 ... cr09, in name order. Raises InputError where there is none."""
    if not os.path.isdir(folder):
        raise InputError(f"{folder}: no such folder; give the folder that holds Brown's files ca01 ... cr09")
    files = sorted(Path(folder).glob("c[a-r][0-9][0-9]"))
    if not files:
        raise InputError(f"{folder}: holds none of Brown's files ca01 ... cr09; give the folder that does")
    return files
