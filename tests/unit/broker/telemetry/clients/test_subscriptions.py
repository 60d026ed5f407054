import pytest

from ottla.broker.telemetry.clients.subscriptions import Client, Subscription, client_subscription, subscription_from

ID = bytes.fromhex("963b916f1dd94f4c8d9fa2ce72a39bba")
CLIENT = Client(ID, "orders-1", "apache-kafka-java", "4.3.1", "127.0.0.1", 40_001)


def test_nothing_is_wanted_of_a_client_that_no_subscription_matches():
    subscription = client_subscription(CLIENT, [])
    assert (subscription.metrics, subscription.interval_ms) == ((), 300_000)


def test_the_number_is_that_of_apache_kafka():
    """Measured on 4.3.1: this client, nothing wanted, five minutes."""
    assert client_subscription(CLIENT, []).subscription_id == -1608926071


def test_the_number_changes_with_the_metrics_the_interval_and_the_client():
    wanted = Subscription("a", frozenset({"org.apache.kafka.producer"}), 1_000)
    slower = Subscription("a", frozenset({"org.apache.kafka.producer"}), 2_000)
    other = Client(ID[::-1], "orders-1", None, None, "127.0.0.1", 1)
    asked = [(CLIENT, []), (CLIENT, [wanted]), (CLIENT, [slower]), (other, [wanted])]
    assert len({client_subscription(client, subscriptions).subscription_id for client, subscriptions in asked}) == 4


def test_all_that_match_are_taken_together_at_the_shortest_interval():
    first = Subscription("a", frozenset({"producer", "common"}), 60_000)
    second = Subscription("b", frozenset({"common", "consumer"}), 5_000)
    subscription = client_subscription(CLIENT, [first, second])
    assert (subscription.metrics, subscription.interval_ms) == (("common", "consumer", "producer"), 5_000)


def test_a_star_stands_for_everything():
    both = [Subscription("a", frozenset({"producer"}), 60_000), Subscription("b", frozenset({"*"}), 60_000)]
    assert client_subscription(CLIENT, both).metrics == ("*",)


def test_nobody_waits_longer_than_five_minutes():
    assert client_subscription(CLIENT, [Subscription("a", frozenset({"*"}), 3_600_000)]).interval_ms == 300_000


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("client_id=orders-1", True),
        ("client_id=orders-.*", True),
        ("client_id=orders", False),  # the whole of it must match
        ("client_instance_id=ljuRbx3ZT0yNn6LOcqObug", True),
        ("client_software_name=apache-kafka-java", True),
        ("client_software_version=4\\.[0-9]+\\..*", True),
        ("client_software_version=3.*", False),
        ("client_source_address=127.0.0.1", True),
        ("client_source_port=40001", True),
        ("client_id=(?!payments).*", True),  # what automata cannot do
    ],
)
def test_selectors_are_expressions(selector: str, matches: bool):
    subscription = subscription_from("a", {"metrics": "*", "match": selector, "interval.ms": "1000"})
    assert subscription.matches(CLIENT) is matches


def test_all_selectors_must_match():
    both = "client_id=orders-1,client_software_name=librdkafka"
    assert not subscription_from("a", {"match": both}).matches(CLIENT)


def test_what_a_client_has_not_said_matches_nothing():
    unknown = Client(ID, "orders-1", None, None, "127.0.0.1", 1)
    assert not subscription_from("a", {"match": "client_software_name=.*"}).matches(unknown)


def test_defaults_hold_for_what_is_not_set():
    subscription = subscription_from("a", {"metrics": "producer, consumer"})
    assert (subscription.metrics, subscription.interval_ms) == (frozenset({"producer", "consumer"}), 300_000)
    assert subscription.matches(CLIENT)
