"""The stages of a trial: chunk, embed, retrieve, rerank, select, score."""
