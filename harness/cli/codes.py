"""What the exit code says, everywhere: fine, the answer is "worse" or "invalid", wrong usage or input, cannot tell."""

OK, INVALID, USAGE, CANNOT_TELL = 0, 1, 2, 3
