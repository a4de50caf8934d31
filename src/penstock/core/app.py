"""The application: declarations in, a graph out. Declaring starts nothing and raises nothing."""

from penstock.core.declare.actors import DeclaresActors
from penstock.core.declare.data import DeclaresData
from penstock.core.declare.declarations import Declarations
from penstock.core.declare.gateways import DeclaresGateways
from penstock.core.declare.jobs import DeclaresJobs
from penstock.core.declare.live import DeclaresLiveQueries
from penstock.core.declare.parts import DeclaresParts
from penstock.core.declare.questions import DeclaresQuestions
from penstock.core.graph.graph import Graph
from penstock.core.options import Options
from penstock.core.place import caller

__all__ = ["App"]


class App(
    DeclaresData,
    DeclaresLiveQueries,
    DeclaresParts,
    DeclaresActors,
    DeclaresJobs,
    DeclaresGateways,
    DeclaresQuestions,
):
    """An application: a name, and everything that is declared under it.

    Declaring starts nothing and raises nothing. A mistake is kept with its line, and ``penstock
    check`` reports all of them at once. The methods return what they declare; give that to the
    declarations that use it. ``graph`` is the whole application as a value.

    The examples of the API reference go on from this one.

    Examples:
        >>> from datetime import UTC, datetime, timedelta
        >>> from penstock import App, record
        >>> app = App("plant")
        >>> @record(key="device", time="at")
        ... class Reading:
        ...     device: str
        ...     at: datetime
        ...     celsius: float
        >>> @record(key="device")
        ... class Alarm:
        ...     device: str
        ...     text: str
        >>> readings = app.stream("readings", Reading)
        >>> copies = app.stream("copies", Reading)
        >>> alarms = app.stream("alarms", Alarm)
        >>> hot = app.table("hot", Alarm)
        >>> app
        App('plant', 4 data, 0 parts)
    """

    def __init__(self, name: str) -> None:
        self._declared = Declarations()
        self.name = Options("the application", caller(), self._declared.problems).name(name)

    def __repr__(self) -> str:
        """Return the name and how much is declared."""
        declared = self._declared
        return f"App({self.name!r}, {len(declared.data)} data, {len(declared.parts)} parts)"

    @property
    def graph(self) -> Graph:
        """Everything declared so far, as a frozen value: what ``penstock check`` verifies.

        It may hold problems. Engines take only a graph without any.

        Examples:
            >>> [data.name for data in app.graph.data]
            ['readings', 'copies', 'alarms', 'hot']
        """
        from_records = [
            problem for found in self._declared.record_types.values() for problem in found.problems
        ]
        return Graph(
            app=self.name,
            data=tuple(self._declared.data),
            parts=tuple(self._declared.parts),
            problems=(*from_records, *self._declared.problems),
        )
