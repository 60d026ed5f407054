"""The state of share groups, as their records tell it, on both brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.health.facts import ShareState
from ottla.health.samples import fact_in
from tests.interop.node.brokers import Node
from tests.interop.observe.sharing import GROUP, LIMIT, LIMITS, POISON, REJECTED, TOPIC, observed_work
from tests.interop.observe.watching import Watched


def test_a_poison_record_and_a_rejected_one_are_told_apart(boot: Callable[..., Node]):
    node = boot(**LIMITS)
    observed = asyncio.run(observed_work(node.bootstrap_servers))
    facts = [fact for each in observed.of("share_state") if isinstance(fact := fact_in(each), ShareState)]
    assert {(each.group, each.topic, each.partition) for each in facts} == {(GROUP, TOPIC, 0)}
    offsets = [each.offset for each in facts]
    assert offsets == sorted(set(offsets))
    ended = {(batch.first, batch.last, batch.count) for each in facts for batch in each.batches if batch.state == 4}
    assert {(REJECTED, REJECTED, 1), (POISON, POISON, LIMIT)} <= ended
    found = {each.rule: each for each in Watched(observed.samples).judged("single-voter").findings()}
    assert set(found) == {"poison-records", "rejected-records"}
    assert f"{TOPIC}-0 {POISON}" in found["poison-records"].sentence
