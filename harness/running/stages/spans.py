"""What a trial ranks: spans of the corpus, which a chunker has cut or another system has returned."""

from abc import abstractmethod

import numpy as np

from harness.core.rankings import Rankings
from harness.core.records import Floats
from harness.data.corpus import Documents
from harness.running.stages.stage import StoredStage
from harness.running.stages.tokenize import Tokenize, TokenMaps
from harness.running.stages.workspace import Workspace


class SpansStage(StoredStage):
    """A stage whose output is a table of spans: arrays `doc`, `start`, `end`, `tokens` and `scale`, (spans,).

    It is ordered by document, then start and end.
    """

    tokens: Tokenize
    parts: int

    def documents(self, work: Workspace) -> Documents:
        """Return the documents that the spans are of."""
        return work.data.documents

    def maps(self, work: Workspace) -> TokenMaps:
        """Return the token maps of these documents."""
        return self.tokens.maps(work)

    @property
    def complete(self) -> bool:
        """Whether the table has all spans that could have been retrieved."""
        return True

    @property
    @abstractmethod
    def uses_models(self) -> bool:
        """Whether models decide where the spans are."""

    def failed(self, work: Workspace) -> list[int]:
        """Return the numbers of the queries that another system did not answer."""
        return []

    def facts(self, work: Workspace) -> dict[str, float]:
        """Return facts about what another system has returned."""
        return {}

    def waited(self, work: Workspace) -> Floats:
        """Return how long a client waited for another system, in milliseconds, where that is known."""
        return np.zeros(0)

    def located(self, work: Workspace) -> Rankings | None:
        """Return what another system has returned for each query; None if the harness searches."""
        return None
