import pytest

APP = """
from penstock import App, record

app = App("small")

@record(key="word")
class Word:
    word: str

words = app.stream("words", Word)

@app.service(reads=words)
def hear(word: Word) -> None: ...
"""


@pytest.fixture(autouse=True)
def application(project):
    (project / "app.py").write_text(APP)


def test_the_graph_is_drawn_as_text(penstock):
    answer = penstock("graph")
    assert answer.code == 0
    assert answer.out.splitlines()[2:] == [
        "words  (stream of Word by word)",
        "└─▶ hear  (service, exactly once)",
    ]


def test_the_format_follows_the_flag_or_the_name_of_the_output_file(penstock, project):
    assert penstock("graph", "--format", "mermaid").out.startswith("flowchart LR\n")
    answer = penstock("graph", "--output", "small.svg")
    assert answer.out == ""
    assert answer.err == "wrote small.svg\n"
    assert (project / "small.svg").read_text().startswith("<svg ")
    penstock("graph", "-o", "small.mmd")
    assert (project / "small.mmd").read_text().startswith("flowchart LR\n")


def test_the_graph_comes_as_json(penstock):
    assert penstock("graph", "--json").json == {
        "app": "small",
        "nodes": [
            {"name": "hear", "kind": "service", "is": "service, exactly once"},
            {"name": "words", "kind": "stream", "is": "stream of Word by word"},
        ],
        "edges": [{"from": "words", "to": "hear", "feedback": False}],
    }


def test_an_output_that_cannot_be_written_is_an_error(penstock):
    answer = penstock("graph", "--output", "no/such/directory.svg")
    assert answer.code == 1
    assert "no/such/directory.svg cannot be written: No such file" in answer.err
