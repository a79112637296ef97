"""Judging the selections of a launch, and comparing judges with people."""
