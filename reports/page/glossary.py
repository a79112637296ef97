"""What the words of the page mean."""

GLOSSARY = """\
mean            over all queries that can have a value
95 % interval   of the mean: by resampling documents with their queries
difference      to the baseline, query by query; its interval holds for all trials of the table at once
p               chance of such a difference, or a greater one on any trial, if no trial differed from the baseline
verdict         better or worse where p is up to .05, else cannot tell
beyond …        whether the difference surely exceeds the experiment's margin, or surely does not
needed          queries like these that would show a difference of the experiment's `effect` in 80 % of cases
P(best)         share of resamples in which the trial has the highest mean
lost mostly     what became of most of the evidence that the metric does not see
tokens          of the whole selection, contexts included, on average
"""
