"""Errors say which broker, which API, which code, and what it means."""

import pickle

import pytest

from ottla.client import errors
from ottla.client.address import Address, Peer
from ottla.client.errors import (
    BootstrapError,
    ClientError,
    ConnectError,
    ProduceError,
    RequestTimeoutError,
    ResponseError,
    check,
)
from ottla.wire.errors import ErrorCode

PEER = Peer(Address("kafka", 9092), 3)


def test_a_response_error_names_broker_api_subject_and_code():
    error = ResponseError(PEER, "CreateTopics", 36, "topic orders", "Topic 'orders' already exists.")
    assert str(error) == (
        "CreateTopics at broker 3 (kafka:9092) for topic orders: "
        "TOPIC_ALREADY_EXISTS (36): Topic 'orders' already exists."
    )
    assert error.error is ErrorCode.TOPIC_ALREADY_EXISTS
    assert not error.retriable


def test_without_a_message_the_meaning_stands_for_it():
    error = ResponseError(None, "Fetch", 6)
    assert str(error) == f"Fetch: NOT_LEADER_OR_FOLLOWER (6): {ErrorCode.NOT_LEADER_OR_FOLLOWER.meaning}"
    assert error.retriable
    assert error.remedy == ErrorCode.NOT_LEADER_OR_FOLLOWER.remedy


def test_a_code_from_the_future_is_no_crash():
    error = ResponseError(PEER, "Fetch", 9999)
    assert error.error is None
    assert "UNKNOWN_CODE (9999)" in str(error)
    assert error.remedy == ""


def test_only_an_error_code_is_an_error():
    check(PEER, "Fetch", 0)
    with pytest.raises(ResponseError, match="OFFSET_OUT_OF_RANGE"):
        check(PEER, "Fetch", 1)


def test_one_bootstrap_server_speaks_for_itself_and_several_are_listed():
    first = (Address("a", 1), ConnectError(Peer(Address("a", 1)), "connection refused"))
    second = (Address("b", 2), ConnectError(Peer(Address("b", 2)), "unknown host"))
    assert str(BootstrapError([first])) == "cannot connect to a:1: connection refused"
    assert "a:1" in str(BootstrapError([first, second]))
    assert "b:2: unknown host" in str(BootstrapError([first, second]))


@pytest.mark.parametrize(
    "error",
    [
        ResponseError(PEER, "Fetch", 1, "orders-0"),
        ProduceError(PEER, 10, "orders-0", None, [None]),
        RequestTimeoutError(PEER, "Fetch v12", 30_000),
        BootstrapError([(PEER.address, ConnectError(PEER, "refused"))]),
    ],
)
def test_errors_survive_being_sent_to_another_process(error: ClientError):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__.keys() == error.__dict__.keys()
    assert again.retriable == error.retriable


def test_all_errors_are_of_one_family():
    for name in errors.__all__:
        kind = getattr(errors, name)
        if isinstance(kind, type):
            assert issubclass(kind, ClientError)
            assert name in (errors.__doc__ or "")
