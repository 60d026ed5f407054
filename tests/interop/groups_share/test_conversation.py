"""What a broker answers to a conversation, and what it writes for it, is what was recorded from Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable

from tests.interop.groups.brokers import Node
from tests.interop.groups_consumer.record import recorded
from tests.interop.groups_share.record import GOLDEN, SETTINGS, listen_to


def test_the_conversation_goes_as_recorded(boot: Callable[..., Node]):
    for heard, expected in zip(listen_to(boot(**SETTINGS)), recorded(GOLDEN), strict=True):
        assert heard == expected
