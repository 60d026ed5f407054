"""What probes ask, and what they make of answers: of old brokers, of missing rights, of nodes that are down."""

from __future__ import annotations

from ottla.client import TopicPartition
from ottla.observe.memory import rounds

# --- old brokers ------------------------------------------------------------------------------------------------------


# --- rights -----------------------------------------------------------------------------------------------------------


# --- nodes that are down ----------------------------------------------------------------------------------------------


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_rounds_name_every_partition_once():
    places = [TopicPartition("t", number) for number in (3, 1, 2, 1)]
    assert list(rounds(places, 2)) == [[TopicPartition("t", 1), TopicPartition("t", 2)], [TopicPartition("t", 3)]]


# --- transactions -----------------------------------------------------------------------------------------------------


# --- topics -----------------------------------------------------------------------------------------------------------
