"""Commands for conversations with classic groups. All are about group g unless they say otherwise.

join c1 [version] [{fields}]          JoinGroup as a consumer, with the member id that c1 was last told
sync c1 [version] [{c1: 0, c2: 1}]    SyncGroup; the leader says which partition of t each client gets
hb c1 [version] [{fields}]            Heartbeat
leave c1 [version] [{fields}]         LeaveGroup
stable c1 c2 ...                      make these clients a stable group, quietly; c1 leads
"""

from __future__ import annotations

from typing import Any

from ottla.testing.simulation.commands import Words, command
from ottla.testing.simulation.scenario import Scenario
from ottla.testing.simulation.shorthand import parse

SUBSCRIPTION = parse("subscription(t)")


def told(scenario: Scenario, client: str, field: str, default: Any) -> Any:
    return scenario.client(client).told.get(field, default)


def request(scenario: Scenario, words: Words, api: str, version: int, fields: dict[str, Any]) -> str:
    """Send what a command says, over what it says nothing about."""
    client, given_version = words.next(), words.next_number()
    known = {
        "group_id": "g",
        "member_id": told(scenario, client, "member_id", ""),
        "generation_id": told(scenario, client, "generation_id", -1),
    }
    names = scenario._request_class(api).__struct_fields__  # type: ignore[attr-defined]
    fields = {name: value for name, value in known.items() if name in names} | fields
    given = words.value() if words.text else {}
    scenario.send(client, api, version if given_version is None else given_version, fields | given)
    return client


@command("join")
def join(scenario: Scenario, words: Words) -> None:
    fields = {
        "protocol_type": "consumer",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    }
    request(scenario, words, "JoinGroup", 9, fields)


@command("sync")
def sync(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    version = 5 if version is None else version
    given = words.value() if words.text else {}
    assignments = [
        {"member_id": told(scenario, name, "member_id", name), "assignment": parse(f"assignment(t=[{partition}])")}
        for name, partition in given.items()
    ]
    fields = {
        "group_id": "g",
        "member_id": told(scenario, client, "member_id", ""),
        "generation_id": told(scenario, client, "generation_id", -1),
        "assignments": assignments,
    }
    if version >= 5:
        fields |= {"protocol_type": "consumer", "protocol_name": told(scenario, client, "protocol_name", "range")}
    scenario.send(client, "SyncGroup", version, fields)


@command("hb")
def heartbeat(scenario: Scenario, words: Words) -> None:
    request(scenario, words, "Heartbeat", 4, {})


@command("leave")
def leave(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    version = 5 if version is None else version
    fields: dict[str, Any] = words.value() if words.text else {}
    member_id = told(scenario, client, "member_id", "")
    if version < 3:
        fields = {"member_id": member_id} | fields
    else:
        fields = {"members": [{"member_id": member_id} | fields]} if "members" not in fields else fields
    scenario.send(client, "LeaveGroup", version, {"group_id": "g"} | fields)


@command("stable")
def stable(scenario: Scenario, words: Words) -> None:
    """Each of the clients may have a static name: c1/i1."""
    heard, hides = scenario.lines, scenario.hides_records
    scenario.lines, scenario.hides_records = [], True
    names = words.text.split()
    clients = [name.partition("/")[0] for name in names]
    for name in names:
        client, _, instance_id = name.partition("/")
        static = f" {{group_instance_id: {instance_id}}}" if instance_id else ""
        join(scenario, Words(client + static))
        scenario.host.turn()
        if not instance_id:
            join(scenario, Words(client))
            scenario.host.turn()
    scenario.advance(60_000)  # the initial delay is over, however often it was extended
    sync(scenario, Words(f"{clients[0]} {{{', '.join(f'{each}: {at}' for at, each in enumerate(clients))}}}"))
    for client in clients[1:]:
        sync(scenario, Words(client))
    scenario.host.turn()
    scenario.lines, scenario.hides_records = heard, hides
    scenario.send("tool", "DescribeGroup", 6, {"group_id": "g"})
