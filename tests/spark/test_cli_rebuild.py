from pathlib import Path

import msgspec
import pytest

from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

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
copies = app.stream("{name}.copies", Word)

@app.pipeline(reads=words, writes=counts)
def count(words):
    return words.groupBy("word").count()

@app.pipeline(reads=words, writes=copies)
def copied(words):
    return words
"""


def test_a_pipeline_that_never_ran_is_rebuilt_from_the_log(spark, penstock, kafka, topic):
    name = topic.name("rebuild")
    Path("app.py").write_text(APP.format(name=name))
    assert penstock("topics", "apply")[0] == 0
    with Producer(kafka) as producer:
        for word in (b"a", b"b", b"a"):
            producer.send(f"{name}.words", key=word, value=b'{"word":"%s"}' % word)

    code, out, err = penstock("rebuild", "count", "--json")
    told = {"output": f"{name}.counts", "changed": 2, "late": None}
    assert (code, msgspec.json.decode(out)) == (0, told)
    said = err.splitlines()
    assert said[0] == "rebuilding count"
    assert said[-2:] == ["count: the old run has ended", "count: switched over"]
    values = [
        msgspec.json.decode(record.value or b"")
        for record in LogReader(kafka).read(f"{name}.counts")
    ]
    assert {value["word"]: value["count"] for value in values} == {"a": 2, "b": 1}

    code, out, _ = penstock("rebuild", "app.py", "count", "--json")
    assert (code, msgspec.json.decode(out)["changed"]) == (0, 0)
    code, _, err = penstock("rebuild", "app.py", "copied")
    assert (code, "[rebuild.stream]" in err) == (1, True)
