"""A few devices for tests: what they measure, and a model that knows them."""

from datetime import UTC, datetime, timedelta
from random import Random

from apps.anomaly.records import Measurement, Message, Receipt
from apps.anomaly.training.learning import learn
from apps.anomaly.trend import Trend

T0 = datetime(2026, 1, 1, tzinfo=UTC)
STARTED = 1_767_225_600_000


def at(seconds):
    return T0 + timedelta(seconds=seconds)


def ordinary(number, device="a"):
    noise = Random(f"{device}/{number}")
    return {
        "machine.celsius": 40 + noise.gauss(0, 1),
        "os.load": noise.uniform(0.2, 0.6),
        "machine.bad_sectors": 0.0,
    }


def message(number, device="a", *, started=STARTED, delay=0.0, clock=0.0, **metrics):
    measured = Measurement(number, at(number + clock), ordinary(number, device) | metrics)
    return Message(
        device=device,
        kind="server",
        started=started,
        number=number,
        sent_at=at(number + clock),
        received_at=at(number + delay),
        measurements=[measured],
    )


def receipt(number, command, done, device="a"):
    return Message(
        device=device,
        kind="server",
        started=STARTED,
        number=number,
        sent_at=at(number),
        received_at=at(number),
        receipts=[Receipt(command, done)],
    )


def model():
    samples = []
    for device in map(str, range(10)):
        trend = Trend()
        for number in range(200):
            metrics = ordinary(number, device)
            trend = trend.after(metrics)
            samples.append(("server", trend.features(metrics)))
    return learn(samples)
