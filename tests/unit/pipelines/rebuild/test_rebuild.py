import pytest

from penstock import App, real_time, record
from penstock.errors import ConfigurationError
from penstock.pipelines.rebuild.rebuild import refuse_rebuild


@record(key="word")
class Word:
    word: str


@pytest.fixture
def graph():
    app = App("app")
    words, copies = app.stream("words", Word), app.stream("copies", Word)
    latest, kept = app.table("latest", Word), app.lake("kept", Word)
    shared, read = app.table("shared", Word), app.lake("read", Word)
    for name, reads, writes, options in (
        ("echo", words, copies, {}),
        ("quick", words, shared, {"trigger": real_time()}),
        ("keep", words, kept, {}),
        ("fill", words, read, {}),
        ("follow", read, latest, {}),
        ("beside", (words, kept), shared, {}),
        ("also", words, shared, {}),
    ):
        app.pipeline(reads=reads, writes=writes, name=name, **options)(lambda *frames: frames[0])
    app.archive(words)

    @app.service(reads=words, writes=copies)
    def serve(word: Word) -> Word:
        return word

    return app.graph


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("echo", "rebuild.stream"),
        ("quick", "rebuild.real-time"),
        ("fill", "rebuild.read-as-stream"),
        ("also", "rebuild.shared"),
        ("words.archive.filling", "rebuild.archive"),
        ("serve", "rebuild.not-a-pipeline"),
        ("ecko", "part.unknown"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused_before_anything_starts(graph, name, code):
    with pytest.raises(ConfigurationError) as refusal:
        refuse_rebuild(graph, name, append=False)
    assert refusal.value.code == code
    assert refusal.value.hint


def test_tables_and_lake_tables_can_be_rebuilt_and_streams_if_that_is_meant(graph):
    assert refuse_rebuild(graph, "follow", append=False).name == "follow"
    assert refuse_rebuild(graph, "keep", append=False).name == "keep"
    assert refuse_rebuild(graph, "echo", append=True).name == "echo"
