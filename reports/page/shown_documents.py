"""The documents that the query explorer shows: the corpus, and what other systems returned that is not in it."""

from collections.abc import Sequence

import numpy as np

from harness.core.records import Document, Ints
from harness.data.corpus import Documents, Extended
from harness.running.session import Session


def shown_documents(session: Session, trials: Sequence[int]) -> tuple[Documents, dict[int, Ints]]:
    """The corpus, followed by the passages of other systems that are not in it.

    For each trial of such a system, also the numbers that its documents have among these, by those of its own.
    """
    corpus = session.outputs(session.trials[0]).data.documents
    others: dict[str, Document] = {}
    numbers: dict[int, Ints] = {}
    for at in trials:
        outputs = session.outputs(session.trials[at])
        own = outputs.stages.chunks.documents(outputs.work)
        if len(own) > len(corpus):
            added = own[len(corpus) :]
            others |= {doc.id: doc for doc in added}
            place = {name: len(corpus) + number for number, name in enumerate(others)}
            numbers[at] = np.array([*range(len(corpus)), *(place[doc.id] for doc in added)])
    return Extended(corpus, list(others.values())) if others else corpus, numbers
