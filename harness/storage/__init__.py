"""Storage on disk: the content-addressed store, SQLite caches, sealed JSON files and locks."""
