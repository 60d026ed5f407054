"""Topology descriptions as kafka-clients 4.4.0 speaks of them: its request classes, its consumer, its admin client.

The broker runs in a process of its own; its clock is moved by `advance`, and its plugin does what a group's name says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ottla.testing
from ottla.testing import Broker
from tests.component.broker.raw_client import RawClient
from tests.interop.descriptions.talking import Talk

PLUGIN = "group.streams.topology.description.plugin.class"
UNRELIABLE = "tests.component.broker.description_plugins.Unreliable"
IN_TOPIC = "ottla.topology_descriptions.TopicPlugin"
PATIENT = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.session.timeout.ms": "100000000",
    "group.streams.max.session.timeout.ms": "100000000",
}
TIMEOUT_S = 30
SHOWN = (
    "AVAILABLE 0{in:reads[lines]:[]>[count] count:keeps[counts]:[in]>[out] out:writes[results]:[count]>[]} "
    "global{facts-in:reads[facts]:[]>[fill] fill:keeps[facts-store]:[facts-in]>[]} assignor=sticky"
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with ottla.testing.broker(process=True, **{PLUGIN: UNRELIABLE}, **PATIENT) as running:
        yield running


@pytest.fixture(scope="module")
def talk(broker: Broker) -> Iterator[Talk]:
    made = Talk(broker.port)
    yield made
    made.close()


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    return topic_of(broker)


def topic_of(broker: Broker) -> str:
    client = RawClient("127.0.0.1", broker.port)
    name = client.topic().name
    client.close_all()
    return name


def wait_until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not seen():
        assert time.monotonic() < deadline


# --- who is asked -----------------------------------------------------------------------------------------------------


def test_heartbeats_at_0_23_and_37_seconds_are_asked_yes_no_yes(broker: Broker, talk: Talk, topic: str) -> None:
    assert talk.say(f"join 1 patient A {topic} 0") == "NONE epoch=2 asked=true"
    broker.advance(23_000)
    assert talk.say("beat 1 patient A 2") == "NONE epoch=2 asked=false"
    broker.advance(14_000)
    assert talk.say("beat 1 patient A 2") == "NONE epoch=2 asked=true"


def test_a_push_stores(broker: Broker, talk: Talk, topic: str) -> None:
    assert talk.say(f"join 1 stores A {topic} 0").endswith("asked=true")
    assert talk.say("describe stores").startswith("NOT_STORED - ")
    assert talk.say("push stores A 0") == "NONE null"
    assert talk.say("describe stores") == SHOWN
    broker.advance(40_000)
    assert talk.say("beat 1 stores A 2").endswith("asked=false")


def test_wrong_epochs_strangers_and_odd_descriptions_are_refused(broker: Broker, talk: Talk, topic: str) -> None:
    talk.say(f"join 1 strict A {topic} 0")
    broker.advance(40_000)
    assert talk.say("push strict A 1").startswith("INVALID_REQUEST ")
    assert talk.say("push strict B 0").startswith("UNKNOWN_MEMBER_ID ")
    assert talk.say("push nobody A 0").startswith("GROUP_ID_NOT_FOUND ")
    assert talk.say("push strict A 0 odd-node").startswith("INVALID_REQUEST ")
    assert talk.say("push strict A 0 odd-store").startswith("INVALID_REQUEST ")
    assert talk.say("beat 1 strict A 2").endswith("asked=true")


def test_members_of_a_stale_topology_and_of_version_0_are_not_asked(broker: Broker, talk: Talk, topic: str) -> None:
    assert talk.say(f"join 0 stale A {topic} 3").endswith("asked=false")
    assert talk.say(f"join 1 stale B {topic} 2").endswith("asked=false")
    assert talk.say("push stale B 2").startswith("INVALID_REQUEST ")
    assert talk.say("beat 1 stale A 2").endswith("asked=true")


# --- plugins that fail ------------------------------------------------------------------------------------------------


def test_a_plugin_that_fails_for_now_is_tried_again_after_twice_the_time(
    broker: Broker, talk: Talk, topic: str
) -> None:
    talk.say(f"join 1 failing A {topic} 0")
    assert talk.say("push failing A 0") == "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED no space"
    broker.advance(47_000)
    assert talk.say("beat 1 failing A 2").endswith("asked=false")
    broker.advance(26_000)
    assert talk.say("beat 1 failing A 2").endswith("asked=true")


def test_a_plugin_that_refuses_for_good_is_not_tried_again(broker: Broker, talk: Talk, topic: str) -> None:
    talk.say(f"join 1 refusing A {topic} 0")
    assert talk.say("push refusing A 0") == "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED too many nodes"
    broker.advance(4_000_000)
    assert talk.say("beat 1 refusing A 2").endswith("asked=false")
    assert talk.say("describe refusing").startswith("NOT_STORED - ")


def test_a_plugin_that_hangs_holds_up_nothing_and_counts_as_failed_after_30_seconds(
    broker: Broker, talk: Talk, topic: str
) -> None:
    other = Talk(broker.port)
    try:
        talk.say(f"join 1 hanging A {topic} 0")
        other.begin("push hanging A 0")
        assert talk.say("beat 1 hanging A 2") == "NONE epoch=2 asked=false"
        assert talk.say("describe hanging").startswith("NOT_STORED - ")
        wait_until(lambda: has_hung(broker))
        broker.advance(30_000)
        assert other.end() == ("STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED the plugin has not responded within 30 s")
    finally:
        other.close()


def has_hung(broker: Broker) -> bool:
    """Whether the broker has got as far as the plugin: the push's mark is its last record then."""
    texts = [path.read_bytes() for path in broker.data_dir.glob("__consumer_offsets-*/*.log")]
    return any(text.rfind(b"\x00\x11\x00\x07hanging") > text.rfind(b"\x00\x16\x00\x07hanging") for text in texts)


def test_descriptions_that_cannot_be_read(talk: Talk, topic: str) -> None:
    for name, status in (("unreadable", "ERROR"), ("forgetting", "NOT_STORED")):
        talk.say(f"join 1 {name} A {topic} 0")
        assert talk.say(f"push {name} A 0") == "NONE null"
        assert talk.say(f"describe {name}").startswith(f"{status} - ")


def test_groups_whose_description_cannot_be_deleted_stay(talk: Talk, topic: str) -> None:
    for name in ("kept", "goes"):
        talk.say(f"join 1 {name} A {topic} 0")
        talk.say(f"push {name} A 0")
    assert talk.say("delete kept").startswith("kept=GroupNotEmptyException")
    for name in ("kept", "goes"):
        talk.say(f"beat 1 {name} A -1")
    said = talk.say("delete kept goes")
    assert said.startswith("kept=GroupDeletionFailedException: ")
    assert said.endswith("goes=deleted; ")
    assert talk.say("delete-now kept gone") == (
        "kept=GROUP_DELETION_FAILED: the group's topology description could not be deleted; the group was not deleted; "
        "gone=GROUP_ID_NOT_FOUND: null"
    )
    assert talk.say("describe kept").startswith("NOT_STORED - ")


# --- the library's own member -----------------------------------------------------------------------------------------


def test_the_consumer_of_the_library_pushes_when_it_is_asked(talk: Talk, topic: str) -> None:
    assert talk.say(f"member real {topic}") == "started"
    wait_until(lambda: talk.say("describe real") == SHOWN)


def test_descriptions_survive_kills_of_the_broker(tmp_path: Path) -> None:
    settings = {PLUGIN: IN_TOPIC} | PATIENT
    with ottla.testing.broker(process=True, directory=tmp_path, **settings) as broker:
        topic = topic_of(broker)
        talk = Talk(broker.port)
        try:
            assert talk.say(f"join 1 app A {topic} 0").endswith("asked=true")
            broker.kill()
            broker.start()
            assert talk.say("describe app").startswith("NOT_STORED - ")
            assert talk.say("beat 1 app A 2").endswith("asked=true")
            assert talk.say("push app A 0") == "NONE null"
            broker.kill()
            broker.start()
            assert talk.say("describe app") == SHOWN
            assert talk.say("beat 1 app A 2").endswith("asked=false")
        finally:
            talk.close()
