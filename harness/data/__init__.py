"""Data sets: the format, importers, checks, generated queries and annotation."""
