"""The seconds of a training by phase of the update."""

import time
from collections import defaultdict

import torch


class PhaseSeconds(defaultdict):
    """Seconds by phase: each `lap` gives the time since the one before to the phase it names."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__(float)
        # A GPU works on after the call that asked it to; its time belongs to the phase that asked.
        self._wait = torch.cuda.synchronize if device == "cuda" else None
        self._last = time.perf_counter()

    def start(self) -> None:
        """Count from here."""
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """Give the time since the last `lap` or `start` to this phase."""
        if self._wait:
            self._wait()
        now = time.perf_counter()
        self[phase] += now - self._last
        self._last = now
