"""How the states of a service lie on its changelog: under the key, or entry by entry.

Both kinds of places are bytes, and those of the one read as those of the other. So the changelog
says which they are: a state that became a map under its old name would be empty, and nobody told.
"""

from collections.abc import Iterable, Mapping

import msgspec

from penstock.core.graph.state import StateKind, StateSpec
from penstock.errors import ConfigurationError
from penstock.services.state.codec import RENAME_HINT

__all__ = ["Layout"]

_LAID: Mapping[StateKind, str] = {"value": "value", "list": "value", "map": "map"}
_WORDS = {"value": "one value for each key", "map": "a map for each key"}


class Layout:
    """The states as they are declared, and as the changelog knows them; removed ones included."""

    def __init__(self, specs: Iterable[StateSpec], *, changelog: str) -> None:
        self._declared = {spec.name: _LAID[spec.kind] for spec in specs}
        self._known: dict[str, str] = {}
        self._changelog = changelog

    def load(self, kept: bytes) -> None:
        """Hear how the states lie on the changelog.

        ConfigurationError ``state.unreadable`` where one lies otherwise than it is declared.
        """
        self._known = msgspec.json.decode(kept, type=dict[str, str])
        for name, declared in self._declared.items():
            known = self._known.get(name, declared)
            if known != declared:
                raise ConfigurationError(
                    f"the state {name!r} cannot be restored: {self._changelog} holds "
                    f"{_WORDS.get(known, known)}, and it is declared as {_WORDS[declared]}",
                    code="state.unreadable",
                    hint=RENAME_HINT,
                )

    def dump(self) -> bytes:
        """Return how all states lie that the changelog may hold."""
        return msgspec.json.encode(self._known | self._declared, order="sorted")
