"""Offsets in checkpoints."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.errors import OttlaSparkError
from ottla.spark.offsets import RESERVED, SourceOffset, TopicPartition

partitions = st.builds(TopicPartition, st.text("abc-._", min_size=1), st.integers(0, 300))
offsets = st.dictionaries(partitions, st.integers(0, 2**63 - 1))


@given(offsets, st.dictionaries(st.text("abc"), st.text("xyz")), st.none() | offsets)
def test_what_is_stored_comes_back(places: dict[TopicPartition, int], ids: dict[str, str], start: None):
    offset = SourceOffset(places, ids, start)
    assert SourceOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_topics_and_partitions_are_in_order():
    places = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("A", 0): 3}
    text = json.dumps(SourceOffset(places, {"b": "x", "A": "y"}).to_json(), separators=(",", ":"))
    assert text == '{"A":{"0":3},"__ottla":{"ids":{"A":"y","b":"x"},"v":1},"b":{"9":2,"10":1}}'


def test_offsets_of_sparks_own_source_are_understood():
    assert SourceOffset.from_json({"t": {"0": 5}}) == SourceOffset({TopicPartition("t", 0): 5})


@pytest.mark.parametrize("stored", [{"t": 5}, {"t": {"x": 5}}, {"t": {"0": None}}])
def test_what_cannot_be_read_is_shown(stored: dict[str, object]):
    with pytest.raises(OttlaSparkError, match="the checkpoint has offsets that cannot be read"):
        SourceOffset.from_json(stored)


def test_a_later_version_is_refused():
    with pytest.raises(OttlaSparkError, match="offsets of version 2"):
        SourceOffset.from_json({RESERVED: {"v": 2}})
