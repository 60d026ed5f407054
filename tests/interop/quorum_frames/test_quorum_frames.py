"""The same frames to Apache Kafka's controller and to ours, in the same state, with the same answers.

Each test brings both to a state, by the directory that they start from or by requests that move them, and then sends
everything that can be wrong with a message of the quorum. Elections and fetches have time-outs of an hour where a state
is to last. Differences that docs/reference/differences.md lists are passed over.

==========  =========================================================  =================================================
test        the node                                                   how it gets there
==========  =========================================================  =================================================
leader      leads alone; with a log from 0, and behind a snapshot      it is the only voter
static      leads alone, its voters are configured (kraft.version 0)   it is the only voter
candidate   candidate, then unattached, voted, follower, prospective   a stored vote for itself, then votes, Begin, End
resigned    resigned, then unattached                                  a stored epoch that it has led
follower    follows a leader that answers its fetches                  a stored leader, which the test plays
observer    the same, and is no voter                                  the same
undecided   unattached, with configured voters                         a stored epoch without a leader
==========  =========================================================  =================================================
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.core.quorum.stored import StoredState
from ottla.wire.types.fetch import FetchRequest
from tests.docs.differences import rows
from tests.interop.quorum_frames.comparing import Comparison
from tests.interop.quorum_frames.controllers import Controller, controllers
from tests.interop.quorum_frames.played_voter import Answer, leading
from tests.interop.quorum_frames.requests import (
    NO_DIRECTORY,
    STRANGER,
    At,
    Frame,
    all_frames,
    begin,
    begin_frames,
    describe,
    end,
    end_frames,
    fetch,
    fetch_frames,
    in_all_versions,
    vote,
    vote_frames,
)
from tests.interop.quorum_frames.seeded import NODE_ID, Seed, directory_id

HOUR_MS = 3_600_000
PATIENT = {"controller.quorum.election.timeout.ms": HOUR_MS, "controller.quorum.fetch.timeout.ms": HOUR_MS}
EPOCH = 7
LOG_EPOCH = 4
THREE = (1, 2, 3)
ATTEMPTS, PERIOD_S = 600, 0.1

pytestmark = pytest.mark.usefixtures("apache_jars")


@contextmanager
def compared(
    directory: Path, seed: Seed, settings: dict[str, int], played: dict[int, Answer] | None = None, *listed: str
) -> Iterator[Comparison]:
    """`listed` are lines of docs/reference/differences.md that are met beside the one that every state has."""
    with controllers(directory, seed, settings, played or {}) as both:
        comparison = Comparison(both)
        yield comparison
        assert comparison.found == [], f"{len(comparison.found)} differences in {comparison.count} frames"
        assert comparison.listed == {"fetch-snapshot-errors", *listed} <= {row["id"] for row in rows()}
        assert "Traceback" not in both[1].node.log


def offsets_in(seed: Seed, end_offset: int) -> tuple[tuple[int, int], ...]:
    """Offsets around every end of an epoch, each with every epoch that could be before it."""
    layout = seed.layout
    ends = (0, layout.first_end, layout.second_end, layout.end, end_offset)
    near = sorted({each + delta for each in ends for delta in (-1, 0, 1)} - {-1})
    return tuple((offset, epoch) for offset in near for epoch in range(6))


def leads_alone(comparison: Comparison, seed: Seed) -> At:
    """Wait until it leads and has written what a new leader writes; both then stand at the same offset."""
    stands = [_commits(each, seed.layout.end + 2) for each in (comparison.apache, comparison.ours)]
    assert stands[0] == stands[1]
    return stands[0]


def _commits(controller: Controller, end_offset: int) -> At:
    for _ in range(ATTEMPTS):
        partition = controller.client.ask(describe(), 2).topics[0].partitions[0]
        if partition.high_watermark >= end_offset:
            return At(partition.leader_epoch, partition.high_watermark, partition.leader_epoch)
        time.sleep(PERIOD_S)
    raise AssertionError(f"{controller.node.name} does not lead")


@pytest.mark.parametrize("has_snapshot", [False, True], ids=["log", "snapshot"])
def test_leader(tmp_path: Path, has_snapshot: bool) -> None:
    seed = Seed(has_snapshot=has_snapshot)
    with compared(tmp_path, seed, {}) as comparison:
        at = leads_alone(comparison, seed)
        comparison.ask(all_frames(at, (seed.layout.second_end, 2), offsets_in(seed, at.end)), "leader")
        granted = [("vote", vote(at)), ("vote of a longer log", vote(at, last_offset=at.end + 1, last_offset_epoch=4))]
        comparison.ask(versions_of(granted), "leader")
        assert comparison.count > 500


def test_static(tmp_path: Path) -> None:
    seed = Seed(kraft_version=0)
    with compared(tmp_path, seed, {}) as comparison:
        at = leads_alone(comparison, seed)
        frames = all_frames(at, (seed.layout.second_end, 2), offsets_in(seed, at.end), is_static=True)
        comparison.ask(frames, "static leader")


def versions_of(requests: list[tuple[str, object]]) -> Iterator[Frame]:
    for name, request in requests:
        yield from in_all_versions(name, request)


def test_candidate(tmp_path: Path) -> None:
    """Each step below moves both; what follows it asks them there."""
    seed = Seed(THREE, stored=StoredState(EPOCH, voted_id=NODE_ID, voted_directory_id=directory_id(NODE_ID)))
    log, snapshot = (seed.layout.end, LOG_EPOCH), (seed.layout.second_end, 2)
    with compared(tmp_path, seed, PATIENT) as comparison:
        at = At(EPOCH, *log)
        comparison.ask(all_frames(at, snapshot), "candidate")
        comparison.ask(versions_of([("vote", vote(at)), ("own vote", vote(at, replica_id=NODE_ID))]), "candidate")

        at = At(EPOCH + 1, *log)
        moving = [("a vote of a higher epoch, for a shorter log", vote(at, last_offset=1))]
        comparison.ask(versions_of(moving), "candidate")
        comparison.ask(all_frames(at, snapshot), "unattached")

        comparison.ask(versions_of(_votes_at(at)), "unattached")
        comparison.ask(vote_frames(at), "voted")

        comparison.ask(versions_of([("begin", begin(at))]), "voted")
        comparison.ask(all_frames(at, snapshot), "follower")
        comparison.ask(versions_of(_votes_at(at)), "follower")
        comparison.ask(versions_of(_begins_at(at)), "follower")

        candidates = {"preferred_candidates": (end(at).topics[0].partitions[0].preferred_candidates[1],)}
        first = end(at, **candidates, preferred_successors=(NODE_ID,))
        comparison.ask(versions_of([("end", first), ("end", first)]), "follower")
        comparison.ask(vote_frames(at), "prospective")
        comparison.ask(begin_frames(at), "prospective")
        comparison.ask(end_frames(at), "prospective")
        comparison.ask(fetch_frames(at), "prospective")
        comparison.ask(versions_of(_votes_at(at)), "prospective")

        _leave_by_higher_epochs(comparison, At(EPOCH + 2, *log))


def _votes_at(at: At) -> list[tuple[str, object]]:
    """The first is granted where votes are; the others meet one that was given."""
    return [
        ("vote", vote(at)),
        ("the same vote", vote(at)),
        ("the same candidate with another log", vote(at, last_offset=0, last_offset_epoch=0)),
        ("the same candidate with another directory", vote(at, replica_directory_id=directory_id(77))),
        ("the same candidate without a directory", vote(at, replica_directory_id=NO_DIRECTORY)),
        ("another candidate", vote(at, replica_id=3, replica_directory_id=directory_id(3))),
        ("a stranger", vote(at, replica_id=STRANGER)),
        ("the node itself", vote(at, replica_id=NODE_ID, replica_directory_id=directory_id(NODE_ID))),
    ]


def _begins_at(at: At) -> list[tuple[str, object]]:
    return [
        ("the same leader", begin(at)),
        ("the same leader without endpoints", begin(at, leader_endpoints=())),
        ("to another voter", begin(at, voter_id=3)),
        ("to another directory", begin(at, voter_directory_id=directory_id(3))),
        ("to any directory", begin(at, voter_directory_id=NO_DIRECTORY)),
        ("to anybody", begin(at, voter_id=-1)),
    ]


def _leave_by_higher_epochs(comparison: Comparison, at: At) -> At:
    """Messages that name a higher epoch make a node leave its state, whatever else is wrong with them."""
    for name, request in _moves(at):
        for version in [frame.version for frame in in_all_versions(name, request)]:
            if "stranger" in name and not version:
                continue  # it would not say where the stranger is
            at = At(at.epoch + 1, at.end, at.last_epoch)
            where = f"after {name} v{version}"
            moved = Frame(name, dict(_moves(at))[name], version)
            comparison.ask([moved], "higher epoch")
            comparison.ask(versions_of([("vote", vote(at)), ("fetch", fetch(at)), ("describe", describe())]), where)
    return at


def _moves(at: At) -> list[tuple[str, object]]:
    return [
        ("a vote to another voter", vote(at, voter_id=3)),
        ("a pre-vote", vote(at, pre_vote=True)),
        ("a vote of nobody", vote(at, replica_id=-1)),
        ("begin", begin(at)),
        ("begin to another voter", begin(at, leader_id=3, voter_id=3)),
        ("begin by a stranger", begin(at, leader_id=STRANGER)),
        ("begin without endpoints", begin(at, leader_endpoints=())),
        ("end", end(at)),
        ("end without endpoints", end(at, leader_endpoints=())),
    ]


def test_resigned(tmp_path: Path) -> None:
    """Ours leaves that state within a moment of its start (first-election), so it is met in higher epochs only."""
    seed = Seed(THREE, stored=StoredState(EPOCH, leader_id=NODE_ID))
    with compared(tmp_path, seed, PATIENT, None) as comparison:
        at = _leave_by_higher_epochs(comparison, At(EPOCH + 1, seed.layout.end, LOG_EPOCH))
        comparison.ask(all_frames(at, (seed.layout.second_end, 2)), "after all of them")


@pytest.mark.parametrize("voters", [THREE, (2, 3)], ids=["follower", "observer"])
def test_follower(tmp_path: Path, voters: tuple[int, ...]) -> None:
    seed = Seed(voters, stored=StoredState(EPOCH, leader_id=2))
    at = At(EPOCH, seed.layout.end, LOG_EPOCH)
    with compared(tmp_path, seed, PATIENT, {2: leading(2, EPOCH, at.end)}) as comparison:
        for each in (comparison.apache, comparison.ours):
            _has_fetched(each)
        comparison.ask(all_frames(at, (seed.layout.second_end, 2)), "follower")
        comparison.ask(versions_of(_votes_at(at)), "follower")


def _has_fetched(controller: Controller) -> None:
    """Wait for the second fetch, which is sent when the first was answered."""
    for _ in range(ATTEMPTS):
        if sum(isinstance(each.request, FetchRequest) for each in controller.played[2].asked) > 1:
            return
        time.sleep(PERIOD_S)
    raise AssertionError(f"{controller.node.name} does not fetch")


def test_undecided(tmp_path: Path) -> None:
    seed = Seed(THREE, kraft_version=0, stored=StoredState(EPOCH))
    at = At(EPOCH, seed.layout.end, LOG_EPOCH)
    with compared(tmp_path, seed, PATIENT) as comparison:
        comparison.ask(all_frames(at, (seed.layout.second_end, 2), is_static=True), "undecided")
        comparison.ask(versions_of(_votes_at(at)), "undecided")
        comparison.ask(vote_frames(at), "voted")
        _leave_by_higher_epochs(comparison, At(EPOCH, at.end, at.last_epoch))
