"""Messages of errors about experiment files."""

import re


def without_line(message: object) -> str:
    """The message without the number of the line: `x.yaml:3: grid: …` becomes `x.yaml: grid: …`."""
    return re.sub(r"(\.yaml):[0-9]+: ", r"\1: ", str(message))
