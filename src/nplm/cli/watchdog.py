"""The end of a training whose ranks wait for one another in vain, so that a cluster's next attempt takes it up."""

import faulthandler
import os
import sys
import threading

from nplm.neural.training import Monitor

LOOKS = 10
"""at the progress before the process is given up: one that was suspended for long has missed looks, not made them"""


class Watchdog:
    """Ends this process (status 1, all threads' stacks on standard error) after `minutes` without progress; 0: never.

    Progress is what a watched monitor is told. The process ends without MPI_Finalize, which waits for the other ranks.
    """

    def __init__(self, minutes: float) -> None:
        self._minutes = minutes
        self._signs = 0
        self._ended = threading.Event()
        if minutes:
            threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def watched(self, monitor: Monitor) -> "WatchedMonitor":
        """The monitor, with every call to it a sign of progress."""
        return WatchedMonitor(monitor, self.progress)

    def progress(self) -> None:
        self._signs += 1

    def stop(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        seen, quiet = self._signs, 0
        while not self._ended.wait(60 * self._minutes / LOOKS):
            seen, quiet = self._signs, quiet + 1 if self._signs == seen else 0
            if quiet == LOOKS:
                print(
                    f"nplm: error: no progress for {self._minutes:g} minutes: the ranks wait for one another in vain; "
                    "run the same command again to continue from the last checkpoint, or give more --stall-minutes",
                    file=sys.stderr,
                    flush=True,
                )
                faulthandler.dump_traceback()
                os._exit(1)


class WatchedMonitor:
    """Passes everything on to another monitor."""

    def __init__(self, monitor: Monitor, progress) -> None:
        self._monitor, self._progress = monitor, progress

    def line(self, text: str) -> None:
        self._progress()
        self._monitor.line(text)

    def examples(self, *so_far) -> None:
        self._progress()
        self._monitor.examples(*so_far)
