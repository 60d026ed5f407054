"""The schema text says what the published schemas say, and nothing was lost on the way."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.wire.index import MESSAGES
from ottla.wire.schemas import message_schema
from ottla.wire.text import Field, SchemaError, parse_messages, parse_range
from tests.unit.wire.message_vectors import read_lines

PUBLISHED = {line["name"]: line for line in read_lines("schemas") if line["validVersions"] != "none"}
KIP_1331_FIELDS = {"StoredDescriptionTopologyEpoch", "FailedDescriptionTopologyEpoch"}
"""Kafka 4.4 adds these to StreamsGroupMetadataValue; the published schemas of 4.3.1 do not have them."""


def test_every_published_message_is_there() -> None:
    assert set(MESSAGES) == set(PUBLISHED)


def test_all_apis_from_0_to_94_but_the_retired_ones() -> None:
    keys = {entry.key for entry in MESSAGES.values() if entry.kind == "request"}
    assert keys == set(range(95)) - {4, 5, 6, 7}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_text_equals_the_published_schema(name: str) -> None:
    published, ours = PUBLISHED[name], message_schema(name)
    assert ours.kind == published["type"]
    assert ours.key == published.get("apiKey")
    assert str(ours.versions) == published["validVersions"]
    assert str(ours.flexible) == published["flexibleVersions"]
    assert list(ours.listeners) == published.get("listeners", [])
    assert ours.unstable == published.get("latestVersionUnstable", False)
    compare_fields(published["fields"], tuple(f for f in ours.fields if f.name not in KIP_1331_FIELDS))
    structs = published.get("commonStructs", [])
    assert [struct.name for struct in ours.structs] == [struct["name"] for struct in structs]
    for theirs, struct in zip(structs, ours.structs, strict=True):
        assert str(struct.versions) == theirs["versions"]
        compare_fields(theirs["fields"], struct.fields)


def compare_fields(published: list[dict[str, Any]], ours: tuple[Field, ...]) -> None:
    for theirs, field in zip(published, ours, strict=True):
        assert facts(field) == published_facts(theirs)
        compare_fields(theirs.get("fields", []), field.fields)


def facts(field: Field) -> dict[str, object]:
    return {
        "name": field.name,
        "type": "[]" * field.is_array + field.type,
        "versions": str(field.versions),
        "nullable": str(field.nullable),
        "tag": field.tag,
        "tagged": str(field.tagged),
        "default": None if field.default is None else str(field.default).lower(),
        "entity": field.entity,
        "flags": (field.is_key, field.ignorable, field.zerocopy),
        "flexible": None if field.flexible is None else str(field.flexible),
    }


def published_facts(theirs: dict[str, Any]) -> dict[str, object]:
    default = theirs.get("default")
    if isinstance(default, str) and default.startswith("0x"):
        default = int(default, 16)
    return {
        "name": theirs["name"],
        "type": theirs["type"],
        "versions": theirs.get("versions", theirs.get("taggedVersions")),
        "nullable": theirs.get("nullableVersions", "none"),
        "tag": theirs.get("tag"),
        "tagged": theirs.get("taggedVersions", "none"),
        "default": None if default is None else str(default).lower(),
        "entity": theirs.get("entityType"),
        # One published schema has its flag as a text.
        "flags": tuple(theirs.get(flag) in (True, "true") for flag in ("mapKey", "ignorable", "zeroCopy")),
        "flexible": theirs.get("flexibleVersions"),
    }


def test_the_two_fields_of_kafka_4_4_are_tagged_and_default_to_minus_one() -> None:
    fields = {field.name: field for field in message_schema("StreamsGroupMetadataValue").fields}
    assert [(fields[name].tag, fields[name].default) for name in sorted(KIP_1331_FIELDS)] == [(3, -1), (2, -1)]


def test_only_init_producer_id_has_an_unstable_version() -> None:
    assert [name for name, entry in MESSAGES.items() if entry.unstable] == ["InitProducerIdRequest"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("nonsense", "line 1: not a message"), ("data X versions 0\n  Name string", "line 2: not a field: Name string")],
)
def test_a_bad_line_is_named(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        parse_messages(text)


@pytest.mark.parametrize("text", ["none", "3", "3+", "3-7"])
def test_a_range_prints_as_it_was_written(text: str) -> None:
    assert str(parse_range(text)) == text
