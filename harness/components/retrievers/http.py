"""Retrieval by a service of the user's own, over HTTP."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from harness.components.component import Positive, runtime
from harness.components.roles import Exchange, PassageService, SystemAnswer, SystemHit
from harness.components.roles.passage_retriever import finite, rising
from harness.core.errors import ConfigError
from harness.core.records import Returned, Vectors
from harness.core.secrecy import address_fault, bare_address, holds_credentials, learn
from harness.llm.blocking import blocking
from harness.llm.endpoint import Endpoint, Request
from harness.llm.transport import Refused, safe

_FIELDS = ("text", "doc", "start", "end", "score", "id")


@dataclass(frozen=True)
class Http(PassageService):
    """A search service of your own: its answer is JSON with a list of passages, best first.

    `body` is sent as JSON (with POST), `params` after the `?`; in their texts, `{query}` stands for the query,
    `{query:json}` for the query in quotation marks, escaped, and `{k}` for `depth`. `headers` names the environment
    variables that hold the values of headers. `passages` is the JMESPath of the list in the answer; `text`, `doc`,
    `start`, `end`, `score` and `id` are those of each field in a passage, empty if there is none; `text`, or `doc` with
    `start` and `end`, is needed. `doc` is a document's id in the corpus, `start` and `end` are offsets in characters.
    `release` is yours: change it when the service changes, and it is asked again.
    """

    url: str
    passages: str = "passages"
    text: str = "text"
    doc: str = ""
    start: str = ""
    end: str = ""
    score: str = ""
    id: str = ""
    method: Literal["POST", "GET"] = "POST"
    body: Mapping[str, Any] = field(default_factory=lambda: {"query": "{query}", "k": "{k}"}, hash=False)
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    release: str = ""
    depth: Positive = 10
    concurrency: Positive = runtime(8)
    timeout: Annotated[float, Field(gt=0)] = runtime(30.0)
    retries: Annotated[int, Field(ge=0)] = runtime(4)

    def problem(self) -> str | None:
        """An error message if the address, a path or the name of a variable is malformed, or the query is not sent."""
        fault = address_fault(self.url)
        if fault:
            return f"url: {fault.replace('/v1', '/search')}; what comes after the ? belongs into `params`"
        if holds_credentials(self.url):
            return "url: holds a user, a password or a key, which would be logged; send it in a header"
        for name in ("passages", *_FIELDS):
            fault = _path_fault(getattr(self, name))
            if fault:
                return f"{name}: {fault}"
        if not self.text and not (self.doc and self.start and self.end):
            return "text: is needed, or doc, start and end"
        for header, variable in self.headers.items():
            if not header or not all(one.isascii() and (one.isalnum() or one in "-_") for one in header):
                return f"headers: {header!r} is not the name of a header"
            if not (variable.isascii() and variable.isidentifier()):
                return f"headers.{header}: expected the name of an environment variable that holds the value"
        if _filled(self._template, "one query", 1) == _filled(self._template, "another", 1):
            return f'{"params" if self.method == "GET" else "body"}: does not send the query; write "{{query}}" in it'
        return None

    @property
    def _template(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return (self.params, {} if self.method == "GET" else self.body)

    def ask(self, queries: Sequence[str], vectors: Vectors | None, done: Callable[[int, SystemAnswer], None]) -> None:
        """Send a request for each query. Raises ConfigError if the variable of a header is not set."""

        def report(at: int, content: Any, attempts: Sequence[float]) -> None:
            done(at, self._answer(content, attempts))

        self._send(queries, report)

    def exchange(self, query: str, vector: Vectors | None) -> Exchange:
        """Send one request. Raises ConfigError if the variable of a header is not set."""
        found: list[tuple[Any, Sequence[float]]] = []
        self._send([query], lambda _, content, attempts: found.append((content, attempts)))
        request = self.request(query, {})
        sent = {"method": request.method, "url": self.where, "headers": dict(self.headers)}
        sent |= {name: value for name, value in (("params", request.params), ("body", request.body)) if value}
        ((content, attempts),) = found
        received = {"error": content.detail} if isinstance(content, Refused) else content
        return Exchange(sent, received, self._answer(content, attempts))

    def _send(self, queries: Sequence[str], done: Callable[[int, Any, Sequence[float]], None]) -> None:
        """Send a request for each query; `done` gets the JSON of each response, or why there is none, and how long
        each attempt took.
        """
        headers = {header: self._secret(header, variable) for header, variable in self.headers.items()}
        requests = [self.request(query, headers) for query in queries]
        blocking(Endpoint(self.concurrency, self.timeout, self.retries).ask(requests, done))

    def _answer(self, content: Any, attempts: Sequence[float]) -> SystemAnswer:
        ms, requests = sum(attempts) if attempts else math.nan, len(attempts)
        try:
            if isinstance(content, Refused):
                raise content
            return SystemAnswer(self.read(content), ms=ms, requests=requests)
        except Refused as refused:
            return SystemAnswer(failure=refused.detail, ms=ms, requests=requests)

    def _secret(self, header: str, variable: str) -> str:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ConfigError(f"retriever http: headers.{header}: the environment variable {variable} is not set")
        if not all(" " <= one <= "~" for one in value):
            message = f"the environment variable {variable} has a character that no header may have"
            raise ConfigError(f"retriever http: headers.{header}: {message}")
        for word in value.split():
            learn(word)
        return value

    def request(self, query: str, headers: Mapping[str, str]) -> Request:
        """Return the request for a query."""
        params, body = (_filled(template, query, self.depth) for template in self._template)
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in params.items()}
        return Request(self.method, self.url, headers, texts, body if self.method == "POST" else None)

    def read(self, answer: Any) -> tuple[SystemHit, ...]:
        """Return the passages of an answer. Raises Refused if it has none where they should be, or odd ones."""
        listed = _found(self.passages, answer)
        if not isinstance(listed, list):
            shown = safe(str(answer))[:80]
            raise Refused("server", f"the answer has no list at `{self.passages}`: {shown}", answered=True)
        if len(listed) > self.depth:
            message = f"the answer has {len(listed)} passages, but {self.depth} were asked for"
            raise Refused("server", f"{message}; send {{k}} to the service, or set depth", answered=True)
        hits = tuple(self._hit(at, one) for at, one in enumerate(listed))
        at = rising(hits)
        if at is not None:
            message = f"passage {at + 1} has a higher score than passage {at}; leave `score` out if less is better"
            raise Refused("server", message, answered=True)
        return hits

    def _hit(self, at: int, record: Any) -> SystemHit:
        values = {name: _found(getattr(self, name), record) if getattr(self, name) else None for name in _FIELDS}

        def odd(name: str, expected: str) -> Refused:
            shown = safe(str(values[name]))[:40]
            return Refused("server", f"passage {at + 1}: expected {expected} at `{getattr(self, name)}`, got {shown}")

        for name in ("text", "doc"):
            if values[name] is not None and not isinstance(values[name], str):
                raise odd(name, "a text")
        for name in ("start", "end"):
            if values[name] is not None and type(values[name]) is not int:
                raise odd(name, "a number of characters")
        score = finite(values["score"])
        if self.score and score is None:
            raise odd("score", "a number")
        passage = Returned(values["text"] or "", values["doc"], values["start"], values["end"])
        if not passage.text.strip() and None in passage[1:]:
            raise odd("text", "the text of the passage")
        number = values["id"]
        return SystemHit(passage, score, "" if number is None else str(number))

    @property
    def where(self) -> str:
        """The address without credentials, for messages."""
        return bare_address(self.url)


def _filled(template: Any, query: str, k: int) -> Any:
    """A template with the query and the number of passages in the place of their names."""
    if isinstance(template, Mapping):
        return {name: _filled(value, query, k) for name, value in template.items()}
    if isinstance(template, list | tuple):
        return [_filled(value, query, k) for value in template]
    if template == "{k}":
        return k
    if not isinstance(template, str):
        return template
    quoted = json.dumps(query, ensure_ascii=False)
    # What is replaced is not looked at again: the query may contain such a name itself.
    parts = template.replace("{k}", str(k)).split("{query:json}")
    return quoted.join(part.replace("{query}", query) for part in parts)


def _found(path: str, value: Any) -> Any:
    import jmespath

    try:
        return jmespath.search(path, value)
    except jmespath.exceptions.JMESPathError as error:
        raise Refused("server", f"`{path}`: {' '.join(str(error).split())[:100]}", answered=True) from None


def _path_fault(path: str) -> str | None:
    import jmespath

    try:
        if path:
            jmespath.search(path, None)
    except jmespath.exceptions.JMESPathTypeError:
        return None  # a function that has nothing to work on yet
    except jmespath.exceptions.JMESPathError as error:
        return f"is not a JMESPath: {' '.join(str(error).split())[:100]}"
    return None
