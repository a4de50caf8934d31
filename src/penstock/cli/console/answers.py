"""A document as the answer to a question, and as a stream that tells it again and again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, TypeAlias

from penstock.errors import ConfigurationError, PenstockError
from penstock.serving.desk.offers import Asked, Event, Question, Stream, reply_json
from penstock.serving.http.problems import Problem, problem_of

__all__ = ["Document", "answering", "telling", "watching"]

_AGAIN_SECONDS = 2.0

Document: TypeAlias = Callable[[Asked], Any]
"""Makes what is told from what was asked."""


def answering(tell: Document) -> Question:
    """Return the question that a document answers."""

    def answer(asked: Asked) -> Any:
        with _told_to_operators():
            return reply_json(tell(asked))

    return answer


def watching(tell: Document, pause: Callable[[], float]) -> Stream:
    """Return the stream that tells a document, and again after each pause.

    What goes wrong is told as an event ``trouble``, and the stream goes on.
    """

    def stream(asked: Asked) -> Iterator[Event]:
        while not asked.stop.is_set():
            try:
                with _told_to_operators():
                    event = Event("now", tell(asked))
            except Problem as problem:
                event = Event("trouble", problem.document())
            except PenstockError as error:
                event = Event("trouble", problem_of(error).document())
            yield event
            asked.stop.wait(pause())

    return stream


def telling(stream: Stream) -> Stream:
    """Return a stream that tells what goes wrong as an event ``trouble``, and begins again."""

    def told(asked: Asked) -> Iterator[Event]:
        while not asked.stop.is_set():
            try:
                with _told_to_operators():
                    yield from stream(asked)
            except Problem as problem:
                yield Event("trouble", problem.document())
            except PenstockError as error:
                yield Event("trouble", problem_of(error).document())
            asked.stop.wait(_AGAIN_SECONDS)

    return told


@contextmanager
def _told_to_operators() -> Iterator[None]:
    """Tell what a configuration lacks: whoever asks here is the operator."""
    try:
        yield
    except ConfigurationError as error:
        missing = error.code.endswith(".missing")
        status = HTTPStatus.NOT_FOUND if missing else HTTPStatus.CONFLICT
        raise Problem(status, error.code, error.message, hint=error.hint) from error
