"""What a client's errors become: one line, advice, and the exit code that scripts look at."""

from __future__ import annotations

import pytest

from ottla.cli.cluster import Seconds
from ottla.cli.refusal import failure_of
from ottla.client.address import Address, Peer
from ottla.client.errors import (
    AuthenticationError,
    BootstrapError,
    ClientError,
    ConfigurationError,
    ConnectError,
    ProtocolError,
    RequestTimeoutError,
    ResponseError,
    UnknownBrokerError,
    UnsupportedVersionError,
)

HERE = Address("10.0.0.5", 9093)
PEER = Peer(HERE)


def unreachable(*reasons: str) -> BootstrapError:
    return BootstrapError([(HERE, ConnectError(PEER, reason)) for reason in reasons])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (unreachable("connection refused"), 3),
        (BootstrapError([(HERE, AuthenticationError(PEER, "wrong password"))]), 4),
        (BootstrapError([(HERE, ProtocolError(PEER, "an HTTP page"))]), 3),
        (RequestTimeoutError(PEER, "Metadata", 500), 3),
        (UnknownBrokerError(7, [1]), 1),
        (ConfigurationError("no such thing"), 2),
        (UnsupportedVersionError(PEER, "StreamsGroupDescribe", "it does not have this API"), 5),
        (ResponseError(PEER, "Metadata", 29, "topic a"), 4),
        (ResponseError(PEER, "DescribeGroups", 30, "group a"), 4),
        (ResponseError(PEER, "CreateTopics", 35), 5),
        (ResponseError(PEER, "CreateTopics", 36, "topic a"), 1),
        (ResponseError(PEER, "CreateTopics", 9999), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ClientError) else str(value),
)
def test_each_cause_has_its_exit_code(error: ClientError, code: int):
    assert failure_of(error).code == code


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("connection refused", "ottla serve"),
        ("no TLS connection: wrong version number; does it use TLS?", "security.protocol=PLAINTEXT"),
        ("name or service not known", "--bootstrap"),
    ],
)
def test_nobody_there_is_said_with_the_address_and_what_to_try(reason: str, advice: str):
    failure = failure_of(unreachable(reason))
    assert failure.problem == f"no broker at 10.0.0.5:9093: {reason}"
    assert advice in failure.advice


def test_several_lines_of_a_broker_become_one():
    assert "\n" not in failure_of(ResponseError(PEER, "CreateTopics", 36, "topic a", "a is\n there")).problem


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10), ("500ms", 0.5), ("2m", 120), ("1m30s", 90), ("3", 3), ("0.5", 0.5)]
)
def test_times_are_written_with_or_without_a_unit(text: str, seconds: float):
    assert Seconds().convert(text, None, None) == seconds
