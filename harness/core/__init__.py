"""Records, rankings, errors, text files, strict YAML and progress. Uses neither the network nor the store."""
