"""How a long training shows itself: a bar on a terminal, a line now and then in a log."""

import sys
import time


class LogMonitor:
    """Lines on standard output, at most one about examples every `interval` seconds."""

    def __init__(self, interval: float = 30.0) -> None:
        self._interval = interval
        self._last, self._epoch, self._learned = 0.0, None, 0  # when something was said, and of what

    def line(self, text: str) -> None:
        print(text, flush=True)

    def examples(self, epoch: int, learned: int, total: int, train_perplexity: float) -> None:
        now = time.monotonic()
        if epoch != self._epoch:  # what lies between epochs is no training
            self._last, self._epoch, self._learned = now, epoch, learned
        elif now - self._last >= self._interval:
            rate = (learned - self._learned) / (now - self._last)
            self._last, self._learned = now, learned
            self.line(
                f"epoch {epoch}: {learned:,} of {total:,} examples, train perplexity {train_perplexity:.1f}, "
                f"{rate:,.0f} tokens/s"
            )


class TerminalMonitor:
    """A progress bar for the epoch under way; lines scroll by above it."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self._bar = Progress(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._bar.start()
        self._task = self._bar.add_task("starting", total=None)

    def line(self, text: str) -> None:
        self._bar.console.print(text, highlight=False, markup=False)

    def examples(self, epoch: int, learned: int, total: int, train_perplexity: float) -> None:
        description = f"epoch {epoch}, train perplexity {train_perplexity:.1f}"
        self._bar.update(self._task, completed=learned, total=total, description=description)
        if learned == total:
            self._bar.reset(self._task, description=f"epoch {epoch}: validating", total=None)


class SilentMonitor:
    """For the ranks whose words would only repeat those of rank 0."""

    def line(self, text: str) -> None:
        pass

    def examples(self, epoch: int, learned: int, total: int, train_perplexity: float) -> None:
        pass


def monitor_of(rank: int) -> LogMonitor | TerminalMonitor | SilentMonitor:
    """The monitor that suits this rank and its standard output."""
    if rank != 0:
        return SilentMonitor()
    return TerminalMonitor() if sys.stdout.isatty() else LogMonitor()
