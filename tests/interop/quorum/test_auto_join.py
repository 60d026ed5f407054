"""Controllers that make themselves voters, beside voters of the other kind: a spare, and one whose disk is new."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.members import Quorum, View

FIRST, SECOND, JOINING = 1, 2, 3


@pytest.mark.parametrize(("old", "new"), [(APACHE, OTTLA), (OTTLA, APACHE)])
def test_a_controller_joins_by_itself_and_again_with_a_new_disk(old: str, new: str, tmp_path: Path) -> None:
    settings = {"controller.quorum.auto.join.enable": "true"}
    with Quorum(tmp_path, voters={FIRST: old, SECOND: old}, spares={JOINING: new}, **settings) as quorum:
        quorum.create_topic("before", at=FIRST)
        quorum.start(JOINING)
        wait_for_vote(quorum)

        former, node = quorum.directory_id(JOINING), quorum.nodes[JOINING]
        node.kill()
        quorum.create_topic("without", at=FIRST)
        shutil.rmtree(node.data_dir)
        quorum.start(JOINING)
        assert quorum.directory_id(JOINING) != former
        view = wait_for_vote(quorum)

        quorum.nodes[view.leader_id].kill()
        quorum.wait_for(lambda now: now.epoch > view.epoch and now.high_watermark > 0, "a leader by its vote")
        (other,) = set(quorum.running)
        quorum.create_topic("after", at=other)
        quorum.wait_for_topics({"before", "without", "after"}, at=other)
        quorum.check_health()


def wait_for_vote(quorum: Quorum) -> View:
    """Until the voters are these three, the last with the directory that it has now, and have all that is committed.

    Apache Kafka tells of the former directory for five minutes more, as that of an observer which is behind.
    """
    own = quorum.directory_id(JOINING)

    def is_so(view: View) -> bool:
        directories = {each.node_id: each.directory_id for each in view.voters}
        return set(directories) == {FIRST, SECOND, JOINING} and directories[JOINING] == own and has_all(view)

    def has_all(view: View) -> bool:
        return all(each.end_offset >= view.high_watermark > 0 for each in view.voters)

    return quorum.wait_for(is_so, "the controller to vote")
