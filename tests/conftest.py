"""What all tests share: how hypothesis runs, and how a command line does."""

import sys

import pytest
from hypothesis import settings

from nplm.cli import main

# No deadline: how long an example takes depends on what else the machine does.
settings.register_profile("nplm", deadline=None)
settings.load_profile("nplm")


@pytest.fixture
def run(monkeypatch):
    """A function that runs the command line `nplm ARGUMENTS` in this process and gives its exit status."""

    def status(*arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", ["nplm", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code

    return status
