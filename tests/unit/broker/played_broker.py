"""A broker that a test plays: it registers with a node and sends heartbeats."""

from __future__ import annotations

from ottla.broker.node import Node
from ottla.core.metadata import features
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from tests.unit.broker.virtual_node import Client


async def another_broker(
    loop: VirtualLoop, node: Node, broker_id: int = 2, *, is_ottla: bool = False
) -> BrokerHeartbeatRequest:
    """Registers and unfences a broker, Apache Kafka's or ottla's; gives its heartbeat."""
    client = Client(loop, 9093)
    kind = BrokerRegistrationRequest
    own_id = bytes(7) + bytes([broker_id]) + bytes(8)
    ranges = features.SUPPORTED | ({features.OTTLA_VERSION: features.OTTLA_VERSIONS} if is_ottla else {})
    asked = kind(
        broker_id,
        node.cluster_id,
        own_id,
        (kind.Listener("PLAINTEXT", "127.0.0.1", 1),),
        tuple(kind.Feature(name, low, high) for name, (low, high) in ranges.items()),
        log_dirs=(own_id,),
    )
    epoch = (await client.ask(asked, 4)).broker_epoch
    heartbeat = BrokerHeartbeatRequest(broker_id, epoch, 1 << 40)
    assert not (await client.ask(heartbeat, 2)).is_fenced
    return heartbeat
