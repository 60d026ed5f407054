"""A node stays a member of its cluster while it lives."""

from __future__ import annotations

from pathlib import Path

from ottla.broker.loop.clock import ManualClock
from ottla.wire.errors import ErrorCode
from ottla.wire.types import CreateDelegationTokenRequest, UnregisterBrokerRequest
from tests.component.broker.raw_client import batch, running_node


def test_a_broker_that_was_unregistered_while_it_lives_registers_again(tmp_path: Path) -> None:
    with running_node(tmp_path, ManualClock()) as running:
        client, node = running.client, running.node
        topic = client.topic()
        first_epoch = node.broker_lifecycle.broker_epoch
        assert client.ask(UnregisterBrokerRequest(node.node_id), 0).error_code == 0
        running.until(lambda: client.produce(topic, batch(b"v")).error_code == 0)
        assert node.broker_lifecycle.broker_epoch > first_epoch


def test_a_token_for_somebody_without_a_kind_is_refused_and_answered(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        asked = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name="ann")
        assert running.client.ask(asked, 3).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
