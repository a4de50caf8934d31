"""``penstock topics``: the topics of the log, as they are and as an application declares them."""

import argparse
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import add_app, add_json, add_verb, command
from penstock.cli.log.produce import add_produce
from penstock.cli.log.tail import add_tail
from penstock.cli.session import Session
from penstock.core.units import duration_text, size_text

if TYPE_CHECKING:
    from penstock.backbone.client.connection import Connection
    from penstock.backbone.topics.topics import TopicState

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs and their arguments."""
    verbs = parser.add_subparsers(metavar="list|describe|tail|produce|apply", required=True)
    listing = add_verb(verbs, "list", "show the topics")
    listing.add_argument(
        "--all", action="store_true", help="also show Kafka's and Penstock's own topics"
    )
    add_json(listing)
    command(listing, _list)
    describe = add_verb(verbs, "describe", "show one topic: settings, partitions, schema")
    describe.add_argument("topic", metavar="TOPIC", help="the name of a topic")
    add_json(describe)
    command(describe, _describe)
    add_tail(add_verb(verbs, "tail", "show records, decoded and filtered"))
    add_produce(add_verb(verbs, "produce", "write records"))
    apply = add_verb(verbs, "apply", "create the topics and schemas of an application")
    add_app(apply)
    apply.add_argument(
        "--change", action="store_true", help="change topics that differ from their declaration"
    )
    apply.add_argument(
        "--repartition",
        action="store_true",
        help="also add partitions to topics whose records have keys",
    )
    add_json(apply)
    command(apply, _apply)


def _list(session: Session) -> None:
    from penstock.backbone.topics.topics import Topics

    with session.connected() as connection:
        topics = Topics(connection)
        rows = []
        for state in topics.list(internal=session.arguments.all):
            ends = topics.ends(state.name)
            rows.append(_summary(state) | {"records": _count(ends)})
    if session.arguments.json:
        session.terminal.json(rows)
        return
    columns = ("topic", "partitions", "replicas", "held", "kept", "at most", "compacted")
    session.terminal.table(
        columns,
        [
            (
                row["topic"],
                row["partitions"],
                row["replication"],
                row["records"],
                _kept(row["config"]),
                _at_most(row["config"]),
                "compact" in row["config"].get("cleanup.policy", ""),
            )
            for row in rows
        ],
    )


def _describe(session: Session) -> None:
    from penstock.backbone.topics.topics import Topics

    with session.connected() as connection:
        topics = Topics(connection)
        state = topics.describe(session.arguments.topic)
        ends = topics.ends(state.name)
        versions = _versions(connection, state.name)
    partitions = [
        {"partition": number, "first": low, "next": high, "held": high - low}
        for number, (low, high) in sorted(ends.items())
    ]
    if session.arguments.json:
        found = _summary(state) | {"records": _count(ends), "by_partition": partitions}
        session.terminal.json(found | {"schemas": versions})
        return
    terminal = session.terminal
    terminal.line(f"{state.name}: {state.partitions} partitions, {state.replication} replicas")
    for name, value in state.config.items():
        terminal.line(f"  {name} = {value}")
    if versions:
        newest = versions[-1]
        key = ", ".join(newest["key"]) or "none"
        version = f"version {len(versions)}" if len(versions) > 1 else "first version"
        terminal.line(f"  holds {newest['name']} ({version}), key {key}")
        for text in _fields(newest):
            terminal.line(f"    {text}")
    columns = ("partition", "first offset", "next offset", "held")
    terminal.table(columns, [tuple(row.values()) for row in partitions])


def _apply(session: Session) -> None:
    from penstock.backbone.declare import declare_application

    graph = session.application.graph
    with session.connected() as connection:
        done = declare_application(
            graph,
            connection,
            change=session.arguments.change,
            repartition=session.arguments.repartition,
        )
    if session.arguments.json:
        session.terminal.json({"topics": list(done.topics), "schemas": dict(done.schemas)})
        return
    for change in done.topics:
        detail = f" {change.setting}: {change.before} → {change.after}" if change.setting else ""
        session.terminal.line(f"{change.action} {change.topic}{detail}")
    for topic, version in done.schemas.items():
        session.terminal.line(f"schema {topic} version {version}")
    if done.nothing:
        session.terminal.note(f"nothing to do: all {len(graph.topics())} topics are as declared")


def _versions(connection: "Connection", topic: str) -> list[dict[str, Any]]:
    from penstock.backbone.declare import schema_versions
    from penstock.backbone.schemas import SchemaRegistry

    found = schema_versions(SchemaRegistry(connection).get(topic))
    return [version.to_json() for version in found]


def _fields(schema: dict[str, Any]) -> list[str]:
    from penstock.core.records.schema import Schema

    return [str(field) for field in Schema.from_json(schema).fields]


def _summary(state: "TopicState") -> dict[str, Any]:
    return {
        "topic": state.name,
        "partitions": state.partitions,
        "replication": state.replication,
        "config": state.config,
        "internal": state.internal,
    }


def _count(ends: dict[int, tuple[int, int]]) -> int:
    return sum(high - low for low, high in ends.values())


def _kept(config: dict[str, str]) -> str:
    milliseconds = int(config.get("retention.ms", "-1"))
    return "for ever" if milliseconds < 0 else duration_text(timedelta(milliseconds=milliseconds))


def _at_most(config: dict[str, str]) -> str:
    count = int(config.get("retention.bytes", "-1"))
    return "no limit" if count < 0 else size_text(count)
