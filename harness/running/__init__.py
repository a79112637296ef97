"""Run an experiment: sessions, launches, plans, stages and judging."""
