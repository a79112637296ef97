"""Data sets: the file format, importers, checks, generated queries and annotation."""
