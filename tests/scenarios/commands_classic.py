"""Commands for conversations with classic groups. All are about group g unless they say otherwise.

join c1 [version] [{fields}]          JoinGroup as a consumer, with the member id that c1 was last told
sync c1 [version] [{c1: 0, c2: 1}]    SyncGroup; the leader says which partition of t each client gets
hb c1 [version] [{fields}]            Heartbeat
leave c1 [version] [{fields}]         LeaveGroup
commit c1 [generation] [member id]     OffsetCommit for the first partition of t
lives c1 c2 60000                     time passes, and these clients send heartbeats every 3 s, quietly
stable c1 c2 ...                      make these clients a stable group, quietly; c1 leads
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simulation.commands import Words, command
from simulation.scenario import Scenario
from simulation.shorthand import parse

DELAY = "group.initial.rebalance.delay.ms"
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
    with quiet(scenario):
        make_stable(scenario, words.text.split())
    group: Any = scenario.core.families["classic"].table.get("g")  # type: ignore[attr-defined]
    about = f"{group.state} generation={group.generation} leader={group.leader_id} members={', '.join(group.members)}"
    scenario.write(f"g is {scenario.environment.ids.shorten(about)}")


@contextmanager
def quiet(scenario: Scenario) -> Iterator[None]:
    """What happens meanwhile is not written down."""
    heard, hides = scenario.lines, scenario.hides_records
    scenario.lines, scenario.hides_records = [], True
    yield
    scenario.lines, scenario.hides_records = heard, hides


def make_stable(scenario: Scenario, names: list[str]) -> None:
    settings = scenario.environment.settings
    delay_ms = settings[DELAY]
    settings.set(DELAY, "0")
    clients = [name.partition("/")[0] for name in names]
    for name in names:
        client, _, instance_id = name.partition("/")
        static = f" {{group_instance_id: {instance_id}}}" if instance_id else ""
        join(scenario, Words(client + static))
        scenario.host.turn()
        if not instance_id:
            join(scenario, Words(client))
            scenario.host.turn()
    scenario.advance(0)
    settings.set(DELAY, str(delay_ms))
    sync(scenario, Words(f"{clients[0]} {{{', '.join(f'{each}: {at}' for at, each in enumerate(clients))}}}"))
    for client in clients[1:]:
        sync(scenario, Words(client))
    scenario.host.turn()


@command("lives")
def lives(scenario: Scenario, words: Words) -> None:
    """lives c1 c2 60000: time passes, and these clients send heartbeats every 3 s, quietly. A static one is c1/i1."""
    *names, ms = words.text.split()
    left_ms = int(ms)
    while left_ms:
        step_ms = min(left_ms, 3000)
        scenario.advance(step_ms)
        left_ms -= step_ms
        with quiet(scenario):
            for name in names if left_ms else ():
                client, _, instance_id = name.partition("/")
                heartbeat(scenario, Words(client + (f" {{group_instance_id: {instance_id}}}" if instance_id else "")))
                scenario.host.turn()


@command("commit")
def commit(scenario: Scenario, words: Words) -> None:
    """commit c1 [generation] [member id]: OffsetCommit for the first partition of t"""
    client, generation = words.next(), words.next_number()
    fields = {
        "group_id": "g",
        "member_id": words.next(told(scenario, client, "member_id", "")),
        "generation_id_or_member_epoch": told(scenario, client, "generation_id", -1)
        if generation is None
        else generation,
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 5}]}],
    }
    scenario.send(client, "OffsetCommit", 9, fields)
