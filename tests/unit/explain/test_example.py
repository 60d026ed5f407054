"""Every example is what the codec would write, and makes sense to someone who knows Kafka."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ottla import wire
from ottla.explain import cast, rules, scene
from ottla.explain.example import make
from ottla.explain.page import MessagePage
from ottla.wire import keyed
from ottla.wire.batch import crc32c, iterate_records, split_batches
from ottla.wire.frames import frame, read_request, read_response
from ottla.wire.index import MESSAGES
from ottla.wire.schemas import message_schema
from ottla.wire.text import Field, Message
from ottla.wire.types import FetchResponse, ProduceRequest, ShareFetchRequest, ShareFetchResponse
from tests.unit.explain.page_list import message_pages, page_of


def body_of(page: MessagePage) -> bytes:
    return page.example.data[page.example.body_at :]


def test_every_example_decodes_to_its_value_and_encodes_to_its_bytes():
    for page in message_pages():
        message = wire.decode(page.message, page.version, body_of(page))
        assert wire.to_json(message, page.version) == page.example.value, page.title
        assert wire.encode(message, page.version) == body_of(page), page.title
        assert wire.from_json(page.message, page.version, page.example.value) == message, page.title
        assert message == make(page.message, page.version).message, page.title


def test_frames_are_read_as_a_broker_and_a_client_would():
    for page in message_pages():
        data = page.example.data
        if page.kind in ("request", "response"):
            assert data == frame(data[4:])
            assert page.api_key is not None
        if page.kind == "request":
            request = read_request(data[4:])
            assert (request.name, request.version) == (page.message, page.version)
            assert wire.to_json(request.body, page.version) == page.example.value
            assert page.example.header is not None
            assert request.header.client_id == page.example.header["clientId"]
        elif page.kind == "response":
            response = read_response(data[4:], page.api_key or 0, page.version)
            assert wire.to_json(response.body, page.version) == page.example.value


def test_records_have_before_them_what_kafka_stores():
    for page in message_pages():
        if page.kind not in ("request", "response"):
            message = wire.decode(page.message, page.version, body_of(page))
            assert page.example.data == keyed.encode_framed(message, page.version), page.title


def test_spans_tile_the_bytes():
    for page in message_pages():
        at = 0
        for span in page.example.spans:
            assert span.start == at, page.title
            assert span.end > span.start, page.title
            at = span.end
        assert at == len(page.example.data), page.title


def test_every_span_belongs_to_a_row_of_the_diagram():
    for page in message_pages():
        paths = {row.path for block in page.diagram for row in block.rows}
        for span in page.example.spans:
            path = span.field.removesuffix("[]") if span.role != "tags" else span.field
            assert path in paths, (page.title, span)


def test_neighbouring_fields_have_different_hues_and_a_length_that_of_its_value():
    for page in message_pages():
        for left, right in zip(page.example.spans, page.example.spans[1:], strict=False):
            if left.path == right.path and "tags" not in (left.role, right.role):
                assert left.hue == right.hue
            elif left.field.removesuffix("[]") != right.field.removesuffix("[]"):
                assert left.hue != right.hue
        assert {span.hue for span in page.example.spans} <= set(range(8))


# --- sense ------------------------------------------------------------------------------------------------------------


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value inside a JSON value with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, f"{path}[]")
    else:
        yield path, value


def test_examples_are_successes():
    seen = 0
    for page in message_pages():
        for path, value in leaves(page.example.value):
            if path.lower().endswith("errorcode"):
                seen += 1
                assert value == 0, (page.title, path)
            if path.lower().endswith("errormessage"):
                assert value in (None, ""), (page.title, path)
    assert seen > 400


QUORUM = ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "DescribeQuorum", "FetchSnapshot")


def test_a_quorum_is_about_the_metadata_partition_and_nothing_else():
    seen = 0
    for page in message_pages():
        if page.ref.kind == "api" and page.ref.name in QUORUM:
            for path, value in leaves(page.example.value):
                if path.endswith(("topicName", "topics[].name")):
                    seen += 1
                    assert value == "__cluster_metadata", page.title
                if path.endswith((".partitionIndex", ".partition", "partitions[].index")):
                    assert value == 0, page.title
                assert "lag" not in path.lower(), "lag is computed by the reader, it is not on the wire"
    assert seen > 20


def test_acknowledge_types_match_their_ranges():
    seen = 0
    for page in message_pages():
        if page.message not in ("ShareFetchRequest", "ShareAcknowledgeRequest"):
            continue
        for topic in page.example.value["topics"]:
            for partition in topic["partitions"]:
                for batch in partition["acknowledgementBatches"]:
                    seen += 1
                    assert page.example.value["shareSessionEpoch"] > 0, "a session that opens has nothing to settle"
                    size = batch["lastOffset"] - batch["firstOffset"] + 1
                    assert len(batch["acknowledgeTypes"]) in (1, size)
                    assert set(batch["acknowledgeTypes"]) <= {0, 1, 2, 3}
    assert seen == 4


def test_record_batches_are_real():
    for page in message_pages():
        for path, _ in leaves(page.example.value):
            if path.endswith("records") and page.message in ("ProduceRequest", "FetchResponse", "ShareFetchResponse"):
                assert ".Batch[0].BaseOffset" in " ".join(span.path for span in page.example.spans)


def test_a_produced_batch_is_one_that_a_broker_takes():
    request = make("ProduceRequest", 13).message
    assert isinstance(request, ProduceRequest)
    records = request.topic_data[0].partition_data[0].records
    (batch,) = split_batches(bytes(records or b""))
    batch.check_crc()
    assert (batch.base_offset, batch.magic, batch.producer_id) == (0, 2, cast.PRODUCER_ID)


def test_fetched_records_end_at_the_high_watermark():
    response = make("FetchResponse", 18).message
    assert isinstance(response, FetchResponse)
    partition = response.responses[0].partitions[0]
    offsets = [record.offset for record in iterate_records(bytes(partition.records or b""))]
    assert offsets[-1] + 1 == partition.high_watermark
    assert offsets[0] == 4120


def test_acquired_records_are_among_those_sent():
    response = make("ShareFetchResponse", 2).message
    assert isinstance(response, ShareFetchResponse)
    partition = response.responses[0].partitions[0]
    sent = {record.offset for record in iterate_records(bytes(partition.records or b""))}
    for acquired in partition.acquired_records:
        assert set(range(acquired.first_offset, acquired.last_offset + 1)) <= sent


def test_share_members_look_like_those_of_java_clients():
    request = make("ShareFetchRequest", 2).message
    assert isinstance(request, ShareFetchRequest)
    assert len(wire.uuid_bytes(request.member_id or "")) == 16


def test_the_checksum_of_the_producer_snapshot_is_right():
    page = page_of("ProducerSnapshot", 1)
    assert page.example.value["crc"] == crc32c(page.example.data[6:])


def test_uuids_are_random_ones_or_zero():
    for page in message_pages():
        for span in page.example.spans:
            if span.type == "uuid" and span.role == "value":
                raw = page.example.data[span.start : span.end]
                assert raw == bytes(16) or (raw[6] >> 4 == 4 and raw[8] >> 6 == 2), (page.title, span)


PLACEHOLDERS = re.compile(r"(?i)foo|bar\b|lorem|test|value-\d|abc|xxx")


def test_texts_are_not_placeholders():
    for page in message_pages():
        for path, value in leaves(page.example.value):
            if isinstance(value, str) and len(value) < 40 and not path.endswith(("Id", "id", "Data", "hmac", "salt")):
                assert not PLACEHOLDERS.search(value), (page.title, path, value)


MAY_BE_EMPTY = {
    "committedMetadata",  # most applications store none
    "metadata",
    "clusterId",  # QuorumStateData v0 leaves it empty
    "subscribedTopicRegex",
    "memberId",  # a first join in ConsumerGroupHeartbeat v0
    "errorMessage",
}


def test_no_text_is_empty_that_would_not_be_in_life():
    for page in message_pages():
        for path, value in leaves(page.example.value):
            if value == "":
                assert path.rpartition(".")[2] in MAY_BE_EMPTY, (page.title, path)


# --- scenes -----------------------------------------------------------------------------------------------------------


def test_every_message_has_a_scene_with_a_caption():
    assert set(scene.names()) == set(wire.names())
    for page in message_pages():
        caption = page.example.caption
        assert caption[:1].isupper() or caption.startswith("min."), page.title
        assert caption.endswith("."), page.title


def unknown_names(message: Message, fields: tuple[Field, ...], given: Any, path: str) -> Iterator[str]:
    """Names in a scene's value that the message has not, in any version."""
    known = {field.name: field for field in fields}
    for name, value in given.items():
        if name not in known:
            yield f"{path}.{name}"
            continue
        inner = message.struct_fields(known[name].type)
        if inner is None:
            continue
        for element in value if isinstance(value, list) else [value]:
            if element is not None:
                yield from unknown_names(message, inner, element, f"{path}.{name}")


@pytest.mark.parametrize("name", wire.names())
def test_scenes_speak_of_fields_that_exist(name: str):
    message = message_schema(name)
    for version in wire.versions(name):
        given = scene.scene_of(name).overrides(version)
        assert list(unknown_names(message, message.fields, given, name)) == []


def test_every_version_of_a_line_exists():
    for name in scene.names():
        versions = wire.versions(name)
        for line in scene.scene_of(name).lines:
            assert any(version in line.versions for version in versions), (name, line)


def test_only_requests_name_a_client():
    for name in scene.names():
        for line in scene.scene_of(name).lines:
            if line.path == ("client",):
                assert MESSAGES[name].kind == "request", name


def test_the_cast_has_no_idle_members():
    words = set()
    for name in scene.names():
        for line in scene.scene_of(name).lines:
            words |= set(re.findall(r"\$(\w+)", line.value))
    for value in (*rules._BY_NAME.values(), *rules._BY_ENTITY.values()):
        if isinstance(value, str) and value.startswith("$"):
            words.add(value[1:])
    for message in ("ShareFetchRequest", "StreamsGroupHeartbeatRequest", "FetchRequest"):
        words |= set(rules.players(message))
    assert set(cast._PLAIN) | set(cast._BUILT) <= words
    for word in words - {"version"}:
        assert cast.value(word) is not None


@pytest.mark.parametrize("text", ["Name\n  Field 1", "Name\n  Field@x: 1"])
def test_a_line_that_is_none_is_refused(text: str):
    (block,) = scene.split_scenes(text).values()
    with pytest.raises((AssertionError, ValueError)):
        scene._parse_scene(block)


def test_a_scene_is_read_as_written():
    (block,) = scene.split_scenes(
        '-- a comment\nName -- All is well.\n  A.B@1-2: [$now, "$x"]\n\n  client: c\n'
    ).values()
    read = scene._parse_scene(block)
    assert read.caption(0) == "All is well."
    assert read.client_id(5) == "c"
    assert read.overrides(0) == {}
    assert read.overrides(2) == {"A": {"B": ["$now", "$x"]}}
