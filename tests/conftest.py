"""What all tests share: how hypothesis runs."""

from hypothesis import settings

# No deadline: how long an example takes depends on what else the machine does.
settings.register_profile("nplm", deadline=None)
settings.load_profile("nplm")
