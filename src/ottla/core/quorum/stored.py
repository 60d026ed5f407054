"""quorum-state: the epoch, the leader and the vote that a node must not forget.

One JSON object without a newline. Version 1 names the directory of the candidate voted for; version 0, written with
kraft.version 0, names the configured voters instead. The file is replaced as a whole and synced before a node acts on
what it says.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec

from ottla.core.quorum.voters import NO_DIRECTORY
from ottla.wire import WireError, from_json, to_json
from ottla.wire.types.quorum_state import QuorumStateData

FILE_NAME: Final = "quorum-state"
NOBODY: Final = -1
_VERSION_KEY: Final = "data_version"
_VERSIONS: Final = (0, 1)


class StoredStateError(ValueError):
    """A quorum-state that cannot be read, with the reason. To go on without it could mean to vote twice."""


class StoredState(msgspec.Struct, frozen=True):
    """What is on disk. `leader_id` and `voted_id` are -1 for nobody."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: bytes = NO_DIRECTORY


def write_stored(state: StoredState, *, kraft_version: int, voter_ids: tuple[int, ...] = ()) -> bytes:
    """The file's content."""
    version = 1 if kraft_version >= 1 else 0
    data = QuorumStateData(
        leader_id=state.leader_id,
        leader_epoch=state.epoch,
        voted_id=state.voted_id,
        voted_directory_id=state.voted_directory_id if version else NO_DIRECTORY,
        current_voters=tuple(QuorumStateData.Voter(voter_id) for voter_id in voter_ids) if not version else (),
    )
    return json.dumps({**to_json(data, version), _VERSION_KEY: version}, separators=(",", ":")).encode()


def read_stored(content: bytes) -> StoredState:
    """The state in a file of either version."""
    try:
        fields = json.loads(content)
    except ValueError as error:
        raise StoredStateError(f"quorum-state is not JSON: {error}") from None
    version = fields.pop(_VERSION_KEY, None) if isinstance(fields, dict) else None
    if version not in _VERSIONS:
        raise StoredStateError(f"quorum-state has the {_VERSION_KEY} {version!r}; it is 0 or 1")
    known = to_json(QuorumStateData(), version)
    try:
        data = from_json("QuorumStateData", version, {key: fields[key] for key in fields if key in known})
    except WireError as error:
        raise StoredStateError(f"quorum-state cannot be read: {error}") from None
    return StoredState(data.leader_epoch, data.leader_id, data.voted_id, data.voted_directory_id)
