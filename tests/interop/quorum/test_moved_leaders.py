"""Leaders move from node to node of ottla while producers of librdkafka have several batches under way.

They are idempotent: everything is there once and in order. On nodes of Apache Kafka that is not so, 60 moves doubled
1,324 records (4.3.1, librdkafka 2.16.0, its issue 4953): a new leader answers a batch with OUT_OF_ORDER_SEQUENCE_NUMBER
when it has refused the one before it, and librdkafka then sends everything that was not answered in a new epoch.
"""

from __future__ import annotations

from pathlib import Path

from tests.component.broker.kill_load import TOPIC, Load, check, read_log
from tests.interop.node.brokers import OTTLA
from tests.interop.quorum.members import Quorum

MOVES = 20
PRODUCERS = {f"idempotent-{number}": {"enable.idempotence": True} for number in range(3)}


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    with Quorum(tmp_path, voters=dict.fromkeys((1, 2, 3), OTTLA), **{"min.insync.replicas": "2"}) as quorum:
        load = Load(quorum.bootstrap_servers, PRODUCERS, replicas=3)
        for _ in range(MOVES):
            load.wait_for(100)
            quorum.move_leaders(TOPIC)
        load.finish()
        check(load, read_log(quorum.bootstrap_servers))
        quorum.check_equal_logs(TOPIC)
        quorum.check_health()
