"""Which program made a checkpoint, as a value, and what another program may change.

State and offsets belong to the program that made them. A pipeline without state may change freely,
and so may the steps after the state of one with state. The rest is compared at every start.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from penstock.core.graph.data import Data
from penstock.core.graph.parts import Pipeline
from penstock.core.records.evolution import refusals
from penstock.core.records.schema import Schema
from penstock.errors import ConfigurationError

__all__ = ["FORMAT", "Identity", "refuse"]

FORMAT = 2
"""The form of what is written down; 1 said only how an aggregation was declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredData:
    """A stream, table or lake table as it was declared."""

    name: str
    kind: str
    schema: Schema

    @classmethod
    def of(cls, data: Data) -> Self:
        return cls(name=data.name, kind=data.kind, schema=data.record.schema)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        schema = Schema.from_json(value["schema"])
        return cls(name=value["name"], kind=value["kind"], schema=schema)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "schema": self.schema.to_json()}

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a pipeline reads and writes, and what its state is made of, aspect by aspect.

    The versions are for messages: what another release makes is read as long as the form is known.
    """

    inputs: tuple[DeclaredData, ...]
    output: DeclaredData
    mode: str
    state: Mapping[str, str]
    penstock: str = field(default="", compare=False)
    spark: str = field(default="", compare=False)

    @classmethod
    def of(cls, pipeline: Pipeline, *, state: Mapping[str, str], penstock: str, spark: str) -> Self:
        """Return the identity of a pipeline as it is declared now."""
        return cls(
            inputs=tuple(map(DeclaredData.of, pipeline.reads)),
            output=DeclaredData.of(pipeline.writes),
            mode=pipeline.output,
            state=state,
            penstock=penstock,
            spark=spark,
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return what :meth:`to_json` wrote."""
        return cls(
            inputs=tuple(map(DeclaredData.from_json, value["inputs"])),
            output=DeclaredData.from_json(value["output"]),
            mode=value["mode"],
            state=dict(value["state"]),
            penstock=value["penstock"],
            spark=value["spark"],
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "penstock": self.penstock,
            "spark": self.spark,
            "inputs": [each.to_json() for each in self.inputs],
            "output": self.output.to_json(),
            "mode": self.mode,
            "state": dict(self.state),
        }

    def changes(self, now: Self) -> list[str]:
        """Return everything for which the checkpoint of this one is not good for another."""
        return [
            *_about_data("reads", self.inputs, now.inputs),
            *_about_data("writes", (self.output,), (now.output,)),
            *_different("output mode", self.mode, now.mode),
            *_about_state(self.state, now.state),
        ]


def refuse(name: str, changes: list[str], *, made_with: str, now: Identity) -> None:
    """Raise ConfigurationError ``pipeline.changed`` where there are any changes."""
    if not changes:
        return
    if made_with not in ("", now.spark):
        changes = [*changes, f"the checkpoint was made with Spark {made_with}; this is {now.spark}"]
    raise ConfigurationError(
        f"{name} was changed; its checkpoint belongs to the old version",
        code="pipeline.changed",
        detail="\n  ".join(changes),
        hint=f"give it a new name, or recompute it from the log: penstock rebuild {name}",
    )


def _about_data(
    word: str, before: tuple[DeclaredData, ...], now: tuple[DeclaredData, ...]
) -> Iterator[str]:
    if [(each.name, each.kind) for each in before] != [(each.name, each.kind) for each in now]:
        yield from _different(word, ", ".join(map(str, before)), ", ".join(map(str, now)))
        return
    for old, new in zip(before, now, strict=True):
        yield from (f"{old.name}: {each}" for each in refusals(old.schema, new.schema))


def _about_state(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        said
        for aspect in dict.fromkeys((*before, *now))
        for said in _different(aspect, before.get(aspect, ""), now.get(aspect, ""))
    ]


def _different(aspect: str, before: str, now: str) -> list[str]:
    if before == now:
        return []
    return [f"{aspect}: was {before or 'nothing'}, is {now or 'nothing'}"]
