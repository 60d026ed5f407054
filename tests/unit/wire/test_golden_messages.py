"""Every message and record in every version, against bytes and JSON that Kafka's Java classes wrote."""

from __future__ import annotations

from typing import Any

import pytest

from ottla import wire
from ottla.wire.compile import classes_of, message_shape
from ottla.wire.trace import Span, encode_slowly, trace
from tests.unit.wire.message_vectors import raw, vectors

NAMES = sorted(vectors())


def test_the_vectors_cover_every_message_and_version() -> None:
    held = {(name, case["version"]) for name, cases in vectors().items() for case in cases}
    ours = {(name, version) for name in wire.names() for version in wire.versions(name)}
    assert ours == held


@pytest.mark.parametrize("name", NAMES)
def test_bytes_become_a_value_and_the_same_bytes_again(name: str) -> None:
    for case in vectors()[name]:
        message = wire.decode(name, case["version"], raw(case))
        assert wire.encode(message, case["version"]) == raw(case), case["case"]


@pytest.mark.parametrize("name", NAMES)
def test_json_is_what_kafkas_converter_writes_and_gives_the_bytes_back(name: str) -> None:
    for case in vectors()[name]:
        message = wire.decode(name, case["version"], raw(case))
        assert wire.to_json(message, case["version"]) == case["json"], case["case"]
        if not case.get("unknownTags"):
            from_json = wire.from_json(name, case["version"], case["json"])
            assert from_json == message, case["case"]
            assert wire.encode(from_json, case["version"]) == raw(case), case["case"]


@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_agrees_and_its_spans_tile_the_bytes(name: str) -> None:
    for case in vectors()[name]:
        shape = message_shape(name, case["version"])
        traced = trace(shape, classes_of(name), raw(case))
        assert traced.error is None
        assert traced.message == wire.decode(name, case["version"], raw(case))
        assert encode_slowly(shape, traced.message) == raw(case)
        assert covered(traced.spans) == len(raw(case))


def covered(spans: list[Span]) -> int:
    """Where gapless spans end; fails at a gap, an overlap or a span of no bytes."""
    position = 0
    for span in spans:
        assert span.start == position
        assert span.end > span.start
        position = span.end
    return position


@pytest.mark.parametrize("name", NAMES)
def test_unknown_tags_are_kept_where_they_were(name: str) -> None:
    for case in vectors()[name]:
        message = wire.decode(name, case["version"], raw(case))
        for unknown in case.get("unknownTags", []):
            holder = follow(message, unknown["path"])
            assert holder.unknown_tags[unknown["tag"]] == bytes.fromhex(unknown["hex"])


def follow(message: Any, path: list[str | int]) -> Any:
    for step in path:
        message = message[step] if isinstance(step, int) else getattr(message, attribute(message, step))
    return message


def attribute(message: Any, json_name: str) -> str:
    plain = json_name.replace("_", "").lower()
    return next(attr for attr in message.__struct_fields__ if attr.replace("_", "") == plain)


@pytest.mark.parametrize("name", NAMES)
def test_other_buffers_than_bytes_are_read_alike(name: str) -> None:
    case = vectors()[name][-1]
    expected = wire.decode(name, case["version"], raw(case))
    assert wire.decode(name, case["version"], bytearray(raw(case))) == expected
    assert wire.decode(name, case["version"], memoryview(raw(case))) == expected
