"""Steps of a leader of five voters, with 100 and with 100,000 records in its log.

    python -m benchmarks.quorum.bench_quorum [--rounds 15]

A step must cost the same, however long the log is: a fetch of a follower that has everything, one that reads the newest
record, and a tick. The first subject has the short log.
"""

import sys
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from benchmarks import runner
from benchmarks.runner import Case, Size, Subject
from ottla.core.quorum.events import Event, Received, Synced, Tick
from ottla.core.quorum.follower import fetch_request
from ottla.core.quorum.quorum import Quorum
from ottla.wire.types.fetch import FetchRequest
from simulation.quorum.virtual_log import Batch
from simulation.quorum.world import QuorumWorld

LENGTHS = {Size.FULL: (100, 100_000), Size.QUICK: (100, 100_000), Size.SMOKE: (10, 100)}


def leading(records: int) -> Quorum:
    """A leader of five, with a log of so many batches, each of one record."""
    world = QuorumWorld(1, voters=5)
    for node in world.nodes.values():
        node.start()
    world.run_until(10_000)
    leader = world.leader()
    assert leader is not None
    assert leader.quorum is not None
    world.propose(leader)
    newest, quorum = leader.log.batches[-1], leader.quorum
    ends = range(newest.end_offset, newest.end_offset + records)
    leader.log.append([Batch(each, each + 1, newest.epoch, newest.data) for each in ends])
    quorum.step(Synced(leader.log.end_offset), world.now_ms(), 0)
    return quorum


def fetch_of(quorum: Quorum, behind: int) -> Received:
    """A fetch by a follower that lacks so many records."""
    own = fetch_request(quorum)
    partition = replace(own.topics[0].partitions[0], fetch_offset=quorum.log.end_offset - behind)
    kind = FetchRequest
    other = next(voter for voter in quorum.control.voters.voters if not quorum.is_self(voter))
    partition = replace(partition, replica_directory_id=other.directory_id)
    topics = (replace(own.topics[0], partitions=(partition,)),)
    request = replace(own, replica_state=kind.ReplicaState(other.voter_id), max_wait_ms=0, topics=topics)
    return Received(request, None, 18, "CONTROLLER")


def step_of(quorum: Quorum, event: Event) -> Callable[[], object]:
    now_ms = quorum.now_ms
    return lambda: quorum.step(event, now_ms, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_windows(runner.parser(__doc__), arguments, lengths=LENGTHS)
    leaders = {length: leading(length) for length in options.lengths}
    events: dict[str, Callable[[Quorum], Event]] = {
        "fetch without news": lambda quorum: fetch_of(quorum, 0),
        "fetch of one record": lambda quorum: fetch_of(quorum, 1),
        "tick": lambda quorum: Tick(),
    }
    cases = [
        Case(
            f"{name}, five voters",
            [Subject(f"{length:,} records", step_of(quorum, make(quorum)), [()]) for length, quorum in leaders.items()],
        )
        for name, make in events.items()
    ]
    runner.run("quorum", cases, options, ("msgspec",))
    return 0


if __name__ == "__main__":
    sys.exit(main())
