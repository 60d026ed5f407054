"""Messages and states of a quorum, as a line of text for people."""

from __future__ import annotations

from typing import Any

from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.states import Leader
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["show_message", "show_state"]


def show_message(message: Any) -> str:  # noqa: ANN401
    """The name of a message, and the fields that matter."""
    if isinstance(message, Reject):
        return f"refused {message.code.name}"
    if message is None:
        return "done"
    name = type(message).__name__
    short = name.removesuffix("Request").removesuffix("Response")
    error = getattr(message, "error_code", 0)
    if error:
        return f"{short} {ErrorCode(error).name}"
    show = _SHOWN.get(name)
    text = show(message) if show else ""
    return f"{short} {text}".rstrip()


def _partition(message: Any) -> Any:  # noqa: ANN401
    topics = message.responses if hasattr(message, "responses") else message.topics
    return topics[0].partitions[0] if topics and topics[0].partitions else None


def _error(partition: Any) -> str:  # noqa: ANN401
    return f"{ErrorCode(partition.error_code).name} " if partition.error_code else ""


def _leader(partition: Any) -> str:  # noqa: ANN401
    leader = getattr(partition, "current_leader", partition)
    who = "nobody" if leader.leader_id < 0 else f"n{leader.leader_id}"
    return f"epoch={leader.leader_epoch} leader={who}"


def _vote_request(message: Any) -> str:  # noqa: ANN401
    each = _partition(message)
    kind = "pre-vote " if each.pre_vote else ""
    return f"{kind}epoch={each.replica_epoch} log={each.last_offset}@{each.last_offset_epoch}"


def _vote_response(message: Any) -> str:  # noqa: ANN401
    each = _partition(message)
    return f"{_error(each)}{'granted' if each.vote_granted else 'refused'} {_leader(each)}"


def _epoch_request(message: Any) -> str:  # noqa: ANN401
    each = _partition(message)
    candidates = [f"n{one.candidate_id}" for one in getattr(each, "preferred_candidates", ())]
    return f"epoch={each.leader_epoch}" + (f" candidates={','.join(candidates)}" if candidates else "")


def _epoch_response(message: Any) -> str:  # noqa: ANN401
    each = _partition(message)
    return f"{_error(each)}{_leader(each)}"


def _fetch_request(message: Any) -> str:  # noqa: ANN401
    each = _partition(message)
    return f"epoch={each.current_leader_epoch} log={each.fetch_offset}@{each.last_fetched_epoch}"


def _fetch_response(message: Any) -> str:  # noqa: ANN401
    each = _partition(message)
    parts = [f"{_error(each)}{_leader(each)} hw={each.high_watermark}"]
    if each.diverging_epoch.epoch >= 0:
        parts.append(f"diverging={each.diverging_epoch.end_offset}@{each.diverging_epoch.epoch}")
    if each.snapshot_id.end_offset >= 0:
        parts.append(f"snapshot={each.snapshot_id.end_offset}@{each.snapshot_id.epoch}")
    if each.records:
        parts.append(f"records={_span(bytes(each.records))}")
    return " ".join(parts)


def _span(records: bytes) -> str:
    from simulation.quorum.virtual_log import batches_of

    batches = batches_of(records)
    return f"{batches[0].base_offset}..{batches[-1].end_offset - 1}" if batches else "none"


def _snapshot_request(message: Any) -> str:  # noqa: ANN401
    each = _partition(message)
    return f"{each.snapshot_id.end_offset}@{each.snapshot_id.epoch} position={each.position}"


def _snapshot_response(message: Any) -> str:  # noqa: ANN401
    each = _partition(message)
    return f"{_error(each)}position={each.position} bytes={len(each.unaligned_records or b'')} of {each.size}"


def _voter_request(message: Any) -> str:  # noqa: ANN401
    return f"n{message.voter_id}/{message.voter_directory_id[:1].hex()}"


_SHOWN = {
    "VoteRequest": _vote_request,
    "VoteResponse": _vote_response,
    "BeginQuorumEpochRequest": _epoch_request,
    "BeginQuorumEpochResponse": _epoch_response,
    "EndQuorumEpochRequest": _epoch_request,
    "EndQuorumEpochResponse": _epoch_response,
    "FetchRequest": _fetch_request,
    "FetchResponse": _fetch_response,
    "FetchSnapshotRequest": _snapshot_request,
    "FetchSnapshotResponse": _snapshot_response,
    "AddRaftVoterRequest": _voter_request,
    "RemoveRaftVoterRequest": _voter_request,
    "UpdateRaftVoterRequest": _voter_request,
}


def show_state(quorum: Quorum) -> str:
    """A node in one line."""
    state, log = quorum.epoch_state, quorum.log
    leader = "nobody" if quorum.leader_id < 0 else f"n{quorum.leader_id}"
    voters = ",".join(f"n{each}" for each in quorum.control.voters.ids)
    known = state.high_watermark if isinstance(state, Leader) else quorum.high_watermark
    high_watermark = -1 if known is None else known
    return (
        f"{quorum.state.name} epoch={quorum.epoch} leader={leader} log={log.start_offset}..{log.end_offset}"
        f"@{log.last_epoch} hw={high_watermark} voters={voters}"
    )
