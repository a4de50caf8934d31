"""From declared streams and tables to the inputs of an operator."""

from typing import Any

from penstock.core.operators.operator import Input, InputKind
from penstock.core.panes.watermark import WatermarkRule

__all__ = ["input_of"]


def input_of(data: Any, *, kind: InputKind | None = None, name: str | None = None) -> Input:
    """Return what an operator reads of a stream or table, under its own name or another.

    Event time follows a stream whose records have one, with the rule that was declared with it.
    """
    read_as: InputKind = data.kind if kind is None else kind
    timed = read_as == "stream" and data.record.schema.time is not None
    return Input(
        name=data.name if name is None else name,
        topic=data.topic.name,
        kind=read_as,
        record=data.record,
        max_record_bytes=data.topic.max_record_bytes,
        rule=WatermarkRule.of(data.event_time) if timed else None,
        sources=getattr(data, "sources", ()),
    )
