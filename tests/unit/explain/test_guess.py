"""What bytes are, when nobody says: judged by messages that Kafka's own classes wrote."""

import random
import struct
from collections import Counter
from functools import cache
from typing import Any

import pytest

from ottla.explain.guess import RECORD_BATCH, Verdict, guess, guess_name, guess_response
from ottla.wire import frames, types
from ottla.wire.batch import Record, build_batch
from tests.unit.explain import packets as made
from tests.unit.wire import batch_vectors, message_vectors

EVERY = 8
"""Of all golden vectors of a case, every so many are guessed."""


@cache
def vectors(case: str, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    found = [
        vector
        for cases in message_vectors.vectors().values()
        for vector in cases
        if vector["case"] == case and vector["kind"] in kinds
    ]
    return found[::EVERY]


def rates(case: str, kinds: tuple[str, ...], form: str) -> tuple[float, float, Counter[str], Counter[str]]:
    """How often the right message came first, and among the first three; and both by how sure the guess was."""
    first = third = 0
    said: Counter[str] = Counter()
    right: Counter[str] = Counter()
    some = vectors(case, kinds)
    for vector in some:
        verdict = guess(wrapped(vector, form))
        names = [candidate.name for candidate in verdict.candidates]
        first += names[:1] == [vector["name"]]
        third += vector["name"] in names[:3]
        said[verdict.phrase] += 1
        right[verdict.phrase] += names[:1] == [vector["name"]]
    return first / len(some), third / len(some), said, right


def wrapped(vector: dict[str, Any], form: str) -> bytes:
    body = message_vectors.raw(vector)
    if form == "framed":
        return bytes.fromhex(vector["framedHex"]) if vector.get("framedHex") else body
    if form == "bare":
        return body
    flexible_tags = b"\0" if vector["headerVersion"] == (2 if form == "request" else 1) else b""
    if form == "request":
        head = struct.pack(">hhih", vector["apiKey"], vector["version"], 77, 5) + b"cli-1"
    else:
        head = struct.pack(">i", 1234)
    return frames.frame(head, flexible_tags, body)


@pytest.mark.parametrize(
    ("case", "kinds", "form", "first_min", "third_min"),
    [
        # Dense content is random, which is adverse: what is left are layouts that several messages share.
        ("dense", ("request", "response"), "bare", 0.75, 0.92),
        ("mixed", ("request", "response"), "bare", 0.70, 0.85),
        ("dense", ("response",), "response", 0.75, 0.92),
        ("dense", ("request",), "request", 1.0, 1.0),
        ("sparse", ("request",), "request", 1.0, 1.0),
        ("default", ("request",), "request", 1.0, 1.0),
        ("dense", ("coordinator-key", "coordinator-value", "metadata"), "framed", 0.85, 0.95),
    ],
)
def test_the_right_message_comes_first_or_nearly(
    case: str, kinds: tuple[str, ...], form: str, first_min: float, third_min: float
):
    first, third, said, right = rates(case, kinds, form)
    assert first >= first_min
    assert third >= third_min
    # Whoever says "certain" must be right.
    assert right["certain"] == said["certain"]
    assert right["nearly certain"] >= 0.9 * said["nearly certain"]


@pytest.mark.parametrize("has_size", [True, False])
def test_a_request_behind_its_header_is_certain(has_size: bool):
    data = made.heartbeat_request(3, "orders-app")
    verdict = guess(data if has_size else data[4:])
    assert verdict.phrase == "certain"
    assert verdict.best is not None
    assert (verdict.best.name, verdict.best.versions) == ("HeartbeatRequest", (4,))
    assert verdict.best.wrapping == (has_size, "request header")


def test_versions_with_the_same_layout_are_one_candidate():
    topic = types.FetchResponse.FetchableTopicResponse(topic_id=made.topic_id("orders"))
    response = types.FetchResponse(session_id=7, responses=(topic,))
    verdict = guess(frames.write_response(response, 13, correlation_id=3))
    assert verdict.best is not None
    assert verdict.best.name == "FetchResponse"
    assert set(verdict.best.versions) == {13, 14, 15, 16, 17, 18}
    assert verdict.best.version == 18


def test_an_unstable_version_is_not_proposed_where_a_stable_one_fits():
    request = types.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    verdict = guess_name(frames.write_request(request, 5, correlation_id=1)[18:], ["InitProducerIdRequest"])
    assert verdict.best is not None
    assert verdict.best.version < 6


def test_half_a_request_with_its_header_is_named_all_the_same():
    verdict = guess(made.metadata_request(1, "orders", "payments")[:-12])
    assert verdict.best is not None
    assert verdict.best.name == "MetadataRequest"
    assert verdict.best.error is not None
    assert verdict.phrase == "by its header, though not whole"


def test_half_a_bare_message_is_a_weak_guess():
    body = made.metadata_response(1, "orders", brokers=3)[9:]
    verdict = guess(body[:-9])
    assert verdict.best is not None
    assert verdict.best.error is not None
    assert verdict.phrase == "half of it, at best"


def test_what_fits_nothing_is_said_to():
    noise = random.Random(1).randbytes(200)
    assert guess(noise).best is None
    assert guess(noise).phrase == "nothing fits"


def test_a_name_alone_gives_version_and_wrapping():
    data = made.metadata_request(1, "orders")
    for start, wrapping in ((0, (True, "request header")), (4, (False, "request header")), (17, (False, "nothing"))):
        verdict = guess_name(data[start:], ["MetadataRequest"])
        assert verdict.best is not None
        assert verdict.best.wrapping == wrapping
        assert 12 in verdict.best.versions


def test_an_api_means_request_and_response():
    names = ["HeartbeatRequest", "HeartbeatResponse"]
    for data, name in ((made.heartbeat_request(1, "g"), names[0]), (made.heartbeat_response(1), names[1])):
        verdict = guess_name(data, names)
        assert verdict.best is not None
        assert verdict.best.name == name


def test_a_version_that_is_named_is_kept():
    data = made.heartbeat_request(1, "g")[14:]
    verdict = guess_name(data, ["HeartbeatRequest"], 4)
    assert verdict.best is not None
    assert verdict.best.versions == (4,)


def test_a_record_batch_is_known_by_its_checksum():
    batch = build_batch([Record(0, 1, b"k", b"v")])
    for data in (batch, batch * 3, batch + batch[:30]):
        verdict = guess(data)
        assert verdict.best is not None
        assert (verdict.best.name, verdict.best.error) == (RECORD_BATCH, None)
        assert verdict.phrase == "certain"


@pytest.mark.parametrize("group", ["v0", "v1", "v2", "control", "multi"])
def test_all_golden_batches_are_known(group: str):
    for vector in batch_vectors.good():
        if vector["group"] == group:
            verdict = guess(batch_vectors.raw(vector))
            assert verdict.best is not None
            assert verdict.best.name == RECORD_BATCH, vector["name"]


def test_a_damaged_or_cut_batch_is_still_one():
    batch = build_batch([Record(0, 1_700_000_000_000, b"key", b"value" * 20)])
    damaged = batch[:-3] + b"\0\0\0"
    for data in (damaged, batch[:70]):
        verdict = guess(data)
        assert verdict.best is not None
        assert verdict.best.name == RECORD_BATCH
        assert verdict.best.error is not None


def test_a_response_in_a_frame_convinces_and_noise_does_not():
    assert guess_response(made.metadata_response(4, "orders")[4:]).is_convincing
    assert not guess_response(b"\x00\x00\x00\x07" + bytes(range(100, 140))).is_convincing
    assert not guess_response(b"").is_convincing


def test_sureness_is_halved_where_two_messages_fit_alike():
    verdict = guess(types_alike())
    assert len(verdict.candidates) > 1
    assert verdict.sureness == pytest.approx(0.5, abs=0.05)
    assert verdict.phrase == "one of several that fit"


def types_alike() -> bytes:
    """OffsetDeleteRequest and an old OffsetFetchRequest have one layout."""
    [vector] = [v for v in message_vectors.vectors()["OffsetDeleteRequest"] if v["case"] == "dense"]
    return message_vectors.raw(vector)


def test_names_of_candidates_differ():
    verdict: Verdict = guess(b"\x00\x00\x00\x00\x00\x00")
    names = [candidate.name for candidate in verdict.candidates]
    assert len(set(names)) == len(names) > 1
