"""A member of a share group, as records 10 and 14 tell it."""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.core.groups.assignors import Target
from ottla.core.groups.modern.members import LEAVE_GROUP_MEMBER_EPOCH

__all__ = ["NO_PARTITIONS", "STABLE", "Partitions", "ShareGroupMember"]

STABLE: Final = 0
"""The only state a member can be in: what it is to have, it has."""

Partitions = Target
"""What a member has, in the form of what it is to have."""
NO_PARTITIONS: Final[Partitions] = {}


class ShareGroupMember(msgspec.Struct, frozen=True, kw_only=True):
    member_id: str
    """Made by the client; not to be parsed."""
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    """Of the topics that it subscribes to. They need not exist."""
    assigned: Partitions = NO_PARTITIONS

    @property
    def must_revoke(self) -> bool:
        """Partitions are shared: nobody waits until a member has given one up."""
        return False

    def released(self) -> ShareGroupMember:
        return msgspec.structs.replace(
            self,
            member_epoch=LEAVE_GROUP_MEMBER_EPOCH,
            previous_member_epoch=LEAVE_GROUP_MEMBER_EPOCH,
            assigned=NO_PARTITIONS,
        )
