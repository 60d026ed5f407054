"""What must hold when the calm has come: plain functions over the history and the nodes. Each gives what it misses.

=========================  ===========================================================================================
invariant                  says
=========================  ===========================================================================================
converges                  all nodes serve, follow one leader, and have all brokers unfenced, in bounded time
metadata known             what a controller has answered is in the image of every node
voters known               the voters are those of the last change that was answered
image replayed             the image of a node is what the committed log makes, record by record
snapshot replayed          so is every snapshot
logs equal                 the logs of all nodes are the committed one
coordinators loaded        whoever leads a partition of coordinators has loaded it, and nobody else has
coordinators replayed      what a coordinator knows is what its log makes, record by record
=========================  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ottla.broker.controller.metadata_replay import MetadataReplay
from ottla.core.metadata.image import TOPIC, MetadataImage
from ottla.core.metadata.snapshot import load_snapshot
from ottla.core.quorum.states import State
from ottla.wire.batch import BatchView, split_batches
from simulation.cluster.clients.voters import voters_known
from simulation.cluster.coordinator_checks import coordinators_loaded, coordinators_replayed
from simulation.cluster.history import History
from simulation.cluster.raft_invariants import Batch
from simulation.cluster.replica_invariants import replicas_out_of_sync

if TYPE_CHECKING:
    from simulation.cluster.world import ClusterWorld

__all__ = ["final_checks", "unconverged"]


def unconverged(world: ClusterWorld) -> Iterator[str]:
    """What is missing until all nodes agree."""
    leader = world.leader()
    if leader is None or leader.node is None:
        yield "nobody leads"
        return
    quorum = leader.node.raft.quorum
    brokers = {each.number: False for each in world.brokers}
    for machine in world.machines.values():
        node = machine.node
        if node is None or not machine.is_serving:
            yield f"{machine.name} does not serve"
            continue
        own = node.raft.quorum
        if (own.leader_id, own.epoch) != (leader.number, quorum.epoch):
            yield f"{machine.name} follows n{own.leader_id} in epoch {own.epoch}"
        elif own.state not in (State.LEADER, State.FOLLOWER):
            yield f"{machine.name} stands for election"
        elif own.high_watermark < quorum.high_watermark - 2:
            yield f"{machine.name} has committed {own.high_watermark} of {quorum.high_watermark}"
        fenced = {number: broker.fenced for number, broker in node.image.brokers.items()}
        if fenced != brokers:
            yield f"{machine.name} knows the brokers as {fenced}"
    yield from replicas_out_of_sync(world)


def final_checks(world: ClusterWorld) -> Iterator[tuple[str, str]]:
    """The invariants that do not hold, with what is wrong."""
    committed = world.raft.committed
    images: list[tuple[str, str, MetadataImage]] = []
    for machine in world.machines.values():
        node = machine.node
        if node is None:
            continue
        for missing in metadata_known(world.history, node.image):
            yield "metadata known", f"{machine.name}: {missing}"
        for missing in voters_known(world.history, set(node.raft.quorum.control.voters.ids)):
            yield "voters known", f"{machine.name}: {missing}"
        images.append(("image replayed", machine.name, node.image))
        for identity in node.raft.snapshots.ids:
            image = load_snapshot(node.raft.snapshots.read(identity), identity)
            images.append(("snapshot replayed", f"{machine.name} at {identity.end_offset}", image))
        for difference in logs_equal(committed, world.raft.written_log(machine, 0)):
            yield "logs equal", f"{machine.name}: {difference}"
    yield from images_replayed(committed, images)
    for missing in coordinators_loaded(world):
        yield "coordinators loaded", missing
    for difference in coordinators_replayed(world):
        yield "coordinators replayed", difference


def metadata_known(history: History, image: MetadataImage) -> Iterator[str]:
    """Topics that were created and not deleted are there, with what was last set; what was deleted is not."""
    deleted = {each.subject: each.is_done for each in history.of("delete topic")}
    for created in history.of("create topic"):
        name = created.subject
        topic = image.topic(name)
        if created.is_done and name not in deleted and (topic is None or topic.topic_id.hex() != created.result):
            yield f"topic {name} was created as {created.result}, and is {topic and topic.topic_id.hex()}"
        if created.is_done and deleted.get(name) and topic is not None and topic.topic_id.hex() == created.result:
            yield f"topic {name} was deleted, and is there"
    allowed: dict[str, set[str]] = {}
    for change in history.of("set retention"):
        name, value = change.subject
        if change.is_done:
            allowed[name] = {value} | {
                each.subject[1] for each in history.of("set retention") if each.subject[0] == name and not each.is_done
            }
    for name, values in allowed.items():
        found = image.configs(TOPIC, name).get("retention.ms")
        if name not in deleted and found not in values:
            yield f"retention.ms of {name} was set to one of {sorted(values)}, and is {found}"
    for change in history.of("add partitions"):
        name, count = change.subject
        topic = image.topic(name)
        if change.is_done and name not in deleted and (topic is None or len(topic.partitions) < count):
            yield f"topic {name} got {count} partitions, and has {topic and len(topic.partitions)}"


def images_replayed(
    committed: list[Batch], images: Iterable[tuple[str, str, MetadataImage]]
) -> Iterator[tuple[str, str]]:
    """Images, with the invariant and the name of each, that are not what the log makes up to where they are."""
    replay, taken = MetadataReplay(), 0
    for invariant, name, image in sorted(images, key=lambda each: each[2].last_offset):
        while taken < len(committed) and committed[taken].base_offset <= image.last_offset:
            for view in split_batches(committed[taken].data):
                assert isinstance(view, BatchView)
                replay.take_batches([view])
            taken += 1
        if image != replay.image:
            own, other = image.state(), replay.image.state()
            differences = [f"{key} is {own[key]}, replayed {other[key]}" for key in own if own[key] != other[key]]
            yield invariant, f"{name}: {'; '.join(differences)}"
    for fault in replay.faults:
        yield "image replayed", fault


def logs_equal(committed: list[Batch], batches: list[Batch]) -> Iterator[str]:
    by_base = {each.base_offset: each for each in committed}
    end_offset = committed[-1].end_offset if committed else 0
    for batch in batches:
        if batch.end_offset <= end_offset and by_base.get(batch.base_offset) != batch:
            yield f"has {batch[:3]}, committed is {by_base.get(batch.base_offset)}"
