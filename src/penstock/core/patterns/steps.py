"""The steps of a pattern as they are declared: values, in a chain that reads like a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias, TypedDict, Unpack

__all__ = [
    "Chain",
    "Contiguity",
    "Element",
    "Group",
    "Sequence",
    "Step",
    "StepOptions",
    "Times",
    "sequence",
]

Contiguity = Literal["strict", "relaxed", "any"]
"""Which records may lie between two that are taken: none, those that do not fit, or any."""

Times: TypeAlias = int | tuple[int, int | None]
"""How often a step is repeated: so often, or from so often to so often; None: without end."""


class _Repeated(TypedDict, total=False):
    times: Times
    between: Contiguity
    optional: bool
    until: str | None


class StepOptions(_Repeated, total=False):
    """What may be said of a step; :meth:`Chain.then` explains it."""

    where: str | None
    greedy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Records of one stream that a match takes one by one; or, ``absent``, must not see."""

    name: str
    stream: Any
    after: Contiguity = "relaxed"
    where: str | None = None
    times: Times = 1
    between: Contiguity = "relaxed"
    optional: bool = False
    greedy: bool = False
    until: str | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A sequence that is repeated or left out as a whole."""

    sequence: Sequence
    after: Contiguity = "relaxed"
    times: Times = 1
    between: Contiguity = "relaxed"
    optional: bool = False
    until: str | None = None


Element: TypeAlias = Step | Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Elements in their order; each method returns a chain with one more."""

    elements: tuple[Element, ...] = ()

    def first(
        self,
        step: str | Sequence,
        stream: Any = None,
        **options: Unpack[StepOptions],
    ) -> Self:
        """Begin with a record of a stream that fits the condition; any such record may begin.

        The options are those of ``then``.
        """
        return self.then(step, stream, **options)

    def then(
        self,
        step: str | Sequence,
        stream: Any = None,
        *,
        where: str | None = None,
        times: Times = 1,
        between: Contiguity = "relaxed",
        optional: bool = False,
        greedy: bool = False,
        until: str | None = None,
    ) -> Self:
        """Go on with the next record that fits; records that do not fit are passed over.

        Args:
            step: The name of the step, or a ``sequence()`` that is repeated or left out as a whole.
            stream: The stream that the step reads; a sequence brings its own.
            where: The condition; it may refer to earlier steps: ``"price > last(down.price)"``.
            times: How often: ``3``, ``(1, 3)``, or ``(1, None)`` without a limit.
            between: What may lie between its repetitions: ``"strict"`` (nothing), ``"relaxed"``
                (what does not fit), ``"any"`` (anything: each choice is a match of its own).
            optional: Whether it may be left out.
            greedy: Whether a record that fits it is always taken by it, never by the next step.
            until: A condition that ends the repetition; what fits it is never taken.
        """
        return self._with(
            "relaxed",
            step,
            stream,
            where=where,
            times=times,
            between=between,
            optional=optional,
            greedy=greedy,
            until=until,
        )

    def next(
        self,
        step: str | Sequence,
        stream: Any = None,
        **options: Unpack[StepOptions],
    ) -> Self:
        """Go on with the very next record of the key, of whichever stream of the pattern.

        The options are those of ``then``.
        """
        return self._with("strict", step, stream, **options)

    def any(
        self,
        step: str | Sequence,
        stream: Any = None,
        **options: Unpack[StepOptions],
    ) -> Self:
        """Go on with any later record that fits: each choice is a match of its own.

        The options are those of ``then``.
        """
        return self._with("any", step, stream, **options)

    def never(self, name: str, stream: Any, *, where: str | None = None) -> Self:
        """Let no such record come before that of the next step; at the end: within the time."""
        absent = Step(name=name, stream=stream, after="relaxed", where=where, absent=True)
        return replace(self, elements=(*self.elements, absent))

    def not_next(self, name: str, stream: Any, *, where: str | None = None) -> Self:
        """Let the very next record of the key be no such one."""
        absent = Step(name=name, stream=stream, after="strict", where=where, absent=True)
        return replace(self, elements=(*self.elements, absent))

    def _with(
        self,
        after: Contiguity,
        step: str | Sequence,
        stream: Any,
        *,
        where: str | None = None,
        greedy: bool = False,
        **repeated: Unpack[_Repeated],
    ) -> Self:
        element: Element
        if isinstance(step, Sequence):
            # Only single steps have these: `penstock check` says so.
            misused = where is not None or greedy or stream is not None
            sequence = _misused(step) if misused else step
            element = Group(sequence=sequence, after=after, **repeated)
        else:
            element = Step(
                name=step, stream=stream, after=after, where=where, greedy=greedy, **repeated
            )
        return replace(self, elements=(*self.elements, element))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence(Chain):
    """Steps that belong together; ``sequence()`` begins one.

    Examples:
        >>> pair = sequence().first("hot", readings, where="celsius > 90").next("cold", readings)
        >>> len(pair.elements)
        2
    """

    misused: bool = False
    """Whether it was given what only a single step has."""


def sequence() -> Sequence:
    """Begin a sequence of steps that a pattern repeats, or leaves out, as a whole.

    Its steps are added as those of a pattern; it has no key, time or result of its own.

    Examples:
        >>> pair = sequence().first("warm", readings).next("hot", readings, where="celsius > 90")
        >>> found = pattern(by="device").first("start", readings).then(pair, times=(1, 3))
        >>> app.stream("pairs", found, on="services").name
        'pairs'
    """
    return Sequence()


def _misused(given: Sequence) -> Sequence:
    return replace(given, misused=True)
