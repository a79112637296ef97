"""What the exit code says, everywhere.

0    fine
1    the answer is "worse" or "invalid", and nothing else
2    wrong usage or input, in one line
3    cannot tell: too many judgments are missing
70   a bug of the harness or of a component, with its traceback
130  stopped (Ctrl-C)
"""

OK, INVALID, USAGE, CANNOT_TELL, CRASHED, STOPPED = 0, 1, 2, 3, 70, 130
