import sys

GOOD = """
from penstock import App, record

app = App("good")

@record(key="word")
class Word:
    word: str

words = app.stream("words", Word)
loud = app.stream("loud", Word)

@app.service(reads=words, writes=loud)
def shout(word: Word) -> Word:
    return Word(word.word.upper())
"""

# Ten different mistakes; those on the lines marked "raises" end a plain import.
BROKEN = """\
from penstock import App, State, record, recrod  # raises

app = App("broken")

@record(key="wrd")
class Word:
    word: str

class Plain:
    word: str

words = app.stream("words", Word, retention="soon")
letters = app.stream("letters", Word, retenton="1d")  # raises
plain = app.stream("plain", Plain)
counts = app.tabel("counts", Word)  # raises

@app.service(reads=wrods)  # raises
def first(word: Word) -> None: ...

@app.service(reads=letters)
def not_a_problem_of_its_own(word: Word) -> None: ...

@app.service(reads=words, writes=words)
def round_and_round(word: Word) -> Word: ...

@app.service(reads=words)
def second(word: Plain) -> None: ...

@app.service(reads=words)
def third(word: Word, total) -> None: ...
"""


def test_a_good_application_is_ok_and_counted(penstock, project):
    (project / "app.py").write_text(GOOD)
    answer = penstock("check")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "ok: good has 2 streams, 1 service\n"


def test_ten_mistakes_give_ten_problems_at_once_each_with_its_line(penstock, project):
    (project / "broken.py").write_text(BROKEN)
    answer = penstock("check", "broken.py")
    assert answer.code == 1
    assert answer.err == "error: 10 problems\n"
    assert "Traceback" not in answer.out
    assert [line for line in answer.out.splitlines() if not line.startswith(" ")] == [
        "broken.py:1: penstock has no 'recrod' [app.import]",
        "broken.py:5: Word: the key 'wrd' is not one of its fields [record.key-unknown]",
        (
            "broken.py:12: stream 'words': retention: 'soon' is not a duration; "
            "write 500ms, 30s, 10m, 1h30m or 7d [data.option]"
        ),
        "broken.py:13: TypeError: App.stream() got an unexpected keyword argument 'retenton' [app.raised]",
        "broken.py:14: plain: Plain is not a record type [data.not-a-record]",
        "broken.py:15: AttributeError: 'App' object has no attribute 'tabel' [app.raised]",
        "broken.py:17: NameError: name 'wrods' is not defined [app.raised]",
        "broken.py:23: records would go round for ever: words → round_and_round → words [graph.cycle]",
        "broken.py:26: service 'second' takes Plain, but stream 'words' holds Word [service.takes]",
        "broken.py:29: service 'third': its parameter 'total' has no known annotation [service.parameter]",
    ]
    hints = [line.strip() for line in answer.out.splitlines() if "did you mean" in line]
    assert hints == [
        f"hint: did you mean {name!r}?"
        for name in ("record", "word", "retention", "table", "words")
    ]


def test_a_wrong_configuration_is_a_problem_beside_those_of_the_application(penstock, project):
    (project / "app.py").write_text(GOOD.replace('key="word"', 'key="wrd"'))
    (project / "bad.toml").write_text('[spark]\ndriver_memory = "lots"\n[sparc]\na = 1\n')
    answer = penstock("check", "--config", "bad.toml")
    assert (answer.code, answer.err) == (1, "error: 2 problems\n")
    assert "[record.key-unknown]" in answer.out
    assert "bad.toml:2: spark.driver_memory: 'lots' is not the size of a heap" in answer.out
    assert "'sparc.a' is not a setting" in answer.out
    (project / "good.py").write_text(GOOD)
    (problem,) = penstock("check", "good.py", "--config", "gone.toml", "--json").json["problems"]
    assert "gone.toml" in problem["message"]


def test_problems_come_as_json_too(penstock, project):
    (project / "broken.py").write_text(BROKEN)
    answer = penstock("check", "broken.py", "--json")
    assert answer.code == 1
    assert answer.json["ok"] is False
    assert len(answer.json["problems"]) == 10
    assert answer.json["problems"][0] == {
        "code": "app.import",
        "message": "penstock has no 'recrod'",
        "hint": "did you mean 'record'?",
        "file": "broken.py",
        "line": 1,
    }
    (project / "app.py").write_text(GOOD)
    assert penstock("check", "--json").json == {"app": "good", "ok": True, "problems": []}


MISCALLED = """\
from penstock import App, record, on_error
from penstock.state import ListState
from penstock.connectors import tcp_lines

app = App("miscalled")

@record
class Plain:
    word: str

@record(key="word")
class Word:
    word: str

words = app.stream("words", Word)

@app.service
def first(word: Word) -> None: ...

app.source("in", tcp_lines(port="any", max_line=0), into=words)
policy = on_error("stop")

def second(word: Word, seen: ListState[int, int]) -> None: ...
"""


def test_what_is_called_in_the_wrong_way_is_shown_in_the_right_one(penstock, project):
    (project / "app.py").write_text(MISCALLED)
    answer = penstock("check")
    hints = [line.strip() for line in answer.out.splitlines() if line.startswith("    hint")]
    assert hints == [
        'hint: with parentheses: @record(key="...")',
        "hint: @app.service(reads=...) above it, or app.service(reads=...)(it)",
        "hint: give it 0 to 65535",
        'hint: give it at least "1B"',
        "hint: name its arguments: on_error(decode=..., process=..., produce=...)",
        "hint: ListState[float], for example",
    ]


def test_a_pipeline_without_spark_is_a_problem_that_says_how_to_install_it(
    penstock, project, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    pipeline = (
        "\n@app.pipeline(reads=words, writes=loud)\ndef shout_in_spark(words):\n    return words\n"
    )
    (project / "app.py").write_text(GOOD + pipeline)
    answer = penstock("check")
    assert answer.code == 1
    assert "pipeline 'shout_in_spark' cannot run: there is no pyspark [spark.missing]" in answer.out
    assert "hint: pip install 'penstock[spark]'" in answer.out


def test_services_are_good_without_spark(penstock, project, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    (project / "app.py").write_text(GOOD)
    assert penstock("check").code == 0


def test_an_application_that_imports_spark_says_how_to_install_it(penstock, project, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    (project / "app.py").write_text("import pyspark\n" + GOOD)
    answer = penstock("check")
    assert answer.code == 1
    assert "app.py:1: no module named 'pyspark'" in answer.out
    assert "hint: pip install 'penstock[spark]'" in answer.out


WITH_PAGES = """
from penstock import App, record

app = App("shown")
app.gateway("door", pages="web")
"""


def test_pages_that_are_not_there_are_problems(penstock, project):
    (project / "app.py").write_text(WITH_PAGES)
    answer = penstock("check")
    assert answer.code == 1
    assert "app.py:5: gateway 'door': the directory of its pages does not exist" in answer.out
    assert "[pages.missing]" in answer.out
    (project / "web").mkdir()
    assert "[pages.no-index]" in penstock("check").out
    (project / "web" / "index.html").write_text("<title>here</title>")
    assert penstock("check").code == 0
    with (project / "web" / "film.bin").open("wb") as film:
        film.truncate((8 << 20) + 1)
    answer = penstock("check")
    assert "the page film.bin has more than 8 MiB [pages.too-large]" in answer.out
