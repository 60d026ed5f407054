"""An administrator of the quorum: takes controllers their votes, and gives them back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla.client import cluster, voters
from simulation.cluster.clients.client import SimulatedClient
from simulation.cluster.machine import controller_port, directory_id, host

if TYPE_CHECKING:
    from simulation.cluster.history import History

__all__ = ["REMOVE_VOTER", "VoterAdmin", "voters_known"]

_VOTERS_MIN = 3
_ADD: Final = "add voter"
REMOVE_VOTER: Final = "remove voter"


class VoterAdmin(SimulatedClient):
    KIND = "voters"

    async def work(self) -> None:
        await self.pause(200, 2_000)
        quorum = await cluster.describe_quorum(self.client)
        having = [each.node_id for each in quorum.voters]
        wanting = [each.number for each in self.world.controllers if each.number not in having]
        if wanting:
            number = self.random.choice(wanting)
            listeners = [("CONTROLLER", host(number), controller_port(number))]
            await self.do(
                _ADD, number, lambda: voters.add_raft_voter(self.client, number, directory_id(number), listeners)
            )
        elif len(having) >= _VOTERS_MIN:
            number = self.random.choice(having)
            await self.do(
                REMOVE_VOTER, number, lambda: voters.remove_raft_voter(self.client, number, directory_id(number))
            )


def voters_known(history: History, having: set[int]) -> Iterator[str]:
    """What the voters are not, although it was answered, and nothing else may have changed it."""
    changes = history.of(_ADD, REMOVE_VOTER)
    uncertain = {each.subject for each in changes if not each.is_done}
    for number, last in {each.subject: each for each in changes}.items():
        if number not in uncertain and (last.kind == _ADD) != (number in having):
            yield f"{last.kind} {number} was done, and the voters are {sorted(having)}"
