"""What is kept on disk: the content-addressed store, SQLite files and locks."""
