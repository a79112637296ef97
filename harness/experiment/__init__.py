"""Trials and experiments, from YAML or Python, and the catalog of components."""
