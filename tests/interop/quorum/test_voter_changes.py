"""Controllers come and go in a quorum of both kinds, by kafka-metadata-quorum: a whole quorum changes hands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.members import Quorum, until

FIRST, SECOND = 1, 2


@pytest.mark.parametrize(("old", "new"), [(APACHE, OTTLA), (OTTLA, APACHE)])
def test_a_controller_of_the_other_kind_takes_over(old: str, new: str, tmp_path: Path) -> None:
    snapshots = {"metadata.log.max.record.bytes.between.snapshots": 1000}
    with Quorum(tmp_path, voters={FIRST: old}, spares={SECOND: new}, **snapshots) as quorum:
        quorum.create_topic("before", at=FIRST)
        until(lambda: quorum.snapshots(FIRST), "a snapshot")
        quorum.start(SECOND)
        quorum.wait_for_lag_0(SECOND)
        ids = {number: quorum.directory_id(number) for number in (FIRST, SECOND)}

        settings = str(quorum.nodes[SECOND].write_properties())
        said = quorum.tool("--command-config", settings, "add-controller", at=FIRST)
        assert f"Added controller {SECOND} with directory id {ids[SECOND]}" in said
        assert f"CONTROLLER://{quorum.nodes[SECOND].controller_servers}" in said
        quorum.wait_for(lambda view: view.voter_ids == {FIRST, SECOND} and not view.has_lag(), "both to vote")
        quorum.create_topic("by-both", at=FIRST)

        leaving = ("--controller-id", str(FIRST), "--controller-directory-id", ids[FIRST])
        said = quorum.tool("remove-controller", *leaving, at=SECOND)
        assert " ".join(said.split()) == f"Removed KRaft controller {FIRST} with directory id {ids[FIRST]}"
        view = quorum.wait_for(lambda view: view.leader_id == SECOND and view.high_watermark > 0, "the new leader")
        assert view.voter_ids == {SECOND}
        quorum.create_topic("after", at=FIRST)
        quorum.wait_for_topics({"before", "by-both", "after"}, at=FIRST)
        quorum.wait_for_lag_0(FIRST)
        assert quorum.metadata_log(SECOND).items() <= quorum.metadata_log(FIRST).items()
        quorum.check_health()
