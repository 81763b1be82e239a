"""The command line: one subcommand per stage of the workflow, named as its rule."""

import os
import shlex
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


for _stages in ("corpus", "mapping", "ngram", "classes", "neural", "scores", "report", "doctor"):
    import_module(f"nplm.cli.{_stages}")


def main() -> None:
    """Run the command line; an InputError ends it with one line on standard error and exit status 1.

    Where the output goes to a file or a pipe, its first line is the command, so that a log shows what to type.
    """
    if len(sys.argv) > 2 and not sys.stdout.isatty() and os.environ.get("PMI_RANK", "0") == "0":
        print("nplm", shlex.join(sys.argv[1:]), flush=True)
    try:
        app()
    except InputError as error:
        print(f"nplm: error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
