"""Records as JSON are read with the fields of their wire types."""

import json

import msgspec
import pytest

from ottla import wire
from ottla.spark.jobs.record_json import json_reader
from ottla.wire.types.group_consumer import ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue
from ottla.wire.types.group_share import ShareGroupMemberMetadataValue

TOPIC_ID = bytes(range(16))


def test_what_the_wire_writes_is_read():
    held = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(TOPIC_ID, (1, 2))
    message = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=3, state=1, assigned_partitions=(held,))
    read = json_reader(ConsumerGroupCurrentMemberAssignmentValue, only="member_epoch assigned_partitions")
    found = read(json.dumps(wire.to_json(message, 0)))
    assert found.member_epoch == 3
    assert [(each.topic_id, each.partitions) for each in found.assigned_partitions] == [
        ("AAECAwQFBgcICQoLDA0ODw", [1, 2])
    ]
    assert not hasattr(found, "state")


def test_what_is_not_written_has_the_default_of_the_wire_or_is_none():
    kinds = (ConsumerGroupMemberMetadataValue, ShareGroupMemberMetadataValue)
    found = json_reader(*kinds, only="client_id rack_id rebalance_timeout_ms")("{}")
    assert (found.client_id, found.rack_id, found.rebalance_timeout_ms) == ("", None, None)
    assert json_reader(kinds[0], only="rebalance_timeout_ms")("{}").rebalance_timeout_ms == -1


def test_a_field_can_stay_as_it_is_written():
    read = json_reader(
        ConsumerGroupMemberMetadataValue, only="subscribed_topic_names", subscribed_topic_names=msgspec.Raw
    )
    assert bytes(read('{"subscribedTopicNames": ["a",  "b"]}').subscribed_topic_names) == b'["a",  "b"]'


def test_another_type_is_refused():
    with pytest.raises(msgspec.ValidationError, match="clientId"):
        json_reader(ConsumerGroupMemberMetadataValue, only="client_id")('{"clientId": 1}')
