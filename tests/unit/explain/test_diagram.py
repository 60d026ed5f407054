"""The wire diagram: order, depth, types, sizes and marks."""

import pytest

from ottla.explain.diagram import TAGGED_SECTION, diagram, size_text, type_text
from ottla.explain.page import Block, DiagramRow
from ottla.wire.shape import Type
from tests.unit.explain.page_list import message_pages


def block(name: str, version: int, kind: str) -> Block:
    (found,) = [block for block in diagram(name, version) if block.kind == kind]
    return found


def row(name: str, version: int, path: str, kind: str = "body") -> DiagramRow:
    (found,) = [row for row in block(name, version, kind).rows if row.path == path and not row.is_tagged_section]
    return found


def test_size_and_header_come_first():
    kinds = [block.kind for block in diagram("ShareFetchRequest", 2)]
    assert kinds == ["frame", "header", "body"]
    header = block("ShareFetchRequest", 2, "header")
    assert header.title == "RequestHeader v2"
    assert [row.name for row in header.rows] == [
        "RequestApiKey",
        "RequestApiVersion",
        "CorrelationId",
        "ClientId",
        TAGGED_SECTION,
    ]


def test_the_client_id_is_never_compact():
    for version in (1, 2):
        found = row("RequestHeader", version, "RequestHeader.ClientId")
        assert (found.type, found.size) == ("string", "2+n")
        assert "not compact" in found.marks


def test_responses_have_the_short_header():
    assert [row.name for row in block("FetchResponse", 11, "header").rows] == ["CorrelationId"]
    assert [row.name for row in block("FetchResponse", 12, "header").rows] == ["CorrelationId", TAGGED_SECTION]
    assert [row.name for row in block("ApiVersionsResponse", 4, "header").rows] == ["CorrelationId"]


def test_structs_stand_below_their_fields_with_their_own_tagged_section():
    rows = block("ShareFetchRequest", 2, "body").rows
    start = [row.name for row in rows].index("Topics")
    assert [(row.depth, row.name) for row in rows[start : start + 11]] == [
        (0, "Topics"),
        (1, "TopicId"),
        (1, "Partitions"),
        (2, "PartitionIndex"),
        (2, "AcknowledgementBatches"),
        (3, "FirstOffset"),
        (3, "LastOffset"),
        (3, "AcknowledgeTypes"),
        (3, TAGGED_SECTION),
        (2, TAGGED_SECTION),
        (1, TAGGED_SECTION),
    ]


def test_tagged_fields_stand_in_the_section_they_belong_to():
    rows = block("StreamsGroupMetadataValue", 0, "body").rows
    assert [(row.depth, row.name, row.marks) for row in rows[2:5]] == [
        (0, TAGGED_SECTION, ()),
        (1, "ValidatedTopologyEpoch", ("tag 0",)),
        (1, "LastAssignmentConfigs", ("nullable", "tag 1")),
    ]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("StreamsGroupMetadataKey", ["RecordType"]),
        ("StreamsGroupMetadataValue", ["Version"]),
        ("TopicRecord", ["FrameVersion", "RecordType", "Version"]),
    ],
)
def test_what_stands_before_a_record(name: str, form: list[str]):
    assert [row.name for row in block(name, 0, "framing").rows] == form


def test_a_records_field_is_opened():
    (inside,) = [found for found in diagram("FetchResponse", 18) if found.kind == "batch"]
    assert [row.name for row in inside.rows][:5] == [
        "BaseOffset",
        "BatchLength",
        "PartitionLeaderEpoch",
        "Magic",
        "Crc",
    ]
    assert sum(int(row.size) for row in inside.rows[:13]) == 61, "the header of a batch"
    assert not [found for found in diagram("FetchRequest", 18) if found.kind == "batch"]


@pytest.mark.parametrize(
    ("shape", "text", "size"),
    [
        (Type("int32", False, True), "int32", "4"),
        (Type("uuid", False, True), "uuid", "16"),
        (Type("string", True, True), "compact string", "1+n"),
        (Type("string", True, False), "string", "2+n"),
        (Type("bytes", True, False), "bytes", "4+n"),
        (Type("records", True, True), "compact records", "1+n"),
        (Type("array", False, True, element=Type("int32", False, True)), "compact []int32", "1+4n"),
        (Type("array", False, False, element=Type("int8", False, False)), "[]int8", "4+n"),
        (Type("array", False, True, element=Type("string", False, True)), "compact []string", "1+n×(1+n)"),
    ],
)
def test_types_and_sizes(shape: Type, text: str, size: str):
    assert (type_text(shape), size_text(shape)) == (text, size)


def test_the_size_of_a_struct_is_a_number_where_it_is_one():
    path = "ShareFetchResponse.Responses[].Partitions[]"
    assert row("ShareFetchResponse", 2, f"{path}.CurrentLeader").size == "9"
    assert row("ShareFetchResponse", 2, f"{path}.AcquiredRecords").size == "1+n×19"
    assert row("StreamsGroupHeartbeatRequest", 0, "StreamsGroupHeartbeatRequest.UserEndpoint").size == "1+(…)"


def test_marks_say_since_when_and_until_when():
    assert row("ShareFetchRequest", 2, "ShareFetchRequest.IsRenewAck").marks == ("since v2",)
    assert row("ProduceRequest", 12, "ProduceRequest.TopicData[].Name").marks == ("up to v12",)
    assert row("ShareFetchRequest", 2, "ShareFetchRequest.GroupId").marks == ("nullable",)
    inside = "StreamsGroupDescribeResponse.Groups[].TopologyDescription.Subtopologies"
    assert row("StreamsGroupDescribeResponse", 1, inside).marks == (), "said once, of the struct around it"


def test_sizes_agree_with_the_examples():
    """A size that is a number is the number of bytes that the example has there."""
    checked = 0
    for page in message_pages():
        sizes = {row.path: row.size for block in page.diagram for row in block.rows if not row.is_tagged_section}
        for span in page.example.spans:
            size = sizes.get(span.field)
            if size and size.isdigit() and span.role == "value" and span.type not in ("varint", "uvarint"):
                checked += 1
                assert span.end - span.start == int(size), (page.title, span)
    assert checked > 5_000
