"""A transaction that is begun by one client and ended by another."""

import pytest

from ottla.client.transactions import begin, end
from ottla.wire import types
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import FakeCluster
from tests.unit.client.running import run


@pytest.mark.parametrize("coordinator_now", [2, 1])
def test_whoever_ends_a_transaction_need_not_look_for_its_coordinator(coordinator_now: int):
    async def body() -> None:
        cluster = FakeCluster(2)
        cluster.coordinator_id = 2
        async with cluster:
            cluster.broker(2).on("InitProducerId", types.InitProducerIdResponse(producer_id=7))
            async with cluster.client() as client:
                identity = await begin(client, "loader", timeout_ms=1000)
            assert (identity.producer_id, identity.coordinator) == (7, 2)
            before = [len(cluster.broker(node).asked_for("FindCoordinator")) for node in (1, 2)]

            cluster.coordinator_id = coordinator_now
            has_moved = types.EndTxnResponse(error_code=ErrorCode.NOT_COORDINATOR)
            cluster.broker(2).on("EndTxn", types.EndTxnResponse() if coordinator_now == 2 else has_moved)
            cluster.broker(1).on("EndTxn", types.EndTxnResponse())
            async with cluster.client(retry_backoff_ms=1) as other:
                await end(other, identity, commit=True)
            assert cluster.broker(coordinator_now).asked_for("EndTxn")[-1].committed
            after = [len(cluster.broker(node).asked_for("FindCoordinator")) for node in (1, 2)]
            assert (before == after) == (coordinator_now == 2)

    run(body)
