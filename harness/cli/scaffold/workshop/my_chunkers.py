"""A custom chunker, used in experiment.yaml as `my_chunkers.py:ByHeading`."""

import itertools
import re
from dataclasses import dataclass

from harness import Chunker, Document, Spans


@dataclass(frozen=True)
class ByHeading(Chunker):
    """Splits a Markdown document before every heading down to `level`."""

    level: int = 2

    def split(self, doc: Document) -> Spans:
        heads = re.finditer(rf"(?m)^#{{1,{self.level}}} ", doc.text)
        edges = [0, *(head.start() for head in heads if head.start()), len(doc.text)]
        return list(itertools.pairwise(edges))
