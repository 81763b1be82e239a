"""The command line: one subcommand per stage of the workflow, named as its rule."""

import os
import re
import shlex
import signal
import sys
from importlib import import_module

import typer

from nplm import __version__
from nplm.errors import InputError

app = typer.Typer(
    help="Bengio et al. 2003, A Neural Probabilistic Language Model: each stage of the workflow, by hand.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        print(f"nplm {__version__}")
        raise typer.Exit


for _stages in ("corpus", "mapping", "ngram", "classes", "models", "scores", "report", "doctor"):
    import_module(f"nplm.cli.{_stages}")


_VISIBLE = {code: repr(chr(code))[1:-1] for code in (*range(32), 127)}
"""control characters, which a file's name may hold -> how they are written"""


def main() -> None:
    """Run the command line; an InputError ends it with one line on standard error and exit status 1.

    Where the output goes to a file or a pipe, its first line is the command, so that a log shows what to type.
    """
    sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be UTF-8
    if threads := os.environ.get("OMP_NUM_THREADS"):
        os.environ.setdefault("NUMBA_NUM_THREADS", threads)  # or numba takes every core where Snakemake allows fewer
    rank = os.environ.get("PMI_RANK")
    if rank is None:  # a rank of MPI that ended in good order would wait for the others
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as the shell has it, and no file is left half-written
    if len(sys.argv) > 2 and not sys.stdout.isatty() and rank in (None, "0"):
        print("nplm", shlex.join(sys.argv[1:]), flush=True)
    try:
        if any(re.fullmatch(r"(--[\w-]+=)?", argument) for argument in sys.argv[1:]):
            raise InputError("an argument is empty; give it a value, or leave its option out")  # a path would be "."
        app()
    except InputError as error:
        print(f"nplm: error: {error}".translate(_VISIBLE), file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        print("nplm: error: not enough memory for these sizes; lower them, or take a larger machine", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
