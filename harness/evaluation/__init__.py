"""Scores of what was retrieved, and what they allow one to say."""
