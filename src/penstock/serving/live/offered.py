"""The live queries that a gateway offers, and who may follow them."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus

import msgspec
from starlette.types import Scope

from penstock.core.feeds.shared import SharedQuery, shared_query
from penstock.core.graph.gateway import Gateway
from penstock.serving.http.guard import caller_of
from penstock.serving.http.problems import Problem
from penstock.serving.http.rights import require_right
from penstock.serving.live.following import Following

__all__ = ["Offered"]


class Offered:
    """The live queries of a gateway by their names."""

    def __init__(self, gateway: Gateway, followings: Mapping[str, Following]) -> None:
        self._gateway = gateway
        self._followings = followings

    def find(self, name: str, scope: Scope) -> Following:
        """Return live queries that the caller may use; a Problem where there are none."""
        known = self._followings
        if not name and len(known) == 1:
            name = next(iter(known))
        if name not in known:
            text = f"this gateway has no live queries {name!r}" if name else "name the live queries"
            allowed = ", ".join(sorted(known))
            raise Problem(HTTPStatus.NOT_FOUND, "live.unknown", text, allowed=allowed)
        require_right(scope, self._gateway, name)
        return known[name]

    def query(self, following: Following, raw: msgspec.Raw, scope: Scope) -> SharedQuery:
        """Return what a client asks for, of the rows that the caller may see."""
        claims = caller_of(scope).claims
        return shared_query(bytes(raw).decode(), rule=following.live.rule, claims=claims)

    def stale_seconds(self, names: Iterable[str]) -> float | None:
        """Return how old what is known of some of them may be; None: not known."""
        ages = [self._followings[name].stale_seconds for name in names]
        known = [age for age in ages if age is not None]
        return max(known, default=0.0) if len(known) == len(ages) else None
