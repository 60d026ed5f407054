"""confluent-kafka (librdkafka), aiokafka and kafka-python as members: they share, commit, leave and come back."""

from __future__ import annotations

import time

import pytest

from tests.interop.groups.members import (
    CLIENTS,
    PARTITIONS,
    PER_PARTITION,
    SESSION_MS,
    Aiokafka,
    Confluent,
    KafkaPython,
    Running,
    all_committed,
    all_read,
    filled,
    shared,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # what other people's packages do is not our fault
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.mark.parametrize("client", CLIENTS)
def test_two_members_share_commit_and_one_takes_over(client: str, bootstrap_servers: str, name: str):
    topic = filled(bootstrap_servers, name)
    make = CLIENTS[client]
    with Running(make, bootstrap_servers, name, topic) as first:
        shared(first)
        with Running(make, bootstrap_servers, name, topic) as second:
            shared(first, second)
            all_read(first, second)
            all_committed(first, second)
        shared(first)
        assert first.ask(lambda member: member.committed()) == dict.fromkeys(range(PARTITIONS), PER_PARTITION)
    with Running(make, bootstrap_servers, name, topic) as third:
        shared(third)
        assert third.ask(lambda member: member.committed()) == dict.fromkeys(range(PARTITIONS), PER_PARTITION)
        assert third.read == set(), "what was committed is not read again"


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_strategies_of_librdkafka(bootstrap_servers: str, name: str, strategy: str):
    topic = filled(bootstrap_servers, name)

    def member() -> Running:
        return Running(Confluent, bootstrap_servers, name, topic, partition_assignment_strategy=strategy)

    with member() as first, member() as second:
        shared(first, second)
        with member() as third, member() as fourth:
            shared(first, second, third, fourth)
        shared(first, second)


def test_a_member_that_is_gone_without_a_word_is_missed(bootstrap_servers: str, name: str):
    topic = filled(bootstrap_servers, name)
    with Running(Aiokafka, bootstrap_servers, name, topic) as second:
        with Running(Aiokafka, bootstrap_servers, name, topic) as first:
            shared(first, second)
            first.freeze()
            began = time.monotonic()
            shared(second)
        assert time.monotonic() - began > SESSION_MS / 1000 / 2


def test_a_static_member_of_librdkafka_comes_back_to_what_it_had(bootstrap_servers: str, name: str):
    topic = filled(bootstrap_servers, name)
    first = Running(Confluent, bootstrap_servers, name, topic, group_instance_id="one")
    with Running(Confluent, bootstrap_servers, name, topic, group_instance_id="two") as second:
        shared(first, second)
        had, others = first.partitions, second.partitions
        first.end()  # a static member does not leave
        with Running(Confluent, bootstrap_servers, name, topic, group_instance_id="one") as again:
            shared(again, second)
            assert (again.partitions, second.partitions) == (had, others)


def test_clients_of_all_makes_in_one_group(bootstrap_servers: str, name: str):
    """`range` is what they have in common."""
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange

    topic = filled(bootstrap_servers, name)
    where = (bootstrap_servers, name, topic)
    with (
        Running(Confluent, *where, partition_assignment_strategy="range") as first,
        Running(Confluent, *where, partition_assignment_strategy="range,roundrobin") as second,
        Running(KafkaPython, *where, partition_assignment_strategy=[KafkaPythonRange]) as third,
        Running(Aiokafka, *where, partition_assignment_strategy=[RangePartitionAssignor]) as fourth,
    ):
        shared(first, second, third, fourth)
        all_read(first, second, third, fourth)
