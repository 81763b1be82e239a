"""A headless Chromium for tests, spoken to over a pipe by the DevTools protocol: no driver, no port, no package."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """Path of an installed browser, None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def started(profile: Path) -> Iterator["Browser"]:
    """A browser with an empty profile in a folder of its own; it is gone at the end."""
    to_browser, writing = os.pipe()
    reading, from_browser = os.pipe()

    def join() -> None:  # the browser reads from descriptor 3 and writes to 4
        os.dup2(to_browser, 30)
        os.dup2(from_browser, 31)
        os.dup2(30, 3)
        os.dup2(31, 4)

    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    process = subprocess.Popen(
        [find(), *options, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=join,
        close_fds=False,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(reading, writing)
    finally:
        process.terminate()
        process.wait(timeout=30)
        os.close(reading)
        os.close(writing)


class Browser:
    """One page. `complaints` are the errors and warnings of its console, and what it could not load."""

    def __init__(self, reading: int, writing: int, timeout: float = 60.0) -> None:
        self._reading, self._writing, self._timeout = reading, writing, timeout
        self._buffer, self._calls, self._session = b"", 0, None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, width: int, height: int = 900, mobile: bool = False) -> None:
        """Load a file at a width in CSS pixels and wait until it is there."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self._loaded = False
        self.call("Page.navigate", url=path.absolute().as_uri())
        while not self._loaded:
            self._receive()

    def evaluate(self, expression: str) -> object:
        """The value of a JavaScript expression on the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """The whole page, not only what the window shows, as PNG."""
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(image))

    def call(self, method: str, **parameters: object) -> dict:
        """A command of the DevTools protocol; its result."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == message["id"]:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _receive(self) -> dict:
        until = time.monotonic() + self._timeout
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reading], [], [], max(0, until - time.monotonic()))
            assert ready, f"the browser said nothing for {self._timeout} seconds"
            part = os.read(self._reading, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, about: dict) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(about["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(about["args"]))
        elif event == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(str(about["entry"]))
        elif event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
