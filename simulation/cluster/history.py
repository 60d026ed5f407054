"""What clients have asked for, and what they were told: the history that the invariants are judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from simulation.cluster.world import ClusterWorld

__all__ = ["History", "Operation"]

_NEVER_MS: Final = 1 << 60


class Operation(NamedTuple):
    """Something that a client has asked for, and how it ended."""

    began_ms: int
    ended_ms: int
    client: str
    kind: str
    subject: Any
    result: Any
    """What the answer brought. None if there was none, or an error: it may have been done nevertheless, or be done
    later, since clients and nodes repeat requests."""

    @property
    def is_done(self) -> bool:
        return self.result is not None


class History:
    """All operations, in the order of their ends."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self.operations: list[Operation] = []
        self._open: dict[int, Operation] = {}
        self._count = 0

    def begin(self, client: str, kind: str, subject: Any) -> int:  # noqa: ANN401
        """A client asks for something; gives the operation's number."""
        self._count += 1
        self._open[self._count] = Operation(self._world.now_ms(), _NEVER_MS, client, kind, subject, None)
        return self._count

    def end(self, number: int, *, result: Any = None, error: str = "", subject: Any = None) -> None:  # noqa: ANN401
        """It was answered, or not. `subject` may say more than at the beginning."""
        begun = self._open.pop(number)
        operation = begun._replace(ended_ms=self._world.now_ms(), result=result, subject=subject or begun.subject)
        self.operations.append(operation)
        self._world.note(f"{operation.client} {operation.kind} {operation.subject}: {error or result}")

    def close(self) -> None:
        """What has not ended by now never will: its client is dead."""
        self.operations += self._open.values()
        self._open.clear()

    def of(self, *kinds: str) -> list[Operation]:
        return [each for each in self.operations if each.kind in kinds]
