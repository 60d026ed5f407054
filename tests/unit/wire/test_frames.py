"""Frames: size, headers and the exceptions that ApiVersions and the client id make."""

from __future__ import annotations

import pytest

from ottla import wire
from ottla.wire import WireError, frames
from ottla.wire.types.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.types.metadata import MetadataRequest
from tests.unit.wire.message_vectors import raw, vectors

RPC_NAMES = sorted(name for name, cases in vectors().items() if cases[0]["kind"] in ("request", "response"))


@pytest.mark.parametrize("name", RPC_NAMES)
def test_header_versions_are_kafkas_and_a_frame_reads_back(name: str) -> None:
    for case in vectors()[name]:
        key, version = case["apiKey"], case["version"]
        message = wire.decode(name, version, raw(case))
        if case["kind"] == "request":
            assert frames.request_header_version(key, version) == case["headerVersion"]
            sent = frames.write_request(message, version, correlation_id=7, client_id="app")
            (content,), used = frames.split(sent)
            read = frames.read_request(content)
            assert (read.header.client_id, read.header.correlation_id, used) == ("app", 7, len(sent))
            assert (read.name, read.version, read.body) == (name, version, message)
        else:
            assert frames.response_header_version(key, version) == case["headerVersion"]
            sent = frames.write_response(message, version, correlation_id=7)
            (content,), _ = frames.split(sent)
            answer = frames.read_response(content, key, version)
            assert (answer.name, answer.header.correlation_id, answer.body) == (name, 7, message)


def test_headers_are_what_java_writes() -> None:
    for case in vectors()["RequestHeader"]:
        # Only keys and versions that exist say which header version goes before them.
        header = wire.decode("RequestHeader", case["version"], raw(case))
        known = header.request_api_key in frames.api_names()
        if (
            known
            and frames.request_header_version(header.request_api_key, header.request_api_version) == case["version"]
        ):
            assert frames.read_request_header(raw(case) + b"body") == (header, len(raw(case)))


def test_the_client_id_is_not_compact_in_a_flexible_header() -> None:
    sent = frames.write_request(ApiVersionsRequest(), 3, correlation_id=1, client_id="x")
    assert sent[4:].startswith(bytes.fromhex("0012 0003 00000001 0001 78 00".replace(" ", "")))


def test_the_answer_to_api_versions_always_has_header_0() -> None:
    sent = frames.write_response(ApiVersionsResponse(), 3, correlation_id=1)
    assert sent[8:] == wire.encode(ApiVersionsResponse(), 3)


def test_a_null_client_id_and_header_tags() -> None:
    body = wire.encode(MetadataRequest(), 12)
    head = bytes.fromhex("0003 000c 00000009 ffff 01 05 02 6162".replace(" ", ""))
    header, at = frames.read_request_header(head + body)
    assert (header.client_id, header.unknown_tags, at) == (None, {5: b"ab"}, len(head))


def test_an_unserved_version_still_has_a_readable_header() -> None:
    head = bytes.fromhex("0012 0063 00000009 ffff 00".replace(" ", ""))
    header, _ = frames.read_request_header(head)
    assert (header.request_api_key, header.request_api_version) == (18, 99)


def test_split_leaves_what_is_not_whole_and_refuses_what_is_too_large() -> None:
    whole = frames.frame(b"one") + frames.frame(b"two")
    assert frames.split(whole + b"\x00\x00\x00\x09half") == ([b"one", b"two"], len(whole))
    with pytest.raises(WireError, match="a frame of 2147483647 bytes"):
        frames.split(b"\x7f\xff\xff\xff")
    with pytest.raises(WireError, match="-1 bytes"):
        frames.split(b"\xff\xff\xff\xff")


@pytest.mark.parametrize(
    ("hexed", "path"),
    [
        ("", "RequestHeader.RequestApiKey"),
        ("0003 000c 0000", "RequestHeader.CorrelationId"),
        ("0003 000c 00000001 0005 6162", "RequestHeader.ClientId"),
        ("0003 000c 00000001 fffe", "RequestHeader.ClientId"),
        ("0003 000c 00000001 0001 ff 00", "RequestHeader.ClientId"),
        ("0003 000c 00000001 ffff", "RequestHeader"),
        ("7fff 000c 00000001 ffff", "RequestHeader.RequestApiKey"),
    ],
)
def test_a_broken_header_is_explained(hexed: str, path: str) -> None:
    with pytest.raises(WireError) as caught:
        frames.read_request_header(bytes.fromhex(hexed.replace(" ", "")))
    assert caught.value.path == path


def test_a_broken_body_is_reported_at_its_place_in_the_frame() -> None:
    head = bytes.fromhex("0003000c00000001ffff00")
    with pytest.raises(WireError) as caught:
        frames.read_request(head + b"\x00")
    assert caught.value.byte_offset == len(head) + 1


def test_a_cut_response_header_is_refused() -> None:
    with pytest.raises(WireError, match="cut off"):
        frames.read_response(b"\x00\x00", 3, 12)


def test_only_requests_go_into_request_frames() -> None:
    with pytest.raises(WireError, match="is not a request"):
        frames.write_request(ApiVersionsResponse(), 3, correlation_id=1)
