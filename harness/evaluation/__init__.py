"""Retrieval metrics, and the statistics to compare them."""
