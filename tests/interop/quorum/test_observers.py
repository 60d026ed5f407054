"""A broker of one kind follows the metadata log of a controller of the other: by snapshot, by fetches, over restarts.

Apache Kafka's observer replays whatever an ottla leader writes, and dies of a record that it does not like; ottla's
shows the same cluster as Apache Kafka itself.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interop.apache import tool
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.members import METADATA_QUORUM, WAIT_S, Quorum, until

LEADER, OBSERVER = 1, 2
SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": 1000,
    "controller.quorum.fetch.snapshot.max.bytes": 500,
    "controller.quorum.fetch.max.bytes": 300,
}
"""There is a snapshot soon, and it comes in several pieces, as the log does."""
FIRST = {f"first-{number}" for number in range(6)}


@pytest.mark.parametrize(("leads", "observes"), [(APACHE, OTTLA), (OTTLA, APACHE)])
def test_an_observer_has_what_the_leader_has(leads: str, observes: str, tmp_path: Path) -> None:
    with Quorum(tmp_path, voters={LEADER: leads}, brokers={OBSERVER: observes}, **SMALL) as quorum:
        for name in FIRST:
            quorum.create_topic(name, at=LEADER)
        until(lambda: quorum.snapshots(LEADER), "a snapshot")
        quorum.start(OBSERVER)
        assert min(quorum.metadata_log(OBSERVER)) > 0, "its log begins behind a snapshot"
        assert quorum.wait_for_topics(FIRST, at=OBSERVER) == quorum.topics(LEADER)

        quorum.create_topic("by-leader", at=LEADER)
        quorum.create_topic("by-observer", at=OBSERVER)
        names = FIRST | {"by-leader", "by-observer"}
        assert quorum.wait_for_topics(names, at=OBSERVER) == quorum.wait_for_topics(names, at=LEADER)
        check_described(quorum)

        quorum.nodes[OBSERVER].kill()
        quorum.create_topic("while-observer-was-away", at=LEADER)
        quorum.start(OBSERVER)
        names.add("while-observer-was-away")
        assert quorum.wait_for_topics(names, at=OBSERVER) == quorum.topics(LEADER)

        quorum.nodes[LEADER].kill()
        quorum.start(LEADER)
        quorum.wait_for(lambda view: view.epoch == 2, "the epoch after the leader's restart")
        quorum.wait_for_lag_0(OBSERVER)
        quorum.create_topic("after-restart", at=OBSERVER)
        names.add("after-restart")
        assert quorum.wait_for_topics(names, at=LEADER) == quorum.wait_for_topics(names, at=OBSERVER)

        quorum.wait_for_lag_0(OBSERVER)
        followed, led = quorum.metadata_log(OBSERVER), quorum.metadata_log(LEADER)
        assert followed.items() <= led.items(), "the log of the observer is the leader's, to the byte"
        for number in (OBSERVER, LEADER):
            quorum.nodes[number].stop()
        quorum.check_health()


def check_described(quorum: Quorum) -> None:
    """kafka-metadata-quorum lists both by way of the observer's node; the observer has everything."""
    server = ("--bootstrap-server", quorum.nodes[OBSERVER].bootstrap_servers)

    def find() -> bool:
        said = tool(METADATA_QUORUM, *server, "describe", "--replication", timeout_s=WAIT_S)
        rows = [re.split(r"\s+", line.strip()) for line in said.splitlines()[1:]]
        described = {int(row[0]): (row[1], row[-1]) for row in rows}
        assert described == {
            LEADER: (quorum.directory_id(LEADER), "Leader"),
            OBSERVER: (quorum.directory_id(OBSERVER), "Observer"),
        }
        return {row[3] for row in rows} == {"0"}

    until(find, "a lag of 0; an idle record every half second makes it 1 for a moment")
