"""The traffic of a node over HTTP: who may watch it, what comes, and that it ends."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from ottla.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType, add, remove
from ottla.client.blocking import BlockingClient
from ottla.client.properties import settings_of
from ottla.testing import Broker, broker
from ottla.testing.ports import PortReservation
from ottla.testing.security import USERS
from ottla.wire.access import CLUSTER_NAME
from ottla.wire.types import ListGroupsRequest
from tests.component.broker.raw_client import RunningNode, running_node

PATH = "/inspect/v1/traffic"
LOCAL = {"ottla.inspect.listeners": "http://127.0.0.1:0", "ottla.inspect.traffic.enable": "true"}
Line = dict[str, Any]


@contextmanager
def asked(port: int, path: str = PATH, user: str = "") -> Iterator[tuple[int, Iterator[Line], Callable[[], str]]]:
    """The status of an answer, its lines, and its text if it is no stream."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    login = b64encode(f"{user}:{USERS.get(user, '')}".encode()).decode()
    try:
        connection.request("GET", path, headers={"Authorization": f"Basic {login}"} if user else {})
        with connection.getresponse() as answer:
            yield answer.status, map(json.loads, iter(answer.readline, b"")), lambda: answer.read().decode()
    finally:
        connection.close()


def refusal(port: int, path: str = PATH, user: str = "") -> tuple[int, str]:
    with asked(port, path, user) as (status, _, text):
        return status, text()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    settings = {name.replace(".", "_"): value for name, value in LOCAL.items()}
    with running_node(tmp_path_factory.mktemp("node"), **settings) as running:
        yield running


def port_of(running: RunningNode) -> int:
    assert running.node.inspect_port is not None
    return running.node.inspect_port


def test_requests_and_responses_come_as_they_pass(running: RunningNode):
    with asked(port_of(running)) as (status, lines, _):
        first = next(lines)
        assert (status, first["kind"], first["node"], first["one_in"]) == (200, "status", 1, 1)
        running.client.ask(ListGroupsRequest(), 4)
        frames = (each for each in lines if each.get("api") == "ListGroups")
        request, response = next(frames), next(frames)
    assert (request["kind"], response["kind"], response["errors"]) == ("request", "response", {})
    assert (request["client_id"], request["principal"], request["broker"]) == ("test", "User:ANONYMOUS", "PLAINTEXT")
    assert response["body"]["groups"] == []


def test_when_the_last_viewer_has_left_nothing_is_attached(running: RunningNode):
    running.until(lambda: running.node.dispatch.tap is None)
    observers = list(running.node.dispatch.observers)
    with asked(port_of(running)) as (_, lines, _):
        next(lines)
        assert running.node.dispatch.tap is not None
    running.until(lambda: running.node.dispatch.tap is None)
    assert running.node.dispatch.observers == observers


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("?size=1", "there is no 'size' here, only client, api, errors\n"),
        ("?api=ListGruops", "unknown API 'ListGruops'; the nearest is ListGroups\n"),
        ("?errors=yes", "errors is 0 or 1\n"),
    ],
)
def test_a_query_that_is_not_understood(running: RunningNode, query: str, why: str):
    assert refusal(port_of(running), PATH + query) == (400, why)


def test_the_node_applies_the_filters(running: RunningNode):
    with asked(port_of(running), f"{PATH}?api=listgroups&client=other-*") as (_, lines, _):
        next(lines)
        running.client.ask(ListGroupsRequest(), 4)
        running.client.connect("other-1").ask(ListGroupsRequest(), 4)
        frame = next(each for each in lines if each["kind"] != "status")
    assert frame["client_id"] == "other-1"


def test_a_node_that_stops_ends_its_streams(tmp_path: Path):
    settings = {name.replace(".", "_"): value for name, value in LOCAL.items()}
    with running_node(tmp_path, **settings) as running, asked(port_of(running)) as (_, lines, _):
        next(lines)
        running.change(running.node._pages.close)
        assert all(each["kind"] in ("status", "request", "response") for each in lines)


def test_it_is_off_unless_the_settings_say_so(tmp_path: Path):
    with running_node(tmp_path, ottla_inspect_listeners=LOCAL["ottla.inspect.listeners"]) as running:
        assert refusal(port_of(running)) == (403, "needs ottla.inspect.traffic.enable=true on node 1\n")
        assert running.node.dispatch.tap is None


# --- rights -----------------------------------------------------------------------------------------------------------


@contextmanager
def secured(audit: Path) -> Iterator[tuple[Broker, int]]:
    reserved = PortReservation()
    reserved.release()
    settings = {
        **LOCAL,
        "ottla.inspect.listeners": f"http://127.0.0.1:{reserved.port}",
        "ottla.web.security.listener.name": "SASL_PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "ottla.audit.file": str(audit),
    }
    try:
        with broker(security="sasl_plaintext", **settings) as made:
            yield made, reserved.port
    finally:
        reserved.close()


@contextmanager
def as_admin(made: Broker) -> Iterator[BlockingClient]:
    with BlockingClient(made.bootstrap_servers, **settings_of(made.security.client_properties("admin"))) as client:
        yield client


def right(operation: Operation) -> Acl:
    return Acl(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL, "User:bob", "*", operation, Permission.ALLOW)


def test_it_takes_the_right_to_alter_the_cluster_and_is_audited(tmp_path: Path):
    audit = tmp_path / "audit.jsonl"
    needed = (403, "needs ALTER on the cluster (you are User:bob)\n")
    with secured(audit) as (made, port):
        assert refusal(port)[0] == 401
        assert refusal(port, user="bob") == needed, "a stranger"
        with as_admin(made) as admin:
            admin.call(add, [right(Operation.DESCRIBE)])
            assert refusal(port, user="bob") == needed, "to describe is not enough"
            admin.call(add, [right(Operation.ALTER)])
            with asked(port, f"{PATH}?client=a*&errors=1", "bob") as (status, lines, _):
                assert (status, next(lines)["kind"]) == (200, "status")
                admin.call(remove, [AclFilter(operation=Operation.ALTER)])
                assert {each["kind"] for each in lines} <= {"status"}, "it ends when the right is gone"
        made.stop()
    told = [json.loads(line) for line in audit.read_text().splitlines()]
    (started,) = [each for each in told if each["event"] == "tap.started"]
    assert started | {"at": ""} == {
        "at": "",
        "event": "tap.started",
        "principal": "User:bob",
        "host": "127.0.0.1",
        "listener": "inspect",
        "api": "Traffic",
        "filters": {"client": ["a*"], "api": [], "errors": True},
    }
    denied = [each for each in told if each["event"] == "authz.denied" and each["api"] == "Traffic"]
    assert {(each["principal"], each["op"], each["resource"]) for each in denied} == {
        ("User:bob", "ALTER", f"Cluster:{CLUSTER_NAME}")
    }


def test_logins_pass_without_their_secrets(tmp_path: Path):
    with secured(tmp_path / "audit.jsonl") as (made, port):
        with asked(port, f"{PATH}?api=SaslAuthenticate", "admin") as (_, lines, _):
            next(lines)
            own = made.security.client_properties("alice", mechanism="PLAIN")
            with BlockingClient(made.bootstrap_servers, **settings_of(own)):
                pass
            frames = (each for each in lines if each["kind"] != "status")
            request, response = next(frames), next(frames)
        made.stop()
    assert list(request["body"]["authBytes"]) == ["withheld_bytes"]
    assert (request["errors"], response["errors"]) == ({}, {})
    for each in (request, response):
        assert "alice-secret" not in json.dumps(each)
        assert b64encode(b"alice-secret").decode()[:12] not in json.dumps(each)
