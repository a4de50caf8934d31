"""Relations with a handful of rows, and a way to ask them, for tests of queries."""

from datetime import UTC, datetime
from typing import Any

from penstock import record
from penstock.core.records.record import record_type
from penstock.core.sql.budget import Budget
from penstock.core.sql.execute import Executor
from penstock.core.sql.planner import plan_query


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float
    place: str | None = None


@record(key="device")
class Device:
    device: str
    owner: str
    floor: int | None = None


CATALOG = {"readings": record_type(Reading).schema, "devices": record_type(Device).schema}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROWS: dict[str, list[Any]] = {
    "readings": [
        Reading("attic", NOON, 31.5, "top"),
        Reading("boiler", NOON, 60.0, "cellar"),
        Reading("cellar", NOON, 12.0, "cellar"),
        Reading("desk", NOON, 21.5),
    ],
    "devices": [Device("attic", "ann", 3), Device("boiler", "bob"), Device("spare", "bob", 0)],
}


def ask(
    text: str, *, rows: dict[str, list[Any]] | None = None, size: int = 1 << 20
) -> list[dict[str, Any]]:
    """Ask the relations, or given rows; return the rows of the answer by column."""
    plan = plan_query(text, CATALOG)
    assert not isinstance(plan, tuple), plan
    given = rows or ROWS
    budget = Budget(size, name="serving.query_bytes", look=lambda: None)
    found = Executor(plan).run([given[each.name] for each in plan.readings], budget)
    names = [column.name for column in plan.columns]
    return [dict(zip(names, row, strict=True)) for row in found]
