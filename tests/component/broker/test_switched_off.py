"""Logins, ACLs and delegation tokens where there are none: byte for byte what Apache Kafka 4.3.1 answers.

tests/interop/admin asks the same of Apache Kafka, on its brokers' and on its controllers' listener.
"""

from __future__ import annotations

from typing import Any

import pytest

from ottla.wire.types import (
    ApiVersionsRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.component.broker.raw_client import Closed, RawClient

READ, ALLOW, TOPIC, LITERAL, ANY = 3, 3, 2, 3, 1
ACL = CreateAclsRequest.AclCreation(TOPIC, "t", LITERAL, "User:a", "*", READ, ALLOW)
FILTER = DeleteAclsRequest.DeleteAclsFilter(TOPIC, "t", LITERAL, None, None, ANY, ANY)
RENEWERS = tuple(CreateDelegationTokenRequest.CreatableRenewers(kind, "x") for kind in ("User", "Group"))
NO_AUTHORIZER = "No Authorizer is configured."

NO_LOGIN = "SaslAuthenticate request received after successful authentication"


def kept(text: str) -> str:
    return f"{len(text):04x}{text.encode().hex()}"


def compact(text: str) -> str:
    return f"{len(text) + 1:02x}{text.encode().hex()}"


NO_TIMES = "ff" * 24
ANONYMOUS = kept("User") + kept("ANONYMOUS")
ANONYMOUS_COMPACT = compact("User") + compact("ANONYMOUS")

ANSWERS: list[tuple[Any, int, str]] = [
    *((SaslHandshakeRequest("PLAIN"), version, "0022 00000000") for version in (0, 1)),
    (SaslAuthenticateRequest(b"\0a\0b"), 0, "0022" + kept(NO_LOGIN) + "00000000"),
    (SaslAuthenticateRequest(b"\0a\0b"), 1, "0022" + kept(NO_LOGIN) + "00000000" + "00" * 8),
    (SaslAuthenticateRequest(b""), 2, "00 0022" + compact(NO_LOGIN) + "01" + "00" * 8 + "00"),
    (
        DescribeAclsRequest(TOPIC, "t", LITERAL, None, None, ANY, ANY),
        1,
        "00000000 0036" + kept("No Authorizer is configured on the broker") + "00000000",
    ),
    *(
        (
            DescribeAclsRequest(99, None, -1, "User:a", "h", ANY, 77),
            version,
            "00 00000000 0036" + compact("No Authorizer is configured on the broker") + "0100",
        )
        for version in (2, 3)
    ),
    (CreateAclsRequest((ACL, ACL)), 1, "00000000 00000002" + ("0036" + kept(NO_AUTHORIZER)) * 2),
    (CreateAclsRequest(()), 1, "00000000 00000000"),
    *(
        (CreateAclsRequest((ACL, ACL)), version, "00 00000000 03" + ("0036" + compact(NO_AUTHORIZER) + "00") * 2 + "00")
        for version in (2, 3)
    ),
    (DeleteAclsRequest((FILTER,)), 1, "00000000 00000001 0036" + kept(NO_AUTHORIZER) + "00000000"),
    (DeleteAclsRequest((FILTER,)), 3, "00 00000000 02 0036" + compact(NO_AUTHORIZER) + "010000"),
    (CreateDelegationTokenRequest(), 1, "0040" + ANONYMOUS + NO_TIMES + "0000 00000000 00000000"),
    (
        CreateDelegationTokenRequest(renewers=RENEWERS, max_lifetime_ms=5),
        2,
        "00 0040" + ANONYMOUS_COMPACT + NO_TIMES + "01 01 00000000 00",
    ),
    (
        CreateDelegationTokenRequest("User", "bob", RENEWERS, 5),
        3,
        "00 0040" + compact("User") + compact("bob") + ANONYMOUS_COMPACT + NO_TIMES + "01 01 00000000 00",
    ),
    (
        CreateDelegationTokenRequest("User", "", (), 5),
        3,
        "00 0040" + ANONYMOUS_COMPACT * 2 + NO_TIMES + "01 01 00000000 00",
    ),
    (RenewDelegationTokenRequest(b"abc", 5), 1, "0040" + "ff" * 8 + "00000000"),
    (RenewDelegationTokenRequest(b"abc", 5), 2, "00 0040" + "ff" * 8 + "00000000 00"),
    (ExpireDelegationTokenRequest(b"abc", 5), 1, "0040" + "ff" * 8 + "00000000"),
    (ExpireDelegationTokenRequest(b"abc", 5), 2, "00 0040" + "ff" * 8 + "00000000 00"),
]
OF_BROKERS = [
    (DescribeDelegationTokenRequest(None), 1, "0040 00000000 00000000"),
    (DescribeDelegationTokenRequest(()), 3, "00 0040 01 00000000 00"),
]
OF_CONTROLLERS = [
    (DescribeDelegationTokenRequest(None), 1, "ffff 00000000 00000000"),
    (DescribeDelegationTokenRequest(()), 3, "00 ffff 01 00000000 00"),
]


def check(client: RawClient, message: Any, version: int, wanted: str) -> None:
    connection = client.connect()
    for _ in range(2):  # the connection stays
        number = connection.send(message, version)
        assert connection.receive_bytes() == number.to_bytes(4, "big") + bytes.fromhex(wanted)


def sample(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    return "" if isinstance(value, str) else type(value).__name__


@pytest.mark.parametrize(("message", "version", "wanted"), ANSWERS + OF_BROKERS, ids=sample)
def test_a_brokers_listener(client: RawClient, message: Any, version: int, wanted: str) -> None:
    check(client, message, version, wanted)


@pytest.mark.parametrize(("message", "version", "wanted"), ANSWERS + OF_CONTROLLERS, ids=sample)
def test_a_controllers_listener(controller_client: RawClient, message: Any, version: int, wanted: str) -> None:
    check(controller_client, message, version, wanted)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_number_0_in_place_of_a_kind_ends_the_connection(client: RawClient, place: int, version: int) -> None:
    resource, pattern, operation, permission = (0 if at == place else 2 for at in range(4))
    for message in (
        DescribeAclsRequest(resource, "t", pattern, None, None, operation, permission),
        CreateAclsRequest((CreateAclsRequest.AclCreation(resource, "t", pattern, "U:a", "*", operation, permission),)),
        DeleteAclsRequest(
            (DeleteAclsRequest.DeleteAclsFilter(resource, "t", pattern, None, None, operation, permission),)
        ),
    ):
        with pytest.raises(Closed):
            client.connect().ask(message, version)


def test_all_are_told_of(client: RawClient) -> None:
    told = {each.api_key: (each.min_version, each.max_version) for each in client.ask(ApiVersionsRequest(), 0).api_keys}
    wanted = {
        17: (0, 1),
        36: (0, 2),
        29: (1, 3),
        30: (1, 3),
        31: (1, 3),
        38: (1, 3),
        39: (1, 2),
        40: (1, 2),
        41: (1, 3),
    }
    wanted |= {48: (0, 1), 49: (0, 1), 50: (0, 0), 51: (0, 0)}
    assert {key: told.get(key) for key in wanted} == wanted
