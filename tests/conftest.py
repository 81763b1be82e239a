"""What all tests share: how hypothesis runs."""

from hypothesis import settings

# No deadline: how long an example takes depends on what else the machine does.
# The same examples every time: a test that fails does so because of a change, not by the draw.
settings.register_profile("nplm", deadline=None, derandomize=True)
settings.load_profile("nplm")
