"""Other processes of this machine that work for this one, each at the end of a pipe of its own.

Not a pool with one queue for all: a process that is killed while it writes into a queue leaves the reader waiting for
the rest for ever, where the end of a pipe is seen.
"""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

Other = tuple[BaseProcess, Connection]
"""A process, and this one's connection to it"""


def start_other(target, *arguments) -> Other:
    """A process that runs target(*arguments, connection to this one). Raises OSError where it cannot be started."""
    context = get_context("spawn")
    connection, end = context.Pipe()
    process = context.Process(target=target, args=(*arguments, end), daemon=True)
    process.start()
    end.close()  # so that nobody holds it once the process has ended
    return process, connection


def kill_others(others: Iterable[Other]) -> None:
    """End the processes, whatever they are doing."""
    for process, connection in others:
        process.kill()
        process.join()
        connection.close()


def how_ended(process: BaseProcess) -> str:
    """How a process that is no more has ended, such as "by SIGKILL"."""
    status = process.exitcode
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Signals that would stop this thread arrive after the context; in processes that start in it, never."""
    resource_tracker.ensure_running()  # which would unblock them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
