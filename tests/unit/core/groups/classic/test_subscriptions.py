from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.groups.classic.subscriptions import SubscribedTopics, subscription_of, version_of
from ottla.wire.keyed import encode_framed
from ottla.wire.types.consumer_protocol import ConsumerProtocolSubscription

ASKED = ConsumerProtocolSubscription(("a", "b"))


@pytest.mark.parametrize("version", range(4))
def test_all_versions(version: int) -> None:
    metadata = encode_framed(ASKED, version)
    assert version_of(metadata) == version
    subscription = subscription_of(metadata)
    assert subscription is not None
    assert subscription.topics == ("a", "b")
    assert SubscribedTopics([metadata]).topics == {"a", "b"}


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    metadata = b"\x00\x09" + encode_framed(ASKED, 3)[2:] + b"new fields"
    assert version_of(metadata) == 9
    subscription = subscription_of(metadata)
    assert subscription is not None
    assert subscription.topics == ("a", "b")


@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\xff\xff\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00\x05\x00"])
def test_what_cannot_be_read(metadata: bytes) -> None:
    assert subscription_of(metadata) is None
    assert SubscribedTopics([encode_framed(ASKED, 0), metadata]).topics is None


@given(st.binary(max_size=64))
def test_anything_is_read_or_is_not(metadata: bytes) -> None:
    subscription = subscription_of(metadata)
    topics = SubscribedTopics([metadata]).topics
    if subscription is not None:
        assert topics == set(subscription.topics)


def test_nobody_subscribes_to_nothing() -> None:
    assert SubscribedTopics([]).topics == frozenset()
