import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.source.positions import dump_position, load_positions
from penstock.errors import ConfigurationError

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner | st.none()) | st.dictionaries(st.text(), inner | st.none()),
    max_leaves=5,
)


@given(st.lists(st.tuples(st.text(), JSON), max_size=4))
def test_the_latest_position_of_each_split_comes_back_as_it_was(given_positions):
    records = [dump_position(split, position) for split, position in given_positions]
    assert load_positions(records) == dict(given_positions)


@pytest.mark.parametrize("position", [None, (1, 2), object(), {1: 2}, float("nan"), b"bytes"])
def test_what_would_come_back_as_something_else_is_no_position(position):
    with pytest.raises(ConfigurationError, match="is not a JSON value") as caught:
        dump_position("part", position)
    assert caught.value.code == "source.position"
