"""The epochs of members that mean something by themselves, and what every member can be asked."""

from __future__ import annotations

from typing import Final, Protocol, Self

__all__ = ["JOIN_GROUP_MEMBER_EPOCH", "LEAVE_GROUP_MEMBER_EPOCH", "LEAVE_GROUP_STATIC_MEMBER_EPOCH", "ModernMember"]

JOIN_GROUP_MEMBER_EPOCH: Final = 0
"""The member epoch of a request to join."""
LEAVE_GROUP_MEMBER_EPOCH: Final = -1
"""The member epoch of a request to leave, and of a member whose removal is being replayed."""
LEAVE_GROUP_STATIC_MEMBER_EPOCH: Final = -2
"""The member epoch of a static member that leaves for a while: what it owns stays its own until its session ends."""


class ModernMember(Protocol):
    @property
    def member_id(self) -> str: ...
    @property
    def must_revoke(self) -> bool:
        """Whether it has yet to give up something that was taken from it."""
        ...

    def released(self) -> Self:
        """The member without what it owns: the first step of its removal."""
        ...
