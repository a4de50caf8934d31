"""What combiners of users give, in windows."""

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import App, record
from penstock.aggregates import combine
from penstock.testing import Driver
from penstock.triggers import every_record
from penstock.windows import fixed


@record(key="device", time="at")
class Reading:
    """A measurement."""

    device: str
    at: datetime
    value: int


class Product:
    """Multiplies."""

    def zero(self) -> int:
        return 1

    def add(self, held: int, value: int) -> int:
        return held * value

    def merge(self, held: int, other: int) -> int:
        return held * other

    def result(self, held: int) -> Any:
        return held


class Words(Product):
    """Says a text, though it is declared to give an int."""

    def result(self, held: int) -> Any:
        return str(held)


@pytest.mark.parametrize("shape", ["stream", "table"])
@pytest.mark.parametrize(("combiner", "factor"), [(Product(), 2**40), (Words(), 1)])
def test_a_result_that_no_reader_takes_is_a_dead_letter(
    shape: str, combiner: Any, factor: int
) -> None:
    app = App("plant")
    readings = app.stream("readings", Reading, partitions=1)
    windowed = readings.window(fixed("1m"), by="device").trigger(every_record())
    panes = windowed.aggregate(product=combine("value", combiner, gives=int))
    declare: Any = app.stream if shape == "stream" else app.table
    result = declare("panes", panes, on="services", partitions=1)
    driver = Driver(app)
    for _ in range(2):
        driver.pipe(readings, Reading("boiler", datetime(2026, 1, 1, tzinfo=UTC), factor))
    written = driver.read_raw(result)
    allowed = 1 if factor > 1 else 0
    assert len(written) == allowed
    assert len(driver.dead_letters()) == 2 - allowed
