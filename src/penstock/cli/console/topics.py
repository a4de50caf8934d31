"""Topics and groups as JSON: what they hold, how fast they grow, who reads them."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from penstock.cli.console.log import LogLook, LogWatcher, Reader
from penstock.core.graph.data import Data
from penstock.core.graph.graph import Graph
from penstock.core.units import duration_text
from penstock.errors import ConfigurationError

__all__ = ["group_document", "groups_document", "topic_document", "topics_document"]

GraphOf = Callable[[], Graph | None]


def topics_document(watcher: LogWatcher, graph: GraphOf) -> dict[str, Any]:
    """Return all topics, those of the application with what they are to it."""
    look = watcher.look()
    known = _known(graph())
    return {
        "at": look.at,
        "took_seconds": look.took_seconds,
        "topics": [_summary(look, name, known) for name in look.topics],
    }


def topic_document(watcher: LogWatcher, graph: GraphOf, name: str) -> dict[str, Any]:
    """Return one topic: its settings, partitions, readers and schemas."""
    look = watcher.look()
    if name not in look.topics:
        raise ConfigurationError(f"there is no topic {name!r}", code="topic.missing")
    rates, readers = look.rates.get(name, {}), look.readers(name)
    return _summary(look, name, _known(graph())) | {
        "at": look.at,
        "config": look.topics[name].config,
        "by_partition": [
            {
                "partition": number,
                "first": low,
                "next": high,
                "records": high - low,
                "bytes": look.sizes.get(name, {}).get(number),
                "rate": rates.get(number),
                "lags": {each.group: each.lags[number] for each in readers if number in each.lags},
            }
            for number, (low, high) in sorted(look.ends[name].items())
        ],
        "schemas": watcher.schemas(name),
    }


def groups_document(watcher: LogWatcher) -> dict[str, Any]:
    """Return all groups of consumers."""
    look = watcher.look()
    rows = []
    for name, state in look.groups.items():
        lags = look.lags(name)
        rows.append(
            {
                "group": name,
                "state": state.state,
                "members": len(state.members),
                "topics": sorted({topic for topic, _ in lags}),
                "partitions": len(lags),
                "lag": sum(max(0, end - offset) for offset, end in lags.values()),
                "worst": max((max(0, end - offset) for offset, end in lags.values()), default=0),
            }
        )
    return {"at": look.at, "groups": rows}


def group_document(watcher: LogWatcher, name: str) -> dict[str, Any]:
    """Return one group: its members, and its lag by partition with its history."""
    look = watcher.look()
    if name not in look.groups:
        raise ConfigurationError(f"there is no group {name!r}", code="group.missing")
    state = look.groups[name]
    holders = {at: member for member in state.members for at in member.partitions}
    lags = look.lags(name)
    partitions = []
    for topic, number in sorted({*lags, *holders}):
        offset, end = lags.get(
            (topic, number), (None, look.ends.get(topic, {}).get(number, (0, 0))[1])
        )
        member = holders.get((topic, number))
        partitions.append(
            {
                "topic": topic,
                "partition": number,
                "committed": offset,
                "end": end,
                "lag": None if offset is None else max(0, end - offset),
                "member": member.id if member else None,
                "history": watcher.lag_history(name, topic, number),
            }
        )
    return {
        "at": look.at,
        "group": name,
        "state": state.state,
        "times": [round(at, 1) for at in watcher.history.times()],
        "members": [
            {
                "id": member.id,
                "client": member.client,
                "host": member.host,
                "partitions": len(member.partitions),
            }
            for member in state.members
        ],
        "partitions": partitions,
    }


def _summary(look: LogLook, name: str, known: Mapping[str, str]) -> dict[str, Any]:
    state, ends = look.topics[name], look.ends[name]
    milliseconds = int(state.config.get("retention.ms", "-1") or -1)
    return {
        "topic": name,
        "is": known.get(name, ""),
        "partitions": state.partitions,
        "replication": state.replication,
        "records": sum(high - low for low, high in ends.values()),
        "bytes": sum(look.sizes[name].values()) if name in look.sizes else None,
        "rate": sum(look.rates[name].values()) if name in look.rates else None,
        "kept_bytes": _number(state.config.get("retention.bytes")),
        "kept": "for ever"
        if milliseconds < 0
        else duration_text(timedelta(milliseconds=milliseconds)),
        "compacted": "compact" in state.config.get("cleanup.policy", ""),
        "readers": [_reader(look, each) for each in look.readers(name)],
    }


def _number(text: str | None) -> int | None:
    """Return a limit in bytes; None: there is none."""
    found = int(text) if text and text.isdecimal() else 0
    return found or None


def _reader(look: LogLook, reader: Reader) -> dict[str, Any]:
    return {
        "group": reader.group,
        "state": look.groups[reader.group].state,
        "lag": reader.lag,
        "worst": max(reader.lags.values(), default=0),
    }


def _known(graph: Graph | None) -> dict[str, str]:
    """Return what the topics of an application are to it, in words."""
    if graph is None:
        return {}
    own = {spec.name: words for words, spec in graph.own_topics().items()}
    data: dict[str, str] = {each.topic.name: _words(each) for each in graph.on_log}
    return own | data


def _words(data: Data) -> str:
    return f"{data.kind} {data.name}"
