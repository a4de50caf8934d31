from penstock.errors import ConfigurationError, DefinitionError, Place, Problem

KEY = Problem("record.key-unknown", "'wrd' is no field", "did you mean 'word'?", Place("a.py", 3))
CYCLE = Problem("graph.cycle", "records go round for ever")


def test_a_wrong_application_says_its_first_problem_where_only_the_message_is_shown():
    assert DefinitionError((KEY,)).message == "'wrd' is no field"
    assert DefinitionError((KEY, CYCLE, CYCLE)).message == "'wrd' is no field (and 2 more)"


def test_the_text_of_a_wrong_application_has_each_problem_once():
    assert str(DefinitionError((KEY, CYCLE))).splitlines() == [
        "the application has 2 problems [definition.invalid]",
        "  a.py:3: 'wrd' is no field [record.key-unknown]",
        "    hint: did you mean 'word'?",
        "  records go round for ever [graph.cycle]",
    ]


def test_the_text_of_other_errors_begins_with_their_message():
    error = ConfigurationError("no broker", code="kafka.none", detail="at b:1", hint="start one")
    assert str(error) == "no broker [kafka.none]\n  at b:1\n  hint: start one"
