"""The rights that `ottla acls console` prints show all of a cluster, and none of them can be left out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from ottla.cli.acls import OPERATIONS, OPERATOR
from ottla.client import Client
from ottla.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType, add, remove
from ottla.client.blocking import BlockingClient
from ottla.client.properties import settings_of
from ottla.health.samples import Sample
from ottla.observe import QUIET, Observer, Options
from ottla.wire.access import CLUSTER_NAME
from tests.component.broker.raw_client import running_node
from tests.interop.spark import group_history as history
from tests.interop.spark.topics import Topics

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{MODULE} required username="operator" password="secret";',
}
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,LOGIN://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.login.plain.sasl.jaas.config": f'{MODULE} required user_operator="secret";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "ottla.audit.file": "none",
}
OPTIONS = {
    "--cluster": ResourceType.CLUSTER,
    "--topic": ResourceType.TOPIC,
    "--group": ResourceType.GROUP,
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
}


def operator_rules() -> Iterator[Acl]:
    for resource, operations in OPERATOR:
        option, _, name = resource.partition(" ")
        for each in operations:
            yield Acl(
                OPTIONS[option],
                name.strip("'") or CLUSTER_NAME,
                PatternType.LITERAL,
                "User:operator",
                "*",
                OPERATIONS[each],
                Permission.ALLOW,
            )


class Doors(NamedTuple):
    plain: str
    login: str


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with running_node(tmp_path_factory.mktemp("node"), **SETTINGS, **history.LONG_SESSIONS) as running:
        ports = [running.node.advertised[name].port for name in ("PLAINTEXT", "LOGIN")]
        made = Doors(*(f"127.0.0.1:{port}" for port in ports))
        topics = Topics(made.plain)
        history.make_history(topics)
        with BlockingClient(made.plain) as admin:
            admin.call(add, list(operator_rules()))
        yield made
        history.let_go()
        topics.close()


def seen(servers: str, **settings: object) -> set[tuple[str, str, bool]]:
    """What an observer has samples of, and whether there is anything in them."""

    async def observe() -> list[Sample]:
        taken: list[Sample] = []
        async with Client(servers, **QUIET, **settings) as client:  # type: ignore[arg-type]
            watching = Observer(client, "run", Options(), on_sample=taken.append)
            await watching.run(is_enough=lambda: watching.probed_all)
        return taken

    return {
        (each.kind, each.entity, bool(each.body and each.body.get("visible", True))) for each in asyncio.run(observe())
    }


def test_they_show_as_much_as_a_super_user_sees(doors: Doors):
    """The two look at different moments, and something may have happened between them: they get another chance."""
    different = {("", "", True)}
    for _ in range(3):
        if different:
            different = seen(doors.login, **settings_of(LOGIN)) ^ seen(doors.plain)
    assert not different


# READ on the topic of share state is missed only by who observes while members work.
NEEDED = [each for each in operator_rules() if each.operation is not Operation.READ]


NAMES = [f"{each.operation.name} {each.resource_type.name}" for each in NEEDED]


@pytest.mark.parametrize("left_out", NEEDED, ids=NAMES)
def test_none_of_them_can_be_left_out(doors: Doors, left_out: Acl):
    wanted = AclFilter(
        left_out.resource_type, left_out.resource_name, PatternType.LITERAL, operation=Operation(left_out.operation)
    )
    with BlockingClient(doors.plain) as admin:
        assert admin.call(remove, [wanted]) == [left_out]
        try:
            assert seen(doors.login, **settings_of(LOGIN)) != seen(doors.plain)
        finally:
            admin.call(add, [left_out])
