from dataclasses import replace

import pytest

from penstock.core.records.schema import Field, Scalar, Schema
from penstock.errors import ConfigurationError
from penstock.pipelines.program.identity import DeclaredData, Identity, refuse


def said(name="words", kind="stream", **fields):
    schema = Schema(
        name="Word",
        fields=tuple(Field(name=each, type=Scalar(kind)) for each, kind in fields.items()),
    )
    return DeclaredData(name=name, kind=kind, schema=schema)


COUNTED = Identity(
    inputs=(said(word="text"),),
    output=said("counts", "table", word="text", count="int"),
    mode="update",
    state={"aggregation": "by words.word (string): count(1) (bigint)"},
    penstock="0.1.0",
    spark="4.2.0",
)


def test_what_is_written_down_is_read_again():
    assert Identity.from_json(COUNTED.to_json()) == COUNTED


def test_the_same_program_has_no_changes_whatever_the_release():
    assert COUNTED.changes(replace(COUNTED, penstock="0.2.0", spark="4.3.0")) == []


def test_a_field_that_may_be_absent_is_no_change_of_an_input():
    optional = Field(name="note", type=Scalar("text"), nullable=True, optional=True)
    words = COUNTED.inputs[0]
    wider = replace(words, schema=replace(words.schema, fields=(*words.schema.fields, optional)))

    assert COUNTED.changes(replace(COUNTED, inputs=(wider,))) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"state": {"aggregation": "by words.word (string): sum(n) (bigint)"}},
            (
                "aggregation: was by words.word (string): count(1) (bigint), is by words.word (string):"
                " sum(n) (bigint)"
            ),
        ),
        ({"state": {}}, "aggregation: was by words.word (string): count(1) (bigint), is nothing"),
        ({"mode": "complete"}, "output mode: was update, is complete"),
        ({"inputs": (said("lines", word="text"),)}, "reads: was stream words, is stream lines"),
        (
            {"inputs": (said(word="text"), said("rooms", "lake", room="int"))},
            "reads: was stream words, is stream words, lake rooms",
        ),
        ({"inputs": (said(word="int"),)}, "words: word was text, is int"),
        (
            {"output": said("counts", "stream", word="text", count="int")},
            "writes: was table counts, is stream counts",
        ),
        (
            {"output": said("counts", "table", word="text", count="text")},
            "counts: count was int, is text",
        ),
    ],
)
def test_each_change_is_told_with_what_was_and_what_is(change, told):
    assert COUNTED.changes(replace(COUNTED, **change)) == [told]


def test_a_refusal_says_all_changes_the_versions_and_the_way_out():
    with pytest.raises(ConfigurationError) as refusal:
        refuse("count", ["a: was b, is c"], made_with="4.1.0", now=COUNTED)

    assert refusal.value.code == "pipeline.changed"
    assert refusal.value.detail.splitlines() == [
        "a: was b, is c",
        "  the checkpoint was made with Spark 4.1.0; this is 4.2.0",
    ]
    assert "penstock rebuild count" in refusal.value.hint
    refuse("count", [], made_with="4.1.0", now=COUNTED)
