"""What a type checker makes of a test that uses a broker; mypy reads this file, nothing runs it."""

from typing import assert_type

import ottla.testing
from ottla.testing import Broker, Fault, broker


def use() -> None:
    with ottla.testing.broker(num_partitions=3, process=True) as made:
        assert_type(made, Broker)
        assert_type(made.bootstrap_servers, str)
        assert_type(made.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=None), Fault)
        assert_type(made.faults.delay("Fetch", ms=10).hits, int)
        made.advance(1000)
    with broker() as made:
        made.kill()
