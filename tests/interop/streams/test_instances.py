"""Several instances of an application: standbys, queries across instances, crashes of instances and of the broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ottla.client import Client, configs
from tests.interop.node.brokers import Node
from tests.interop.streams.conftest import MakeApp, made
from tests.interop.streams.feeding import create, feed, read, wait_for, wait_until
from tests.interop.streams.groups import WORDS, counts, described, is_stable, lines

BATCHES = 12


def set_for_group(servers: str, group: str, **settings: str) -> None:
    async def work() -> None:
        async with Client(servers) as client:
            changes = [
                configs.Change(configs.Operation.SET, key.replace("_", "."), value) for key, value in settings.items()
            ]
            await configs.alter(client, configs.Resource(configs.ResourceType.GROUP, group), changes)

    asyncio.run(work())


def is_enough(seen: dict[str, str], expected: dict[str, str]) -> bool:
    return all(int(seen.get(word, "0")) >= int(number) for word, number in expected.items())


def task_names(lists: Any) -> set[str]:
    return {f"{each.subtopology_id}_{number}" for each in lists for number in each.partitions}


def test_standbys_are_in_the_other_instance(servers: str, prefix: str, start: MakeApp):
    group = f"{prefix}-app"
    create(servers, f"{prefix}-words", f"{prefix}-out")
    feed(servers, f"{prefix}-words", lines(0))
    set_for_group(servers, group, streams_num_standby_replicas="1")
    one, two = (start("count", prefix, servers).running() for _ in range(2))
    wait_until("both are stable", lambda: is_stable(servers, group, 2))
    members = described(servers, group).members
    active, standby = (
        [task_names(getattr(each.assignment, f"{role}_tasks")) for each in members] for role in ("active", "standby")
    )
    stateful = {task for task in active[0] | active[1] if task.startswith("1_")}
    assert (standby[0] | standby[1]) == stateful
    assert not active[0] & standby[0]
    assert not active[1] & standby[1]
    one.kill()
    feed(servers, f"{prefix}-words", lines(1))
    wait_for(servers, f"{prefix}-out", counts(2))
    two.close()


def test_an_instance_knows_who_has_the_state_of_a_key(servers: str, prefix: str, start: MakeApp):
    group = f"{prefix}-app"
    create(servers, f"{prefix}-words", f"{prefix}-out", partitions=4)
    feed(servers, f"{prefix}-words", lines(0))
    hosts = ("127.0.0.1:7001", "127.0.0.1:7002")
    one, two = (start("count", prefix, servers, application_server=host).running() for host in hosts)
    wait_until("both are stable", lambda: is_stable(servers, group, 2))
    wait_for(servers, f"{prefix}-out", counts(1), 4)

    def agreed() -> bool:
        told = [[app.ask(f"owner {word}") for word in WORDS] for app in (one, two)]
        return told[0] == told[1] and set(told[0]) == set(hosts)

    wait_until("both instances name the same hosts, and both hosts", agreed)
    by_host = dict(zip(hosts, (one, two), strict=True))

    def is_answered(word: str) -> bool:
        return by_host[one.ask(f"owner {word}")].ask(f"get {word}") == counts(1)[word]

    wait_until("every owner has the state", lambda: all(map(is_answered, WORDS)))
    # After a rebalance too.
    two.close()
    wait_until("all is with the one", lambda: {one.ask(f"owner {word}") for word in WORDS} == {hosts[0]})
    wait_until("its state is restored", lambda: all(one.ask(f"get {word}") == counts(1)[word] for word in WORDS))
    one.close()


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_three_instances_of_which_one_is_killed_and_one_added_under_load(
    servers: str, prefix: str, start: MakeApp, guarantee: str
):
    """Exactly once, the counts are exact; at least once, none is too small, since what was not committed is counted
    again."""
    group = f"{prefix}-app"
    create(servers, f"{prefix}-words", f"{prefix}-out", partitions=4)
    apps = [start("count", prefix, servers, processing_guarantee=guarantee) for _ in range(3)]
    for app in apps:
        app.running()
    for number in range(BATCHES):
        feed(servers, f"{prefix}-words", lines(number))
        if number == 3:
            apps[0].kill()
        if number == 6:
            apps.append(start("count", prefix, servers, processing_guarantee=guarantee))
    if guarantee == "exactly_once_v2":
        wait_for(servers, f"{prefix}-out", counts(BATCHES), 4)
    else:
        wait_until("all is counted", lambda: is_enough(dict(read(servers, f"{prefix}-out", 4)), counts(BATCHES)))
    wait_until("the three are stable", lambda: is_stable(servers, group, 3))
    for app in apps[1:]:
        app.close()


@pytest.mark.parametrize("kind", ["ottla", "apache"])
def test_the_broker_is_killed_while_tasks_move(
    kind: str, apache_jars: Path, tmp_path: Path, prefix: str, start: MakeApp
):
    """The applications go on by themselves."""
    booted: Node = made(kind, tmp_path / "broker")
    with booted as broker:
        servers, group = broker.bootstrap_servers, f"{prefix}-app"
        create(servers, f"{prefix}-words", f"{prefix}-out", partitions=4)
        one = start("count", prefix, servers).running()
        feed(servers, f"{prefix}-words", lines(0))
        wait_for(servers, f"{prefix}-out", counts(1), 4)
        two = start("count", prefix, servers)
        two.wait_for("STATE REBALANCING")
        wait_until("the second has joined", lambda: len(described(servers, group).members) == 2)
        broker.kill()
        broker.start()
        feed(servers, f"{prefix}-words", lines(1))
        wait_until("the group is stable again", lambda: is_stable(servers, group, 2))
        wait_for(servers, f"{prefix}-out", counts(2), 4)
        one.close()
        two.close()
