"""Failures in quorums of both kinds: the same happens whoever leads, and whoever follows.

`test_voters` has the elections; here leaders stop and die, followers stand still, links are cut, a majority is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.types import CreateTopicsRequest
from tests.component.broker.raw_client import Connection, RawClient, key_of
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.links import LinkedQuorum
from tests.interop.quorum.members import FETCH_TIMEOUT_S, Quorum, View, until

MIXES = {"one ottla": {1: APACHE, 2: APACHE, 3: OTTLA}, "one apache": {1: OTTLA, 2: OTTLA, 3: APACHE}}
FIVES = {
    "two of five ottla": {1: APACHE, 2: OTTLA, 3: APACHE, 4: OTTLA, 5: APACHE},
    "two of five apache": {1: OTTLA, 2: APACHE, 3: OTTLA, 4: APACHE, 5: OTTLA},
}
CUT_OFF_S = 4 * FETCH_TIMEOUT_S
"""A voter that is cut off for so long asks for votes several times."""
SILENT_S = 5
FIRST_EPOCH_MAX = 5
"""Voters that start one after the other may need a second attempt."""
ELECTED_MAX_S = 30
"""Of which a machine that has nothing else to do needs a few."""


@pytest.fixture(scope="module", params=MIXES)
def quorum(
    request: pytest.FixtureRequest, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LinkedQuorum]:
    with LinkedQuorum(tmp_path_factory.mktemp("quorum"), voters=MIXES[request.param]) as quorum:
        first = quorum.wait_for_voters()
        assert 1 <= first.epoch <= FIRST_EPOCH_MAX
        yield quorum
        quorum.check_health()


@pytest.fixture(params=[OTTLA, APACHE], ids=["led by ottla", "led by apache"])
def led(request: pytest.FixtureRequest, quorum: LinkedQuorum) -> View:
    """The quorum, led by a node of a kind."""
    return quorum.elect(next(number for number in quorum.voters if quorum.kinds[number] == request.param))


def followers(quorum: Quorum, view: View) -> list[int]:
    return [number for number in quorum.voters if number != view.leader_id]


def begin_create(quorum: Quorum, name: str, *, at: int) -> Connection:
    """Ask a broker for a topic, and do not wait for the answer."""
    topic = CreateTopicsRequest.CreatableTopic(name, 1, 1)
    connection = RawClient.at(quorum.nodes[at].bootstrap_servers).connect()
    connection.send(CreateTopicsRequest((topic,), 60_000), 7)
    return connection


def is_acknowledged(connection: Connection) -> bool:
    """Whether the topic is there, as far as the broker has said until now."""
    if connection.is_silent(0.1):
        return False
    (topic,) = connection.receive(key_of(CreateTopicsRequest()), 7, 0).topics
    return bool(topic.error_code == ErrorCode.NONE)


def next_leader(quorum: Quorum, view: View) -> View:
    """What the next leader says of the quorum. It must not take long."""
    began = time.monotonic()
    others = followers(quorum, view)
    until(lambda: any(not quorum.describe(number).error_code for number in others), "another leader")
    assert time.monotonic() - began < ELECTED_MAX_S
    return quorum.wait_for(lambda now: now.epoch > view.epoch and now.high_watermark > 0, "another leader")


def test_a_leader_that_stops_hands_over(quorum: LinkedQuorum, led: View) -> None:
    """Followers learn of it, so nobody waits for a time-out, and the first who asks for votes gets them."""
    with ThreadPoolExecutor(1) as together:
        stopping = together.submit(quorum.nodes[led.leader_id].stop)
        view = next_leader(quorum, led)
        stopping.result()
    assert view.leader_id in followers(quorum, led)
    assert view.epoch == led.epoch + 1
    name = f"after-stop-of-{led.epoch}"
    quorum.create_topic(name, at=view.leader_id)
    quorum.start(led.leader_id)
    quorum.wait_for_voters()
    until(lambda: name in quorum.topics(led.leader_id), "it to know what it has missed")


def test_a_leader_that_is_killed_is_replaced_and_follows(quorum: LinkedQuorum, led: View) -> None:
    names = {f"{when}-kill-of-{led.epoch}" for when in ("before", "after")}
    quorum.create_topic(f"before-kill-of-{led.epoch}", at=followers(quorum, led)[0])
    quorum.nodes[led.leader_id].kill()
    view = next_leader(quorum, led)
    assert led.epoch + 1 <= view.epoch <= led.epoch + 3
    quorum.create_topic(f"after-kill-of-{led.epoch}", at=view.leader_id)
    quorum.start(led.leader_id)
    quorum.wait_for_voters()
    for number in quorum.voters:
        until(lambda number=number: names <= set(quorum.topics(number)), "every voter to know both topics")
    logs = [quorum.metadata_log(number) for number in quorum.voters]
    end_offset = min(max(log) for log in logs)
    first, *others = [{offset: data for offset, data in log.items() if offset < end_offset} for log in logs]
    assert others == [first, first], "what the dead leader had not committed is cut"


def test_a_leader_whose_followers_stand_still_resigns(quorum: LinkedQuorum, led: View) -> None:
    still = followers(quorum, led)
    began = time.monotonic()
    for number in still:
        quorum.pause(number)
    try:
        until(lambda: quorum.describe(led.leader_id).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "it to resign")
        assert time.monotonic() - began > FETCH_TIMEOUT_S, "a late fetch is no reason"
    finally:
        for number in still:
            quorum.resume(number)
    view = quorum.wait_for_voters()
    assert led.epoch + 1 <= view.epoch <= led.epoch + 3
    quorum.create_topic(f"after-epoch-{led.epoch}", at=view.leader_id)


def test_a_follower_that_is_cut_off_for_long_changes_no_epoch(quorum: LinkedQuorum, led: View) -> None:
    cut_off, other = followers(quorum, led)
    quorum.isolate(cut_off)
    time.sleep(CUT_OFF_S)
    name = f"without-{cut_off}-in-{led.epoch}"
    quorum.create_topic(name, at=other)
    assert name not in quorum.topics(cut_off), "or it is not cut off"
    quorum.heal()
    view = quorum.wait_for_voters()
    assert (view.leader_id, view.epoch) == (led.leader_id, led.epoch)
    until(lambda: name in quorum.topics(cut_off), "it to know what it has missed")


def test_what_a_leader_that_is_cut_off_has_written_is_cut_from_its_log(quorum: LinkedQuorum, led: View) -> None:
    old, others = led.leader_id, followers(quorum, led)
    quorum.create_topic(f"by-leader-of-{led.epoch}", at=old)  # its broker has found its controller then
    quorum.isolate(old)
    lost, kept = f"by-old-leader-of-{led.epoch}", f"after-old-leader-of-{led.epoch}"
    with closing(begin_create(quorum, lost, at=old)) as connection:
        new = quorum.wait_for(lambda view: view.epoch > led.epoch and view.high_watermark > 0, "another leader")
        assert new.leader_id in others
        quorum.create_topic(kept, at=others[0])
        assert not is_acknowledged(connection)
    committed = quorum.metadata_log(new.leader_id)
    tail = {offset: data for offset, data in quorum.metadata_log(old).items() if committed.get(offset) != data}
    assert tail, "it goes on writing, at least that nothing has happened"
    assert lost.encode() in b"".join(tail.values())

    quorum.heal()
    quorum.wait_for_voters()
    until(lambda: kept in quorum.topics(old), "it to follow")
    healed = quorum.metadata_log(old)
    assert not tail.items() & healed.items()
    assert committed.items() <= healed.items()


@pytest.mark.parametrize("kinds", FIVES.values(), ids=FIVES)
def test_five_voters_need_three(kinds: dict[int, str], apache_jars: Path, tmp_path: Path) -> None:
    with Quorum(tmp_path, voters=kinds) as quorum:
        quorum.create_topic("by-five", at=1)
        first = quorum.wait_for_voters().leader_id
        second, third, *rest = (number for number in quorum.voters if number != first)
        for number in (first, second):
            quorum.nodes[number].kill()
        quorum.create_topic("by-three", at=rest[0])
        for number in rest:
            quorum.wait_for_topics({"by-five", "by-three"}, at=number)

        quorum.nodes[third].kill()
        with closing(begin_create(quorum, "by-two", at=rest[0])) as connection:
            assert connection.is_silent(SILENT_S)
            for number in rest:
                assert set(quorum.topics(number)) == {"by-five", "by-three"}, "what is known is still told"
        quorum.start(third)
        quorum.create_topic("by-three-again", at=rest[1])
        until(lambda: "by-three-again" in quorum.topics(third), "the voter that is back to know it")
        quorum.check_health()
