"""``penstock check --online`` tries connections; without it nothing is opened."""

APP = """
from penstock import App, record
from penstock.connectors import BatchLimits, json_files, lookup, postgres_table
from penstock.errors import ConfigurationError

app = App("shop")

@record(key="id")
class Small:
    id: int

class Tried:
    delivery = "at_least_once"
    limits = BatchLimits()
    def __init__(self, fault=None):
        self.fault = fault
    def describe(self):
        return "a place"
    def open(self, sink):
        raise AssertionError("nobody opens it")
    def attempt(self, part):
        if self.fault:
            raise self.fault
        return "it answers"

class Silent:
    delivery = "at_least_once"
    limits = BatchLimits()
    def describe(self):
        return "a place that nobody can try"
    def open(self, sink):
        raise AssertionError("nobody opens it")

class Nothing:
    async def fetch(self, keys):
        return [None for _ in keys]
    async def close(self): ...

async def connect():
    return Nothing()

known = lookup(connect, record=Small)
small = app.stream("small", Small)
app.sink("well", Tried(), reads=small)
app.sink("files", json_files("out"), reads=small)
app.sink("silent", Silent(), reads=small)
"""
BROKEN = """
app.sink("refused", Tried(ConfigurationError("no such user", code="test.no", hint="add it")), reads=small)
app.sink("raising", Tried(KeyError("x")), reads=small)
nobody = "postgresql://penstock@127.0.0.1:1/shop"
app.sink("away", postgres_table("t", address=nobody), reads=small)
far = lookup(connect, record=Small, name="far")
async def refuse():
    raise ConfigurationError("no such door", code="test.door")
shut = lookup(refuse, record=Small)
"""


def test_each_connection_is_tried_and_what_is_wrong_is_a_problem_of_its_line(project, penstock):
    (project / "app.py").write_text(APP)
    assert penstock("check").code == 0
    well = penstock("check", "--online")
    assert (well.code, well.err) == (0, "")
    assert "ok: well: it answers" in well.out
    assert "ok: files: out will be made" in well.out
    assert "ok: known: it answers: Small from a store" in well.out
    assert "ok: silent: it has no connection to try" in well.out
    (project / "broken.py").write_text(APP + BROKEN)
    assert penstock("check", "broken.py").code == 0
    found = penstock("check", "broken.py", "--online", "--json")
    assert found.code == 1
    problems = {problem["line"]: problem for problem in found.json["problems"]}
    assert [problem["code"] for _, problem in sorted(problems.items())] == [
        "test.no",
        "connector.raised",
        "connector.away",
        "test.door",
    ]
    assert "look-up 'shut': no such door" in str(problems)
    assert "sink 'refused': no such user" in str(problems)
    assert "PostgreSQL" in str(problems)
    assert found.json["connections"]["well"] == "it answers"
