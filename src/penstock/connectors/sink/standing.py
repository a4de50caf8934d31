"""Where the outside system of a sink stands against the log that the sink reads; no I/O."""

from collections.abc import Mapping

from penstock.errors import ConfigurationError

__all__ = ["require_same_log"]


def require_same_log(
    topic: str, written: Mapping[int, int], ends: Mapping[int, tuple[int, int]]
) -> None:
    """Raise ConfigurationError ``sink.beyond-end`` if more was written than the log ever had.

    Then its topic was created again: what is on it now would be left out as if it were written.
    ``written`` holds the position of each partition, ``ends`` where its log begins and ends. A new
    topic that has grown beyond the end of the old one cannot be told from it.
    """
    beyond = {
        number: position
        for number, position in sorted(written.items())
        if position > ends.get(number, (0, 0))[1]
    }
    if not beyond:
        return
    details = [
        f"{topic}[{number}] ends at offset {ends.get(number, (0, 0))[1]}, written up to {position}"
        for number, position in beyond.items()
    ]
    raise ConfigurationError(
        f"the sink has written records that {topic} does not have: it was created again",
        code="sink.beyond-end",
        detail="\n  ".join(details),
        hint="move what was written elsewhere, or give the sink another place: it starts anew",
    )
