"""Records, rankings, errors, text files, strict YAML and progress: no network, no store."""
