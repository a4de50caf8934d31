"""What a desk offers: questions with one answer, and streams of events, as plain functions."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from penstock.serving.http.bodies import JSON
from penstock.serving.http.problems import Problem

__all__ = ["Asked", "Event", "Offers", "Question", "Reply", "Stream", "reply_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, as whoever answers it sees it."""

    path: Mapping[str, str] = field(default_factory=dict)
    """What stands in the places of the path."""
    query: Mapping[str, str] = field(default_factory=dict)
    after: str = ""
    """The number of the last event that the caller has seen; empty: it begins."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """What was sent with an action."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set when nobody waits for the answer any more."""

    def number(self, name: str, *, default: int, most: int) -> int:
        """Return a number of the query; a Problem where it is none, or too large."""
        text = self.query.get(name, "")
        if not text:
            return default
        if (
            text.isascii()
            and text.isdecimal()
            and len(text) <= len(str(most))
            and int(text) <= most
        ):
            return int(text)
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "query.wrong",
            f"{name} is {text!r}",
            allowed=f"a number from 0 to {most}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer."""

    body: bytes
    kind: str = JSON
    status: int = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


class Event(NamedTuple):
    """An event of a stream; ``number`` is what a caller resumes from."""

    kind: str
    document: Any
    number: str = ""

    def encoded(self) -> bytes:
        """Return the event as it is sent; JSON has no line ends, so its data is one line."""
        head = f"id: {self.number}\n" if self.number else ""
        data = msgspec.json.encode(self.document, enc_hook=str)
        return f"{head}event: {self.kind}\ndata: ".encode() + data + b"\n\n"


Question: TypeAlias = Callable[[Asked], Reply]
"""Answers, in a thread; what it raises becomes a problem document."""
Stream: TypeAlias = Callable[[Asked], Iterator[Event]]
"""Yields events, in a thread of its own, until ``asked.stop`` is set or it has no more.

It must look at ``asked.stop`` at least every second.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Questions and streams by their paths, such as ``/v1/topics/{name}``.

    ``actions`` answer to POST, and only to those who send the ``key``; without one to nobody.
    """

    questions: Mapping[str, Question] = field(default_factory=dict)
    streams: Mapping[str, Stream] = field(default_factory=dict)
    actions: Mapping[str, Question] = field(default_factory=dict)
    key: str = ""
    files: Path | None = None
    """A directory whose files are served under ``/``, where nothing else is."""

    def __or__(self, other: "Offers") -> "Offers":
        """Return both."""
        return Offers(
            questions={**self.questions, **other.questions},
            streams={**self.streams, **other.streams},
            actions={**self.actions, **other.actions},
            key=other.key or self.key,
            files=other.files or self.files,
        )


def reply_json(document: Any, *, status: int = HTTPStatus.OK) -> Reply:
    """Return a document as JSON."""
    return Reply(body=msgspec.json.encode(document, enc_hook=str), status=status)
