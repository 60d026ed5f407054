import pytest

from ottla.broker.config.node_config import NodeConfig
from ottla.cli.demo.plan import DELIVERY_LIMIT, RATES, TOPICS, Plan


def test_two_hundred_records_a_second():
    assert sum(RATES.values()) == 200
    assert set(RATES) == set(TOPICS)


def test_twelve_poison_records_four_in_each_partition():
    poison = Plan().poison()
    assert sorted(poison) == [0, 1, 2]
    assert all(len(set(numbers)) == 4 for numbers in poison.values())


def test_the_seed_decides_which():
    assert Plan(7).poison() == Plan(7).poison()
    assert Plan(7).poison() != Plan(8).poison()


@pytest.mark.parametrize("speed", [1.0, 15.0])
def test_the_order_of_events(speed: float):
    plan = Plan(speed=speed)
    assert plan.second_app_s < plan.kill_member_s < plan.kill_node_s
    assert plan.kill_node_s + plan.down_s < plan.storm_s
    assert plan.storm_s + plan.storm_length_s < plan.end_s


def test_time_outs_are_those_of_the_story():
    plan = Plan()
    assert (plan.session_ms, plan.lock_ms, plan.down_s, plan.storm_length_s) == (6_000, 5_000, 45, 30)


def test_findings_have_time_to_resolve_after_the_storm():
    plan = Plan()
    assert plan.end_s - (plan.storm_s + plan.storm_length_s) >= 65


def test_a_missing_replica_is_missed_long_enough_to_be_found():
    assert Plan().down_s > 30


@pytest.mark.parametrize("speed", [0.5, 1.0, 20.0])
def test_a_broker_takes_the_settings(speed: float):
    config = NodeConfig(Plan(speed=speed).broker_settings, {"log.dirs": "somewhere"})
    assert config["group.share.delivery.count.limit"] == DELIVERY_LIMIT
    assert config["group.consumer.session.timeout.ms"] == Plan(speed=speed).session_ms
