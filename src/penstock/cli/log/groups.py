"""``penstock groups``: consumer groups, their members and their lag."""

import argparse
from typing import Any

from penstock.cli.arguments import add_json, command
from penstock.cli.session import Session

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("group", metavar="GROUP", nargs="?", help="show one group, by partition")
    parser.add_argument("--all", action="store_true", help="also show Penstock's own positions")
    add_json(parser)
    command(parser, _groups)


def _groups(session: Session) -> None:
    if session.arguments.group is None:
        _list(session)
    else:
        _one(session, session.arguments.group)


def _list(session: Session) -> None:
    from penstock.backbone.log.groups import Groups

    rows: list[dict[str, Any]] = []
    with session.connected() as connection:
        groups = Groups(connection)
        for state in groups.list():
            if state.position and not session.arguments.all:
                continue
            lag = groups.lag(state.name)
            rows.append(
                {
                    "group": state.name,
                    "state": state.state,
                    "members": len(state.members),
                    "topics": sorted({topic for topic, _ in lag}),
                    "lag": sum(each.lag for each in lag.values()),
                }
            )
    if session.arguments.json:
        session.terminal.json(rows)
        return
    columns = ("group", "state", "members", "topics", "lag")
    texts = [row | {"topics": ", ".join(row["topics"])} for row in rows]
    session.terminal.table(columns, [tuple(row.values()) for row in texts])


def _one(session: Session, name: str) -> None:
    from penstock.backbone.log.groups import Groups

    with session.connected() as connection:
        groups = Groups(connection)
        state = groups.describe(name)
        holders = {at: member.client for member in state.members for at in member.partitions}
        rows: list[dict[str, Any]] = [
            {
                "topic": topic,
                "partition": number,
                "committed": lag.committed,
                "end": lag.end,
                "lag": lag.lag,
                "member": holders.get((topic, number)),
            }
            for (topic, number), lag in sorted(groups.lag(name).items())
        ]
    if session.arguments.json:
        total = sum(row["lag"] for row in rows)
        found = {"group": name, "state": state.state, "members": len(state.members), "lag": total}
        session.terminal.json(found | {"partitions": rows})
        return
    session.terminal.note(f"{name}: {state.state}, {len(state.members)} members")
    columns = ("topic", "partition", "committed", "end", "lag", "member")
    session.terminal.table(columns, [tuple(row.values()) for row in rows])
