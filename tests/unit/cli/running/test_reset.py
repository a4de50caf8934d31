"""`penstock reset` does nothing before it was told what that costs."""

APP = """
from penstock import App, State, record
from penstock.connectors import tcp_lines

app = App("plant")


@record(key="word")
class Word:
    word: str


words = app.stream("words", Word)
app.source("lines", tcp_lines(), into=words)


@app.service(reads=words)
def count(word: Word, total: State[int]) -> None: ...
"""


def test_without_a_yes_it_says_what_it_would_do_and_does_nothing(penstock, project):
    (project / "app.py").write_text(APP)
    answer = penstock("reset", "--part", "count")
    assert answer.code == 1
    assert "writes all its output again" in " ".join(answer.err.split())
    assert "penstock reset . --part count --yes" in answer.err
    assert not (project / ".penstock").exists()


def test_only_services_can_be_reset(penstock, project):
    (project / "app.py").write_text(APP)
    answer = penstock("reset", "--part", "lines", "--yes")
    assert answer.code == 1
    assert "only services can be reset" in answer.err
    assert "no part coutn" in penstock("reset", "--part", "coutn", "--yes").err
