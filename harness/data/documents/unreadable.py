"""The error of a file that is not what its suffix says."""


class UnreadableError(Exception):
    """A file is damaged, protected or of another kind; the message says which."""
