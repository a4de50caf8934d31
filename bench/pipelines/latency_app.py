"""What ``latency.py`` measures: records stamped by their sender, passed on in both modes."""

from pyspark.sql import DataFrame

from penstock import App, micro_batch, real_time, record

app = App("latency")


@record(key="device")
class Stamped:
    device: str
    sent: int
    """When it was sent, in microseconds since the epoch."""
    celsius: float


@record(key="device")
class Passed:
    device: str
    sent: int
    fahrenheit: float


stamped = app.stream("stamped", Stamped, partitions=2)
at_once = app.stream("at_once", Passed, partitions=2)
in_batches = app.stream("in_batches", Passed, partitions=2)


def _converted(stamped: DataFrame) -> DataFrame:
    return stamped.selectExpr("device", "sent", "celsius * 1.8D + 32D as fahrenheit")


@app.pipeline(reads=stamped, writes=at_once, trigger=real_time())
def pass_at_once(stamped: DataFrame) -> DataFrame:
    return _converted(stamped)


@app.pipeline(reads=stamped, writes=in_batches, trigger=micro_batch(every="100ms"))
def pass_in_batches(stamped: DataFrame) -> DataFrame:
    return _converted(stamped)
