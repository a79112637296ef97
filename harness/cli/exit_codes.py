"""Exit codes of all commands.

0    success
1    the verdict is "worse" or "invalid"; used for nothing else
2    wrong usage or input, with one line on stderr
3    cannot tell: too many judgments are missing
70   a bug of the harness or of a component, with a traceback
130  stopped (Ctrl-C)
"""

OK, INVALID, USAGE, CANNOT_TELL, CRASHED, STOPPED = 0, 1, 2, 3, 70, 130
