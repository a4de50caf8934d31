"""What a gateway has while it runs: opened before it serves, looked at, and closed at the end."""

from dataclasses import dataclass

__all__ = ["Fixture", "Trouble"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something does not do all it is for; ``beginning``: because it has only just begun."""

    text: str
    beginning: bool = False


class Fixture:
    """Something that a gateway has; made in its event loop, in which all of this is called."""

    async def look(self) -> Trouble | None:
        """Return what is wrong, and mend what can be; it is called every second."""
        return None

    async def close(self) -> None:
        """End, when no request is under way any more."""
