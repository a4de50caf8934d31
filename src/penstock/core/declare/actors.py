"""The methods of `App` that declare what lives per key: actors."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from penstock.core.declare.arguments import read_calls, read_inputs, read_outputs, read_policy
from penstock.core.declare.declarations import Declarations
from penstock.core.declare.questions import read_talk
from penstock.core.graph.actor import read_actor, receiving
from penstock.core.graph.data import Feedback, OnLog
from penstock.core.graph.parts import DEFAULT_IDLE_AFTER, Actor, Delivery
from penstock.core.graph.policy import ErrorPolicy
from penstock.core.graph.questions import Questions
from penstock.core.graph.signature import method
from penstock.core.graph.timeorder import InTimeOrder
from penstock.core.operators.broadcast import Broadcast
from penstock.core.place import caller, place_of

__all__ = ["DeclaresActors"]


class DeclaresActors:
    """Declares actors, with their options."""

    _declared: Declarations

    def actor(
        self,
        *,
        reads: OnLog | InTimeOrder | tuple[OnLog | Broadcast, ...] = (),
        writes: OnLog | Feedback | tuple[OnLog | Feedback, ...] = (),
        asks: Questions[Any, Any] | tuple[Questions[Any, Any], ...] = (),
        answers: Questions[Any, Any] | tuple[Questions[Any, Any], ...] = (),
        name: str | None = None,
        idle_after: str | timedelta = DEFAULT_IDLE_AFTER,
        delivery: Delivery = "exactly_once",
        errors: ErrorPolicy | None = None,
        concurrency: int | None = None,
        timeout: str | timedelta | None = None,
    ) -> Callable[[Any], Actor]:
        """Declare actors: a class with an object for each key, which receives its messages.

        A decorator. Each method whose name begins with ``receive`` takes the messages of the type
        of its first parameter, one after the other for each key. The annotated attributes of the
        class are the state of an actor; each needs a first value. Fields, outputs, timers and
        offsets are committed together, or not at all. Otherwise an actor is a service.

        Args:
            reads: The streams and tables whose records are its messages.
            writes: What it may write, one or several; empty: nothing.
            asks: Questions that it asks; it receives their answers.
            answers: Questions that it answers; it receives them.
            name: The name of the actors, their identity; by default that of the class.
            idle_after: An actor that received nothing for so long leaves memory; its fields stay
                in the state of its task, and it is there again for its next message.
            delivery: ``"exactly_once"``, ``"at_least_once"`` or ``"at_most_once"``.
            errors: What happens to a message that fails; by default it becomes a dead letter.
            concurrency: How many calls of one partition may overlap; only if it is async (64).
            timeout: How long one call may take; only if it is async (30 s).

        Examples:
            >>> @app.actor(reads=readings, writes=alarms)
            ... class Boiler:
            ...     hottest: float = 60.0
            ...     def receive(self, reading: Reading) -> Alarm | None:
            ...         if reading.celsius > self.hottest:
            ...             self.hottest = reading.celsius
            ...             return Alarm(reading.device, f"{reading.celsius} °C")
            >>> from penstock.testing import Driver
            >>> driver = Driver(app)
            >>> driver.pipe(readings, Reading("boiler", datetime(2026, 1, 1, tzinfo=UTC), 71.5))
            >>> driver.state(Boiler, "boiler")
            Boiler(hottest=71.5)
        """
        return lambda definition: self._add_actor(
            definition,
            name=name,
            reads=reads,
            writes=writes,
            talk=(asks, answers),
            idle_after=idle_after,
            delivery=delivery,
            errors=errors,
            calls=(concurrency, timeout),
        )

    def _add_actor(
        self,
        definition: Any,
        *,
        name: str | None,
        reads: Any,
        writes: Any,
        talk: tuple[Any, Any],
        idle_after: str | timedelta,
        delivery: Delivery,
        errors: ErrorPolicy | None,
        calls: tuple[int | None, str | timedelta | None],
    ) -> Actor:
        place = _place_of(definition) or caller()
        options, called = self._declared.named("actor", name, definition, place)
        outputs = read_outputs(writes, options)
        inputs = read_inputs(reads, options)
        found = read_actor(definition)
        talks = read_talk(*talk, options)
        concurrency, timeout = read_calls(definition, *calls, options)
        actor = Actor(
            name=called,
            function=definition,
            reads=self._declared.known(called, (*inputs.plain, *talks.reads), place),
            writes=self._declared.known(called, (*outputs.plain, *talks.writes), place),
            asks=talks.asks,
            answers=talks.answers,
            broadcasts=self._declared.known(called, inputs.whole, place),
            reads_by_time=inputs.waits,
            rows=found.definition.rows,
            feedback=(*outputs.feedback, *talks.feedback),
            rounds=outputs.rounds,
            delivery=delivery,
            errors=read_policy(errors, options),
            concurrency=concurrency,
            timeout=timeout,
            states=found.definition.states,
            context=found.definition.process.context or talks.context,
            timed=found.definition.on_timer is not None or bool(talks.asks),
            idle_after=options.span("idle_after", idle_after, DEFAULT_IDLE_AFTER),
            place=place,
        )
        self._declared.parts.append(actor)
        return actor


def _place_of(definition: Any) -> Any:
    """Return where the first receiver of a class stands, as of a service its process."""
    first = next(receiving(definition), None) if isinstance(definition, type) else None
    return None if first is None else place_of(method(definition, first))
