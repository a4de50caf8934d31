"""Which version of a model a service uses: the newest good one, and never a broken one.

A service reads the table of versions with ``broadcast`` and asks `Models` for each record. What is
wrong with a version is said once, as a `Refusal`, and the version before stays in use.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.core.graph.rows import Rows
from penstock.errors import DataError
from penstock.models.version import ModelVersion, opened

__all__ = ["Models", "Refusal", "Served"]

T = TypeVar("T")

_LOOK_AGAIN = 1_000
"""After so many questions all versions are looked at, also if their number is the same."""
_MOST_REFUSALS = 1_000
"""So many refused versions are remembered."""


@dataclass(frozen=True, slots=True)
class Served(Generic[T]):
    """The version in use, and its parameters.

    Examples:
        >>> from penstock.models import Models
        >>> Models("heat", Reading).newest([]) is None  # nothing is published yet
        True
    """

    version: int
    parameters: T


@dataclass(frozen=True, slots=True)
class Refusal:
    """A version that is not used, and why.

    Examples:
        >>> from penstock.models import Models, ModelVersion
        >>> cut = ModelVersion("heat", 4, "", "", "{", "", {})
        >>> lines = Models("heat", Reading)
        >>> lines.newest([cut]) is None
        True
        >>> lines.refusals()[0].code
        'model.corrupt'
    """

    model: str
    version: int
    code: str
    reason: str


class Models(Generic[T]):
    """The newest good version of one model; each worker has one, for all its partitions.

    Versions take over in the order of their numbers: a lower number that comes later is never
    used. To go back, publish the old parameters under a new number.

    Args:
        model: The name of the model.
        kind: The record type of its parameters.
        check: Raises a ValueError for parameters that decode and make no sense all the same.

    Examples:
        >>> from penstock.models import Models, sealed
        >>> @record()
        ... class Line:
        ...     slope: float
        >>> lines = Models("heat", Line)
        >>> versions = [sealed("heat", 1, Line(0.5)), sealed("heat", 2, Line(0.7))]
        >>> lines.newest(versions)
        Served(version=2, parameters=Line(slope=0.7))
    """

    def __init__(
        self, model: str, kind: type[T], *, check: Callable[[T], None] | None = None
    ) -> None:
        self._model = model
        self._kind = kind
        self._check = check
        self._served: Served[T] | None = None
        self._refused: dict[int, Refusal] = {}
        self._unreported: list[Refusal] = []
        self._seen = -1
        self._asked = 0

    def newest(self, rows: "Rows[ModelVersion] | list[ModelVersion]") -> Served[T] | None:
        """Return the newest good version among the rows; None: there is none yet.

        It looks at the versions when there is another number of them, and now and then.
        """
        self._asked += 1
        if len(rows) != self._seen or self._asked % _LOOK_AGAIN == 0:
            self._seen = len(rows)
            self._look(rows)
        return self._served

    @property
    def refused(self) -> bool:
        """Return whether `refusals` has something to say."""
        return bool(self._unreported)

    def refusals(self) -> list[Refusal]:
        """Return the versions that were refused since the last question, each once."""
        found, self._unreported = self._unreported, []
        return found

    def _look(self, rows: "Rows[ModelVersion] | list[ModelVersion]") -> None:
        used = 0 if self._served is None else self._served.version
        newer = [row for row in rows if row.model == self._model and row.version > used]
        for row in sorted(newer, key=lambda each: -each.version):
            if row.version in self._refused:
                continue
            try:
                parameters = opened(row, self._kind)
                if self._check is not None:
                    self._check(parameters)
            except DataError as error:
                self._refuse(row, error.code, error.message)
            except ValueError as error:
                self._refuse(row, "model.senseless", str(error))
            else:
                self._served = Served(row.version, parameters)
                return

    def _refuse(self, row: ModelVersion, code: str, reason: str) -> None:
        if len(self._refused) >= _MOST_REFUSALS:
            del self._refused[min(self._refused)]
        refusal = self._refused[row.version] = Refusal(row.model, row.version, code, reason)
        self._unreported.append(refusal)
