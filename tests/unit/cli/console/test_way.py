"""Where the records of a stream come to."""

from penstock import App, feedback, record
from penstock.cli.console.way import downstream


@record(key="word")
class Word:
    word: str


def test_everything_behind_a_stream_is_found_once_the_nearest_first_also_in_a_circle():
    app = App("plant")
    words, kept = app.stream("words", Word), app.stream("kept", Word)
    long, other = app.stream("long", Word), app.stream("other", Word)
    app.service(reads=words, writes=kept, name="keep")(lambda word: word)
    app.service(reads=kept, writes=[long, feedback(words)], name="pick")(lambda word: word)
    app.service(reads=other, writes=long, name="add")(lambda word: word)
    found = [(step.data.name, step.through) for step in downstream(app.graph, words)]
    assert found == [("kept", ("keep",)), ("long", ("keep", "pick"))]
    assert [step.data.name for step in downstream(app.graph, long)] == []
