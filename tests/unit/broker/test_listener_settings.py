"""Dynamic settings of single listeners that cannot be used."""

from __future__ import annotations

import pytest

from ottla.core.metadata.image import BROKER, CLUSTER_DEFAULT
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.types import ApiVersionsRequest
from ottla.wire.types.cluster_metadata import ConfigRecord
from tests.unit.broker.virtual_node import Client, run, running

RATE = "listener.name.plaintext.max.connection.creation.rate"


def test_a_limit_that_cannot_be_used_leaves_the_old_one_in_force(caplog: pytest.LogCaptureFixture):
    """Such a record comes from a log that other software has written, which did not look at the value."""

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            image = node.image
            image.replay(ConfigRecord(BROKER, CLUSTER_DEFAULT, RATE, "soon"), image.last_offset, image.last_epoch)
            node.follow_image(image.take_changes())
            assert (await Client(loop, 9092).ask(ApiVersionsRequest(), 0)).error_code == 0

    run(scenario)
    assert "changed limits of listener PLAINTEXT were rejected: max.connection.creation.rate cannot be" in caplog.text
