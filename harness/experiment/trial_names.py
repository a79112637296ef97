"""How trials differ: the params that vary, a label for each slot, and short trial names built from the labels."""

from collections.abc import Mapping, Sequence

SLOTS = ("chunker", "augmenter", "embedder", "retriever", "selector")

Params = Mapping[str, str]


def varied(every: Sequence[Params]) -> list[str]:
    """The names of the params that differ between the trials that have them, in order of appearance.

    A trial without vector search has embedder "none", which follows from its retriever and does not count.
    """
    values: dict[str, set[str]] = {}
    for params in every:
        for key, value in params.items():
            if slot_of(key) != "embedder" or params["embedder"] != "none":
                values.setdefault(key, set()).add(value)
    return [key for key, found in values.items() if len(found) > 1]


def slot_of(key: str) -> str:
    """The slot that a param belongs to; an empty string if there is none."""
    slot = key.partition(".")[0]
    return slot if slot in SLOTS else ""


def labels(every: Sequence[Params]) -> list[dict[str, str]]:
    """For each trial, a label for each slot that varies: `{"chunker": "fixed size=128", "retriever": "dense"}`.

    A label lists the settings that differ between trials with the same component. Params without a slot are under "".
    """
    keys = varied(every)
    by_slot = {slot: [key for key in keys if slot_of(key) == slot] for slot in (*SLOTS, "")}
    return [
        {
            slot: _label(slot, params, own, every)
            for slot, own in by_slot.items()
            if own and (not slot or slot in params)
        }
        for params in every
    ]


def _label(slot: str, params: Params, keys: Sequence[str], every: Sequence[Params]) -> str:
    peers = [other for other in every if other.get(slot) == params.get(slot)]
    differing = [key for key in keys if key != slot and key in params and len({p.get(key) for p in peers}) > 1]
    words = [f"{key.rpartition('.')[2]}={params[key]}" for key in differing]
    return " ".join([params[slot], *words] if slot else words)


def _components(params: Params) -> str:
    """The name of a trial with nothing to compare it with: what it cuts, adds to chunks, and retrieves with."""
    return " · ".join(params[slot] for slot in ("chunker", "augmenter", "retriever") if params.get(slot) != "none")


def names(every: Sequence[Params]) -> list[str]:
    """A short name for each trial, built from the params that vary; duplicate names are numbered.

    >>> names([{"chunker": "fixed", "chunker.size": size} for size in ("128", "256")])
    ['fixed size=128', 'fixed size=256']
    >>> names([{"chunker": "fixed", "augmenter": "none", "retriever": "bm25"}])
    ['fixed · bm25']
    """
    made = [" · ".join(filter(None, text.values())) for text in labels(every)]
    made = [name or _components(params) for name, params in zip(made, every, strict=True)]
    return [name if made.count(name) == 1 else f"{name} #{made[:at].count(name) + 1}" for at, name in enumerate(made)]
