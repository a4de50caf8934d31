import pytest

from penstock.machine.java.properties import properties_text


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("a", "plain=1 #x", "a=plain=1 #x"),
        ("a b:c", "x", "a\\ b\\:c=x"),
        ("a", "  two", "a=\\ \\ two"),
        ("a", "C:\\x\ny\t", "a=C:\\\\x\\ny\\t"),
        ("é", "\U0001f600", "\\u00e9=\\ud83d\\ude00"),
    ],
)
def test_any_name_and_any_value_can_be_written(name, value, line):
    assert properties_text({name: value}) == f"{line}\n"
