"""What every message and every event does in every state, as one table.

A cell says what is answered, by a word or by an error code, and behind `>` the state that the node is in afterwards, if
it is another one: its first letter. `+` there means that the epoch is
one higher. `two` is a QuorumError: an epoch has two leaders. `-` is no answer, `.` cannot be.

The states are those of `replica.STATES`: `voted` is unattached and has voted for node 2; `follower` follows node 2,
`fetched` has also had an answer of it. Votes are asked by node 3, with a log that is up to date unless it is said
otherwise; node 2 begins and ends epochs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.events import Answered, NotAnswered, PeerGone, Stop
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.types.describe_quorum import DescribeQuorumRequest
from ottla.wire.types.end_quorum_epoch import EndQuorumEpochResponse
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.types.update_raft_voter import UpdateRaftVoterRequest
from ottla.wire.types.vote import VoteRequest
from tests.unit.core.quorum.replica import (
    CLUSTER,
    EPOCH,
    STATES,
    TOPIC,
    Replica,
    begin,
    directory,
    end,
    fetch,
    fetch_response,
    partition_of,
    vote,
    vote_response,
)

TABLE = """
message or event       unattached  voted       prospective candidate   leader      follower    fetched     resigned

in the same epoch:
pre-vote               granted     granted     granted     granted     refused     granted     refused     granted
pre-vote, log behind   refused     refused     refused     refused     refused     refused     refused     refused
vote                   granted     refused     granted     refused     refused     refused     refused     refused
vote, log behind       refused     refused     refused     refused     refused     refused     refused     refused
vote of node 2         granted     granted     granted     refused     refused     refused     refused     refused
begin                  0>F         0>F         0>F         0>F         -1          0           0           -1
end                    0>P         0>P         0           0>P         -1          0>P         0>P         -1
fetch                  6           6           6           6           0           6           6           6
fetch snapshot         6           6           6           6           98          6           6           6
update voter           6           6           6           6           7           6           6           6

in the next epoch:
+pre-vote              granted>U+  granted>U+  granted>U+  granted>U+  granted>U+  granted>U+  granted>U+  granted>U+
+pre-vote, log behind  refused>U+  refused>U+  refused>U+  refused>U+  refused>U+  refused>U+  refused>U+  refused>U+
+vote                  granted>U+  granted>U+  granted>U+  granted>U+  granted>U+  granted>U+  granted>U+  granted>U+
+vote, log behind      refused>U+  refused>U+  refused>U+  refused>U+  refused>U+  refused>U+  refused>U+  refused>U+
+begin                 0>F+        0>F+        0>F+        0>F+        0>F+        0>F+        0>F+        0>F+
+end                   0>P+        0>P+        0>P+        0>P+        0>P+        0>P+        0>P+        0>P+
+fetch                 75          75          75          75          75          75          75          75
+fetch snapshot        75          75          75          75          75          75          75          75
+update voter          75          75          75          75          75          75          75          75

in the epoch before:
-pre-vote              74          74          74          74          74          74          74          74
-vote                  74          74          74          74          74          74          74          74
-begin                 74          74          74          74          74          74          74          74
-end                   74          74          74          74          74          74          74          74
-fetch                 74          74          74          74          74          74          74          74
-fetch snapshot        74          74          74          74          74          74          74          74
-update voter          74          74          74          74          74          74          74          74

without an epoch:
add voter              6           6           6           6           7           6           6           6
remove voter           6           6           6           6           7           6           6           6
describe quorum        6           6           6           6           0           6           6           6

answers to what it has sent:
granted vote           .           .           ->C+        ->L         .           .           .           .
refused vote           .           .           -           -           .           .           .           .
node 2 leads           ->F         ->F         ->F         ->F         two         -           -           two
a higher epoch         ->U+        ->U+        ->U+        ->U+        ->U+        ->U+        ->U+        ->U+
none comes             -           -           -           -           -           -           -           -
to something older     -           -           -           -           -           -           -           -

events:
time passes            ->P         ->P         ->U         ->P         ->R         ->P         ->P         ->P+
node 2 is gone         ->P         ->P         -           -           -           ->P         ->P         -
stop                   -           -           -           -           ->R         -           -           -
"""
HEADER, *LINES = [line for line in TABLE.splitlines() if line and not line.endswith(":")]
COLUMNS = HEADER.split()[3:]
ROWS = {line[:22].strip(): line[22:].split() for line in LINES}
LONG_LOG, SHORT_LOG = (99, EPOCH), (1, 1)


# --- messages ---------------------------------------------------------------------------------------------------------


def fetch_snapshot(epoch: int) -> FetchSnapshotRequest:
    kind = FetchSnapshotRequest
    partition = kind.PartitionSnapshot(0, epoch, kind.SnapshotId(6, 2), 0, directory(2))
    return kind(CLUSTER, 2, 100, (kind.TopicSnapshot(TOPIC, (partition,)),))


def update_voter(epoch: int) -> UpdateRaftVoterRequest:
    kind = UpdateRaftVoterRequest
    listeners = (kind.Listener("CONTROLLER", "elsewhere", 1),)
    return kind(CLUSTER, epoch, 2, directory(2), listeners, kind.KRaftVersionFeature(0, 1))


def log_of(epoch: int, log: tuple[int, int]) -> tuple[int, int]:
    """A vote's log is of an earlier epoch than the one that it is for."""
    return log[0], min(log[1], epoch - 1)


REQUESTS: dict[str, Callable[[int], Any]] = {
    "pre-vote": lambda epoch: vote(epoch, pre_vote=True, log=(LONG_LOG[0], min(epoch, EPOCH))),
    "pre-vote, log behind": lambda epoch: vote(epoch, pre_vote=True, log=SHORT_LOG),
    "vote": lambda epoch: vote(epoch, log=log_of(epoch, LONG_LOG)),
    "vote, log behind": lambda epoch: vote(epoch, log=SHORT_LOG),
    "vote of node 2": lambda epoch: vote(epoch, candidate_id=2, log=log_of(epoch, LONG_LOG)),
    "begin": begin,
    "end": end,
    "fetch": lambda epoch: fetch(epoch, last_epoch=min(epoch, 4)),
    "fetch snapshot": fetch_snapshot,
    "update voter": update_voter,
}
EPOCHS = {"+": EPOCH + 1, "-": EPOCH - 1}


def request_of(row: str) -> Any:
    """The request of a row; None if it is no request with an epoch."""
    if row in REQUESTS:
        return REQUESTS[row](EPOCH)
    if row[1:] in REQUESTS and row[0] in EPOCHS:
        return REQUESTS[row[1:]](EPOCHS[row[0]])
    if row == "add voter":
        listeners = (AddRaftVoterRequest.Listener("CONTROLLER", "h", 1),)
        return AddRaftVoterRequest(CLUSTER, 1_000, 9, directory(9), listeners)
    return RemoveRaftVoterRequest(CLUSTER, 2, directory(2)) if row == "remove voter" else None


def answer_to(replica: Replica, row: str) -> str:
    if row == "describe quorum":
        kind = DescribeQuorumRequest
        asked = kind((kind.TopicData(TOPIC, (kind.PartitionData(0),)),))
        return shown(replica.quorum.describe(asked, 2, replica.now_ms, 0))
    request = request_of(row)
    if request is not None:
        return shown(replica.ask(request))
    EVENTS[row](replica)
    return "-"


def shown(response: Any) -> str:
    if isinstance(response, Reject):
        return str(int(response.code))
    if not hasattr(response, "topics") and not hasattr(response, "responses"):
        return str(int(response.error_code))
    partition = partition_of(response)
    if partition.error_code or not hasattr(partition, "vote_granted"):
        return str(int(partition.error_code))
    return "granted" if partition.vote_granted else "refused"


# --- events and answers -----------------------------------------------------------------------------------------------


def response_to(request: Any, epoch: int, leader_id: int, error: ErrorCode) -> Any:
    """A response that names a leader, or nobody."""
    if isinstance(request, VoteRequest):
        return vote_response(granted=False, epoch=epoch, leader_id=leader_id, error=error)
    if isinstance(request, FetchRequest):
        return fetch_response(epoch=epoch, leader_id=leader_id, error=error)
    kind = BeginQuorumEpochResponse if isinstance(request, BeginQuorumEpochRequest) else EndQuorumEpochResponse
    return kind(topics=(kind.TopicData(TOPIC, (kind.PartitionData(0, error, leader_id, epoch),)),))


def node_2_leads(replica: Replica) -> None:
    sent = replica.sent[-1]
    replica.answer(sent, response_to(sent.request, EPOCH, 2, ErrorCode.NOT_LEADER_OR_FOLLOWER))


def higher_epoch(replica: Replica) -> None:
    sent = replica.sent[-1]
    replica.answer(sent, response_to(sent.request, EPOCH + 1, -1, ErrorCode.FENCED_LEADER_EPOCH))


EVENTS: dict[str, Callable[[Replica], object]] = {
    "granted vote": lambda replica: replica.answer(replica.sent[-1], vote_response(granted=True)),
    "refused vote": lambda replica: replica.answer(replica.sent[-1], vote_response(granted=False)),
    "node 2 leads": node_2_leads,
    "a higher epoch": higher_epoch,
    "none comes": lambda replica: replica.step(NotAnswered(replica.sent[-1].request_id)),
    "to something older": lambda replica: replica.step(Answered(10_000, fetch_response(epoch=EPOCH + 1))),
    "time passes": lambda replica: replica.advance(3_000),
    "node 2 is gone": lambda replica: (replica.step(PeerGone(2)), replica.advance(30)),
    "stop": lambda replica: replica.step(Stop()),
}


# --- the table --------------------------------------------------------------------------------------------------------


def cell(row: str, state: str) -> str:
    """What happens, as the table says it."""
    replica = STATES[state]()
    before = replica.quorum.state, replica.quorum.epoch
    if row.endswith(" vote") and row in EVENTS and not isinstance(replica.sent[-1].request, VoteRequest):
        return "."  # it does not ask for votes
    try:
        answer = answer_to(replica, row)
    except QuorumError:
        return "two"
    after = replica.quorum.state, replica.quorum.epoch
    moved = f">{after[0].name[0]}" if after[0] is not before[0] or after[1] != before[1] else ""
    return answer + moved + "+" * (after[1] - before[1])


@pytest.mark.parametrize("row", ROWS)
def test_every_state(row: str) -> None:
    assert {state: cell(row, state) for state in STATES} == dict(zip(COLUMNS, ROWS[row], strict=True))


def test_the_table_is_complete() -> None:
    assert list(STATES) == COLUMNS
    assert len(ROWS) == len(LINES)
    requests = {*REQUESTS, *(sign + row for sign in EPOCHS for row in REQUESTS)}
    left_out = {f"{sign}vote of node 2" for sign in EPOCHS} | {"-pre-vote, log behind", "-vote, log behind"}
    assert set(ROWS) == requests - left_out | {*EVENTS, "add voter", "remove voter", "describe quorum"}
