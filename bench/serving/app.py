"""The application of the serving bench: readings, the hottest of each device, and questions."""

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


@record(key="device")
class Check:
    device: str
    celsius: float


@record()
class Verdict:
    good: bool


once = app.questions("serving-bench.once", Check, answers=Verdict)
least = app.questions("serving-bench.least", Check, answers=Verdict)


@app.service(answers=once, delivery="exactly_once")
def once_clerk(check: Check, seen: State[int]) -> Verdict:
    seen.set(seen.get(0) + 1)
    return Verdict(check.celsius < 100)


@app.service(answers=least, delivery="at_least_once")
def least_clerk(check: Check, seen: State[int]) -> Verdict:
    seen.set(seen.get(0) + 1)
    return Verdict(check.celsius < 100)


app.gateway("door", takes=taken, shows=(hottest, watch), offers=(once, least))
