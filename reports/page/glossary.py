"""Definitions of the columns of the report's comparison table."""

GLOSSARY = """\
mean            mean over the queries for which the metric is defined
95 % interval   confidence interval of the mean, from a cluster bootstrap (a cluster: a document with its queries)
difference      mean difference to the baseline, paired by query; its 95 % confidence interval is simultaneous over
                all trials of the table
p               p-value of the difference, adjusted for multiple comparisons: the probability that any trial shows a
                difference this large if no trial differs from the baseline
verdict         better or worse if p is at most .05, else cannot tell: not "equal", but undecided by these queries;
                also if there are too few clusters for any test, or a mean is withheld for missing judgments
beyond …        whether the difference is certainly larger than the experiment's margin (yes), certainly not (no), or
                undecided (cannot tell)
needed          number of similar queries needed to detect a difference of the experiment's `effect` with 80 % power
P(best)         fraction of bootstrap resamples in which the trial has the highest mean
lost mostly     the most frequent reason why evidence is missed, with the percentage of all evidence items
tokens          mean number of tokens of the whole selection, including contexts
"""
