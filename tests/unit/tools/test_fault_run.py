"""How the fault run chooses its faults, and how it judges what the logs say."""

from collections import Counter

from tools.fault_run.evidence import Batch, unequal
from tools.fault_run.plan import LONG_S, plan
from tools.fault_run.run import Outage, is_reason


def test_a_seed_gives_the_same_faults_and_all_kinds_of_them():
    faults = plan(20, 7)
    assert faults == plan(20, 7)
    assert faults != plan(20, 8)
    assert set(Counter((each.kind, each.does_hit_leader) for each in faults).values()) == {2}
    assert any(each.seconds == LONG_S for each in faults)


def test_logs_may_differ_in_length_only():
    whole = {0: Batch(1, 11), 5: Batch(1, 12), 9: Batch(2, 13)}
    assert unequal([whole, {5: Batch(1, 12)}, {}]) == []
    assert unequal([whole, {5: Batch(1, 12), 9: Batch(3, 13)}]) == [9]
    assert unequal([{5: Batch(1, 12)}, whole, {0: Batch(1, 99)}]) == [0]


def test_a_broker_is_fenced_only_when_its_session_has_ended():
    outage = Outage(2, began_ms=10_000, ended_ms=30_000)
    assert is_reason(outage, 2, 19_500)
    assert is_reason(outage, 2, 17_000), "its last heartbeat was a while ago"
    assert not is_reason(outage, 2, 16_900)
    assert is_reason(outage, 2, 32_000), "its next heartbeat comes a while later"
    assert not is_reason(outage, 2, 32_001)
    assert not is_reason(outage, 1, 19_500)
    assert is_reason(outage._replace(is_dead=True), 2, 10_200), "nobody listens where it did"
