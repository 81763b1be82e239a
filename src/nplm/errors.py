"""The one exception that is meant for the user's eyes."""


class InputError(Exception):
    """Something the user gave is wrong: the message is one line that names the file, line or value and what to do.

    The command line prints the message alone and exits with status 1; any other exception is a defect and keeps its
    traceback.
    """
