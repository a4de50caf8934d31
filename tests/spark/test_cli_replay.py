from pathlib import Path

import msgspec

from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader

APP = """
from penstock import App, record

app = App("{name}")

@record(key="word")
class Word:
    word: str

@record(key="word")
class Count:
    word: str
    count: int

words = app.stream("{name}.words", Word)
counts = app.table("{name}.counts", Count)

@app.pipeline(reads=words, writes=counts)
def count(words):
    return words.groupBy("word").count()
"""


def test_a_pipeline_runs_over_the_past_into_a_topic_of_its_own(spark, penstock, kafka, topic):
    name = topic.name("replay")
    Path("replay_pipeline.py").write_text(APP.format(name=name))
    assert penstock("topics", "apply", "replay_pipeline.py")[0] == 0
    with Producer(kafka) as producer:
        for word in (b"a", b"b", b"a"):
            producer.send(f"{name}.words", key=word, value=b'{"word":"%s"}' % word)

    replay = ("replay", "replay_pipeline.py", "--part", "count", "--as", "trial", "--json")
    code, out, _ = penstock(*replay)
    assert code == 0
    assert msgspec.json.decode(out)["results"] == [f"{name}.counts.replay.trial"]
    assert msgspec.json.decode(out)["counts"]["received"] == 3
    values = [
        msgspec.json.decode(record.value or b"")
        for record in LogReader(kafka).read(f"{name}.counts.replay.trial")
    ]
    assert {value["word"]: value["count"] for value in values} == {"a": 2, "b": 1}
    assert list(LogReader(kafka).read(f"{name}.counts")) == []

    code, _, err = penstock(*replay)
    assert code == 1
    assert "the label 'trial' has been used" in err
