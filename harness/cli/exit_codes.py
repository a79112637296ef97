"""Exit codes of all commands.

0    success
1    the verdict is "worse" or "invalid"; used for nothing else
2    wrong usage or input, with one line on stderr
3    cannot tell: `run`, `compare` and `report` if a mean is withheld because too many judgments are missing;
     `gate` also if today is neither certainly as good as the baseline nor certainly worse
70   a bug of the harness or of a component, with a traceback
130  stopped (Ctrl-C)
"""

OK, INVALID, USAGE, CANNOT_TELL, CRASHED, STOPPED = 0, 1, 2, 3, 70, 130
