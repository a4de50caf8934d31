"""What `penstock check` says of gateways."""

from collections.abc import Iterator
from datetime import timedelta

from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.graph.webhooks import webhook_mistake
from penstock.core.hints import did_you_mean
from penstock.errors import Problem

__all__ = ["LEAST_REMEMBERED", "gateway_problems"]

LEAST_REMEMBERED = timedelta(minutes=1)
"""A client that repeats a request may wait for so long between two attempts."""


def gateway_problems(graph: Graph) -> Iterator[Problem]:
    """Yield every problem of every gateway."""
    for part in graph.parts:
        if isinstance(part, Gateway):
            yield from _uses(graph, part)
            yield from _roles(part)
            yield from _webhooks(part)
            if part.remembers < LEAST_REMEMBERED:
                text = f"gateway {part.name!r} remembers requests for {part.remembers}"
                hint = 'remembers="24h", for example: whoever repeats a request may wait before'
                yield Problem("gateway.remembers", text, hint, part.place)


def _uses(graph: Graph, gateway: Gateway) -> Iterator[Problem]:
    if not any((gateway.takes, gateway.shows, gateway.offers, gateway.live, gateway.pages)):
        text = f"gateway {gateway.name!r} takes nothing and shows nothing"
        yield Problem("gateway.empty", text, "takes=a stream, shows=a table", gateway.place)
    services = [part for part in graph.parts if isinstance(part, Service)]
    for questions in gateway.offers:
        if not any(questions in service.answers for service in services):
            text = f"gateway {gateway.name!r} offers {questions.name!r}, which nobody answers"
            hint = f"@app.service(answers={questions.name})"
            yield Problem("gateway.unanswered", text, hint, gateway.place)
    for service in gateway.services:
        if graph.part(service.name) != service:
            text = f"gateway {gateway.name!r} shows {service.name!r}, which is not in {graph.app!r}"
            hint = did_you_mean(service.name, [part.name for part in graph.parts])
            yield Problem("part.undeclared", text, hint, gateway.place)
        elif not service.states:
            text = f"gateway {gateway.name!r} shows {service.name!r}, which keeps no state"
            hint = "show the table that it writes"
            yield Problem("gateway.shows", text, hint, gateway.place)


def _webhooks(gateway: Gateway) -> Iterator[Problem]:
    for prefix in gateway.webhooks:
        why = webhook_mistake(str(prefix))
        if why or not prefix.endswith("/"):
            text = f"gateway {gateway.name!r}: webhooks has {prefix!r}"
            hint = f'{why or "it must end with /"}: webhooks="https://hooks.example/answers/"'
            yield Problem("gateway.webhooks", text, hint, gateway.place)
    if gateway.webhooks and not gateway.offers:
        text = f"gateway {gateway.name!r} has webhooks, and offers no questions"
        yield Problem("gateway.webhooks", text, "offers=app.questions(...)", gateway.place)


def _roles(gateway: Gateway) -> Iterator[Problem]:
    offered = (*gateway.takes, *gateway.shows, *gateway.offers, *gateway.live)
    known = [each.name for each in offered]
    for role, names in gateway.roles.items():
        for name in names:
            if name not in known:
                text = f"gateway {gateway.name!r}: role {role!r} names {name!r}"
                hint = f"what the gateway takes, shows or offers: {did_you_mean(name, known)}"
                yield Problem("gateway.roles", text, hint, gateway.place)
