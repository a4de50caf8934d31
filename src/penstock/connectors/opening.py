"""Connections are opened whole or not at all, and parts of the other kind are refused."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError

__all__ = ["closed_on_failure", "sink_of", "source_of", "what_was_written"]


class _Closable(Protocol):
    def close(self) -> None: ...


class _Positioned(_Closable, Protocol):
    def positions(self) -> Mapping[int, int]: ...


T = TypeVar("T", bound=_Closable)


@contextmanager
def closed_on_failure(opened: T) -> Iterator[T]:
    """Give what was opened; close it if the block fails."""
    try:
        yield opened
    except BaseException:
        opened.close()
        raise


def sink_of(part: Sink | Source) -> Sink:
    """Return a part that is a sink; ConfigurationError for a source."""
    if isinstance(part, Source):
        raise ConfigurationError(f"{part.name} is no sink", code="connector.refused")
    return part


def source_of(part: Sink | Source) -> Source:
    """Return a part that is a source; ConfigurationError for a sink."""
    if isinstance(part, Sink):
        raise ConfigurationError(f"{part.name} is no source", code="connector.refused")
    return part


def what_was_written(writer: _Positioned) -> str:
    """Return in words what a writer finds that was written, and close it."""
    try:
        written = sum(writer.positions().values())
    finally:
        writer.close()
    return f"it answers; {written} records were written so far"
