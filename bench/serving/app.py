"""The application of the serving bench: a stream of readings, counted by device."""

from penstock import App, State, record

app = App("serving-bench")


@record(key="device")
class Reading:
    device: str
    celsius: float
    place: str


@record(key="device")
class Hottest:
    device: str
    celsius: float


readings = app.stream("serving-bench.readings", Reading)
taken = app.stream("serving-bench.taken", Reading)
hottest = app.table("serving-bench.hottest", Hottest)


@app.service(reads=readings, writes=hottest)
def watch(reading: Reading, highest: State[float]) -> Hottest | None:
    if reading.celsius <= highest.get(-274.0):
        return None
    highest.set(reading.celsius)
    return Hottest(reading.device, reading.celsius)


app.gateway("door", takes=taken, shows=(hottest, watch))
