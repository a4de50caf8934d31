"""The method of `App` that declares gateways."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import PurePath
from typing import Any

from penstock.core.declare.declarations import Declarations
from penstock.core.graph.data import Stream, Table
from penstock.core.graph.gateway import REMEMBERS, Gateway
from penstock.core.graph.parts import Service
from penstock.core.graph.questions import Questions
from penstock.core.grid.livequeries import LiveQueries
from penstock.core.hints import did_you_mean
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
        shows: Table[Any] | Service | tuple[Table[Any] | Service, ...] = (),
        offers: Questions[Any, Any] | tuple[Questions[Any, Any], ...] = (),
        live: LiveQueries | tuple[LiveQueries, ...] = (),
        roles: Mapping[str, tuple[Any, ...]] | None = None,
        remembers: str | timedelta = REMEMBERS,
        webhooks: str | tuple[str, ...] = (),
        pages: str = "",
    ) -> Gateway:
        """Declare a gateway: over HTTP it takes records, shows tables and states, and answers.

        A record that was acknowledged is on the log. Any process of the gateway answers for all
        partitions: it asks the workers that own them. Where it listens, and the tokens of callers,
        are settings.

        Args:
            name: The name of the gateway; the requests that it remembers belong to it.
            takes: The stream, or the streams in a tuple, that it takes records for.
            shows: The tables whose rows it shows, and the services whose states it shows.
            offers: What ``app.questions`` returned, several in a tuple: callers may ask these, and
                get the answers of the part that ``answers=`` them, now or later.
            live: The live queries that clients may follow, or several in a tuple.
            roles: For each role what it may use: ``{"meter": (readings,)}``. Without roles, whoever
                has a token may use everything.
            remembers: How long a request with an ``Idempotency-Key`` is not done twice (24 h).
            webhooks: What a URL must begin with so that a caller may have answers sent to it:
                ``"https://hooks.example/answers/"``, several in a tuple.
            pages: A directory beside the file that declares the gateway. Its files are served under
                ``/``, to everybody who reaches the gateway.

        Examples:
            >>> app.gateway("door", takes=readings, shows=hot).summary
            'gateway, takes readings, shows hot'
        """
        place = caller()
        options = self._declared.options("gateway", name, place)
        gateway = Gateway(
            name=options.name(name),
            takes=self._streams(name, takes, place),
            shows=self._shown(name, shows, place),
            offers=_offered(offers, options),
            live=_followed(live, options),
            roles=_roles(roles, options),
            remembers=options.span("remembers", remembers, REMEMBERS),
            webhooks=(webhooks,) if isinstance(webhooks, str) else tuple(webhooks),
            pages=_directory(pages, options),
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

    def _shown(
        self, name: str, given: Any, place: Place | None
    ) -> tuple[Table[Any] | Service, ...]:
        """Return the tables and services; report everything else."""
        kept: list[Table[Any] | Service] = []
        known = [data.name for data in self._declared.data if isinstance(data, Table)]
        known += [part.name for part in self._declared.parts if isinstance(part, Service)]
        for each in given if isinstance(given, tuple | list) else (given,):
            if isinstance(each, Table | Service):
                kept.append(each)
                continue
            shown = getattr(each, "name", each)
            text = f"{name} shows {shown!r}, which is neither a table nor a service"
            hint = did_you_mean(str(shown), known)
            self._declared.problems.append(Problem("gateway.shows", text, hint, place))
        return tuple(kept)


def _offered(given: Any, options: Options) -> tuple[Questions[Any, Any], ...]:
    """Return the questions; report everything else."""
    listed = given if isinstance(given, tuple | list) else (given,)
    for each in listed:
        if not isinstance(each, Questions):
            hint = 'questions = app.questions("checks", Check, answers=Verdict)'
            options.wrong("offers", f"{each!r} is not what app.questions(...) returned", hint)
    return tuple(each for each in listed if isinstance(each, Questions))


def _followed(given: Any, options: Options) -> tuple[LiveQueries, ...]:
    """Return the live queries; report everything else."""
    kept: list[LiveQueries] = []
    for each in given if isinstance(given, tuple | list) else (given,):
        if isinstance(each, LiveQueries):
            kept.append(each)
            continue
        shown = getattr(each, "name", each)
        hint = 'pass what app.live_queries("live", table) returns'
        options.wrong("live", f"{shown!r} is no live queries", hint)
    return tuple(kept)


def _directory(given: Any, options: Options) -> str:
    """Return a directory as text; a path is one, too."""
    if isinstance(given, str | PurePath):
        return str(given)
    options.wrong("pages", f"{given!r} is no directory", 'pages="web"')
    return ""


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
