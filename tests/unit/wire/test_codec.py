"""What callers of the codec meet: defaults, versions, refusals and their explanations."""

from __future__ import annotations

import pickle

import pytest

from ottla import wire
from ottla.wire import WireError
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.types.fetch import FetchResponse
from ottla.wire.types.metadata import MetadataRequest, MetadataResponse
from ottla.wire.types.produce import ProduceRequest
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest

TOPIC_ID = bytes(range(16))


def test_a_new_message_has_kafkas_defaults() -> None:
    request = MetadataRequest()
    assert request.topics == ()
    assert request.allow_auto_topic_creation is True
    assert wire.encode(request, 12).hex() == "01010000"


def test_null_and_empty_are_two_things() -> None:
    assert wire.encode(MetadataRequest(topics=None), 12) != wire.encode(MetadataRequest(topics=()), 12)
    assert wire.decode("MetadataRequest", 12, wire.encode(MetadataRequest(topics=None), 12)).topics is None


def test_messages_are_frozen() -> None:
    with pytest.raises(AttributeError):
        MetadataRequest().topics = ()  # type: ignore[misc]


def test_structs_are_reached_through_their_message() -> None:
    topic = MetadataResponse.MetadataResponseTopic(name="orders", topic_id=TOPIC_ID)
    data = wire.encode(MetadataResponse(topics=(topic,)), 12)
    assert wire.decode("MetadataResponse", 12, data).topics == (topic,)


def test_records_stay_a_view_of_the_input() -> None:
    partition = ProduceRequest.PartitionProduceData(0, b"batch")
    request = ProduceRequest(topic_data=(ProduceRequest.TopicProduceData(name="t", partition_data=(partition,)),))
    data = wire.encode(request, 9)
    records = wire.decode("ProduceRequest", 9, data).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is data


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 129, 16_382, 16_383, 16_384, 2_097_150, 2_097_151, 2_097_152])
@pytest.mark.parametrize("version", [8, 9])
def test_record_lengths_around_the_sizes_of_their_varint(size: int, version: int) -> None:
    partition = ProduceRequest.PartitionProduceData(7, bytes(size))
    request = ProduceRequest(topic_data=(ProduceRequest.TopicProduceData(name="t", partition_data=(partition,)),))
    assert wire.decode("ProduceRequest", version, wire.encode(request, version)) == request


def test_a_field_of_another_version_is_refused_unless_ignorable() -> None:
    with pytest.raises(WireError) as caught:
        wire.encode(ConsumerGroupHeartbeatRequest(subscribed_topic_regex="a.*"), 0)
    assert caught.value.path == "ConsumerGroupHeartbeatRequest.SubscribedTopicRegex"
    assert wire.encode(FetchResponse(error_code=5), 4)  # ErrorCode is ignorable, v4 does not have it


def test_a_tagged_struct_at_its_default_is_left_out_unless_it_holds_unknown_tags() -> None:
    partition = FetchResponse.PartitionData()
    plain = wire.encode(partition_response(partition), 12)
    leader = FetchResponse.LeaderIdAndEpoch()
    assert wire.encode(partition_response(FetchResponse.PartitionData(current_leader=leader)), 12) == plain
    held = FetchResponse.LeaderIdAndEpoch(unknown_tags={9: b"x"})
    message = partition_response(FetchResponse.PartitionData(current_leader=held))
    assert wire.encode(message, 12) != plain
    assert wire.decode("FetchResponse", 12, wire.encode(message, 12)) == message


def partition_response(partition: FetchResponse.PartitionData) -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=(partition,))
    return FetchResponse(responses=(topic,))


def test_unknown_tags_need_a_flexible_version() -> None:
    message = MetadataRequest(unknown_tags={5: b"five"})
    assert wire.decode("MetadataRequest", 9, wire.encode(message, 9)) == message
    with pytest.raises(WireError, match="not flexible"):
        wire.encode(message, 8)


def test_an_unknown_tag_may_not_shadow_a_known_one() -> None:
    with pytest.raises(WireError, match="tag 0 stands among the unknown tags"):
        wire.encode(FetchResponse(unknown_tags={0: b""}), 16)


REFUSED_VALUES = [
    (ConsumerGroupHeartbeatRequest(member_epoch=1 << 31), 0, "MemberEpoch", "not an int32"),
    (ConsumerGroupHeartbeatRequest(group_id=None), 0, "GroupId", "null is not allowed"),  # type: ignore[arg-type]
    (ConsumerGroupHeartbeatRequest(group_id=7), 0, "GroupId", "not a string"),  # type: ignore[arg-type]
    (ConsumerGroupHeartbeatRequest(group_id="x" * 32_768), 0, "GroupId", "longer than 32767"),
    (ConsumerGroupHeartbeatRequest(group_id="\ud800"), 0, "GroupId", "UTF-8"),
    (MetadataRequest(allow_auto_topic_creation="no"), 12, "AllowAutoTopicCreation", "not a bool"),  # type: ignore[arg-type]
    (MetadataRequest(topics=7), 12, "Topics", "not a tuple"),  # type: ignore[arg-type]
    (
        MetadataRequest(topics=(MetadataRequest.MetadataRequestTopic(topic_id=b"short"),)),
        12,
        "Topics[0].TopicId",
        "16 bytes",
    ),
    (
        StreamsGroupHeartbeatRequest(active_tasks=(StreamsGroupHeartbeatRequest.TaskIds("0", (1, "2")),)),  # type: ignore[arg-type]
        0,
        "ActiveTasks[0].Partitions[1]",
        "not an int32",
    ),
]


@pytest.mark.parametrize(("message", "version", "path", "reason"), REFUSED_VALUES)
def test_a_value_that_cannot_be_written_is_named(message: object, version: int, path: str, reason: str) -> None:
    with pytest.raises(WireError, match=reason) as caught:
        wire.encode(message, version)
    assert caught.value.path == f"{type(message).__name__}.{path}"


REFUSED_BYTES = [
    ("", "MetadataRequest.Topics", 0, "needs 1 bytes, 0 are left"),
    ("00", "MetadataRequest.AllowAutoTopicCreation", 1, "bool needs 1 bytes"),
    ("0100000000", "MetadataRequest", 4, "1 bytes follow the end"),
    ("ffffffff07", "MetadataRequest.Topics", 0, "cannot fit into the 0 bytes"),
    ("808080808000", "MetadataRequest.Topics", 0, "more than 5 bytes"),
    ("02" + "00" * 16 + "03ff", "MetadataRequest.Topics[0].Name", 18, "string needs 2 bytes, 1 are left"),
    ("02" + "00" * 16 + "02ff000000", "MetadataRequest.Topics[0].Name", 18, "not UTF-8"),
    ("0100000201000000", "MetadataRequest", 6, "tag 0 does not come after tag 1"),
    ("01000001050963", "MetadataRequest.tag5", 5, "a tagged field of 9 bytes, 1 are left"),
]


@pytest.mark.parametrize(("hexed", "path", "offset", "reason"), REFUSED_BYTES)
def test_bad_bytes_are_refused_with_path_and_offset(hexed: str, path: str, offset: int, reason: str) -> None:
    with pytest.raises(WireError, match=reason) as caught:
        wire.decode("MetadataRequest", 12, bytes.fromhex(hexed))
    assert (caught.value.path, caught.value.byte_offset) == (path, offset)


def test_a_decoder_reads_from_a_start_and_reports_offsets_of_the_whole_input() -> None:
    decode = wire.decoder("MetadataRequest", 12)
    assert decode(b"header" + bytes.fromhex("01010000"), 6) == MetadataRequest()
    with pytest.raises(WireError) as caught:
        decode(b"header" + bytes.fromhex("00"), 6)
    assert caught.value.byte_offset == 7


def test_unknown_names_and_versions_are_answered_with_what_there_is() -> None:
    with pytest.raises(WireError, match="the nearest is ShareFetchRequest"):
        wire.decode("ShareFechRequest", 1, b"")
    with pytest.raises(WireError, match="no version 99; it has 1 to 2"):
        wire.decode("ShareFetchRequest", 99, b"")
    with pytest.raises(WireError, match="nearest"):
        wire.encode(object(), 0)


def test_json_that_does_not_fit_is_named() -> None:
    good = wire.to_json(MetadataRequest(), 12)
    for change, path in [
        ({"topics": 7}, "MetadataRequest.Topics"),
        ({"allowAutoTopicCreation": 1}, "MetadataRequest.AllowAutoTopicCreation"),
        ({"topik": []}, "MetadataRequest.topik"),
        ({"topics": [{"topicId": "!", "name": None}]}, "MetadataRequest.Topics[0].TopicId"),
    ]:
        with pytest.raises(WireError) as caught:
            wire.from_json("MetadataRequest", 12, {**good, **change})  # type: ignore[dict-item]
        assert caught.value.path == path
    with pytest.raises(WireError, match="the key 'topics' is missing"):
        wire.from_json("MetadataRequest", 12, {})


def test_uuid_text_is_kafkas() -> None:
    assert wire.uuid_text(TOPIC_ID) == "AAECAwQFBgcICQoLDA0ODw"
    assert wire.uuid_bytes(wire.uuid_text(TOPIC_ID)) == TOPIC_ID
    with pytest.raises(ValueError, match="16 bytes"):
        wire.uuid_bytes("AAEC")


def test_an_error_travels_by_pickle() -> None:
    error = WireError("A.B", 7, "is wrong")
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.path, copied.byte_offset, copied.reason, str(copied)) == ("A.B", 7, "is wrong", str(error))


def test_bytes_behind_a_message_may_be_allowed() -> None:
    decode = wire.decoder("MetadataRequest", 12)
    data = wire.encode(MetadataRequest(), 12) + b"rest"
    assert decode(data, 0, False) == MetadataRequest()
    with pytest.raises(WireError, match="4 bytes follow"):
        decode(data)
    with pytest.raises(WireError):
        decode(data[:2], 0, False)


class FileRange:
    """Stands for bytes elsewhere."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


def test_parts_keep_what_stands_for_records() -> None:
    file_range = FileRange(300)
    message = partition_response(FetchResponse.PartitionData(records=file_range))  # type: ignore[arg-type]
    parts = wire.part_encoder("FetchResponse", 12)(message)
    assert file_range in parts
    filled = b"".join(bytes(300) if part is file_range else part for part in parts)
    assert filled == wire.encode(partition_response(FetchResponse.PartitionData(records=bytes(300))), 12)
