"""The method of `App` that declares gateways."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from penstock.core.declare.declarations import Declarations
from penstock.core.graph.data import Stream
from penstock.core.graph.gateway import REMEMBERS, Gateway
from penstock.core.options import Options
from penstock.core.place import caller
from penstock.errors import Place, Problem

__all__ = ["DeclaresGateways"]


class DeclaresGateways:
    """Declares gateways, with their options."""

    _declared: Declarations

    def gateway(
        self,
        name: str,
        *,
        takes: Stream[Any] | tuple[Stream[Any], ...] = (),
        roles: Mapping[str, tuple[Any, ...]] | None = None,
        remembers: str | timedelta = REMEMBERS,
    ) -> Gateway:
        """Declare a door over HTTP, through which records come onto streams.

        A record that was acknowledged is on the log. Several processes of a gateway can run beside
        each other. Where it listens, and the tokens of callers, are settings.

        Args:
            name: The name of the gateway; the requests that it remembers belong to it.
            takes: The stream, or the streams in a tuple, that it takes records for.
            roles: For each role what it may use: ``{"meter": (readings,)}``. Without roles, whoever
                has a token may use everything.
            remembers: How long a request with an ``Idempotency-Key`` is not done twice (24 h).

        Examples:
            >>> app.gateway("door", takes=readings).summary
            'gateway, takes readings'
        """
        place = caller()
        options = self._declared.options("gateway", name, place)
        gateway = Gateway(
            name=options.name(name),
            takes=self._streams(name, takes, place),
            roles=_roles(roles, options),
            remembers=options.span("remembers", remembers, REMEMBERS),
            place=place,
        )
        self._declared.parts.append(gateway)
        return gateway

    def _streams(self, name: str, given: Any, place: Place | None) -> tuple[Stream[Any], ...]:
        """Return the streams; report everything else."""
        kept = []
        for each in self._declared.known(name, given, place):
            if isinstance(each, Stream):
                kept.append(each.live)
                continue
            text = f"{name} takes records for {each.name!r}, which is a {each.kind}"
            hint = "take them for a stream, and let a service fill the table"
            self._declared.problems.append(Problem("gateway.takes", text, hint, place))
        return tuple(kept)


def _roles(given: Any, options: Options) -> dict[str, tuple[str, ...]]:
    """Return the roles with the names of what they may use."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        options.wrong("roles", f"{given!r} is no mapping", 'roles={"meter": (readings,)}')
        return {}
    found = {}
    for role, uses in given.items():
        several = uses if isinstance(uses, tuple | list) else (uses,)
        found[str(role)] = tuple(str(getattr(each, "name", each)) for each in several)
    return found
