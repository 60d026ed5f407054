import pytest

from ottla.core.metadata.client_quotas import matching_quotas
from ottla.core.metadata.records import BATCH_RECORDS_MAX
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.types.describe_client_quotas import DescribeClientQuotasRequest
from tests.unit.core.metadata.cluster import Cluster

Entity = dict[str, str | None]
INVALID = ErrorCode.INVALID_REQUEST


def entry(entity: Entity, **limits: float | None) -> AlterClientQuotasRequest.EntryData:
    kind = AlterClientQuotasRequest
    parts = tuple(kind.EntityData(part, name) for part, name in entity.items())
    return kind.EntryData(parts, tuple(kind.OpData(key, value or 0.0, value is None) for key, value in limits.items()))


def alter(cluster: Cluster, entity: Entity, **limits: float | None) -> ErrorCode:
    reply = cluster.submit(AlterClientQuotasRequest((entry(entity, **limits),)))
    return ErrorCode(reply.entries[0].error_code)


def quotas(cluster: Cluster) -> dict[str, dict[str, float]]:
    return {"+".join(f"{part}={name}" for part, name in each): limits for each, limits in cluster.image.quotas.items()}


def test_limits_are_set_changed_and_removed(cluster: Cluster):
    ann: Entity = {"user": "ann"}
    assert alter(cluster, ann, producer_byte_rate=10.0, consumer_byte_rate=20.0) == 0
    assert alter(cluster, ann, producer_byte_rate=11.0, request_percentage=12.5) == 0
    assert alter(cluster, {"user": "ann", "client-id": None}, controller_mutation_rate=0.5) == 0
    assert alter(cluster, {"ip": None}, connection_creation_rate=3.0) == 0
    assert alter(cluster, ann, consumer_byte_rate=None) == 0
    assert quotas(cluster) == {
        "user=ann": {"producer_byte_rate": 11.0, "request_percentage": 12.5},
        "client-id=None+user=ann": {"controller_mutation_rate": 0.5},
        "ip=None": {"connection_creation_rate": 3.0},
    }
    cluster.check_law()
    assert alter(cluster, ann, producer_byte_rate=None, request_percentage=None) == 0
    assert "user=ann" not in quotas(cluster)
    cluster.check_law()


def test_what_changes_nothing_writes_nothing(cluster: Cluster):
    assert alter(cluster, {"user": "ann"}, producer_byte_rate=10.0) == 0
    for request in (
        entry({"user": "ann"}, producer_byte_rate=10.0),
        entry({"user": "ann"}, consumer_byte_rate=None),
        entry({"user": "bob"}, no_such_limit=None),
        entry({"user": "ann"}),
    ):
        result = cluster.ask(AlterClientQuotasRequest((request,)))
        assert (result.reply.entries[0].error_code, result.records) == (0, ())


def test_a_trial_writes_nothing(cluster: Cluster):
    result = cluster.ask(AlterClientQuotasRequest((entry({"user": "ann"}, producer_byte_rate=1.0),), True))
    assert (result.reply.entries[0].error_code, result.records) == (0, ())
    result = cluster.ask(AlterClientQuotasRequest((entry({"user": "ann"}, producer_byte_rate=0.0),), True))
    assert ErrorCode(result.reply.entries[0].error_code) is INVALID


@pytest.mark.parametrize(
    ("entity", "limits"),
    [
        ({}, {"producer_byte_rate": 1.0}),
        ({"group": "g"}, {"producer_byte_rate": 1.0}),
        ({"user": ""}, {"producer_byte_rate": 1.0}),
        ({"client-id": ""}, {"producer_byte_rate": 1.0}),
        ({"ip": "10.0.0.1", "user": "ann"}, {"connection_creation_rate": 1.0}),
        ({"ip": "nowhere"}, {"connection_creation_rate": 1.0}),
        ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1.0}),
        ({"user": "ann"}, {"connection_creation_rate": 1.0}),
        ({"user": "ann"}, {"no_such_limit": 1.0}),
        ({"user": "ann"}, {"producer_byte_rate": 0.0}),
        ({"user": "ann"}, {"producer_byte_rate": -1.0}),
        ({"user": "ann"}, {"producer_byte_rate": 1.5}),
        ({"user": "ann"}, {"consumer_byte_rate": 1e30}),
        ({"user": "ann"}, {"consumer_byte_rate": float("inf")}),
        ({"user": "ann"}, {"request_percentage": float("nan")}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 2.0**31}),
    ],
)
def test_refused(cluster: Cluster, entity: Entity, limits: dict[str, float]):
    assert alter(cluster, entity, **limits) is INVALID
    assert quotas(cluster) == {}


@pytest.mark.parametrize(
    ("entity", "limits"),
    [
        ({"ip": "::1"}, {"connection_creation_rate": 2.0**31 - 1}),
        ({"user": "ann", "client-id": "c"}, {"request_percentage": 0.01}),
        ({"client-id": None}, {"controller_mutation_rate": float("inf")}),
        ({"user": None, "client-id": None}, {"producer_byte_rate": 2.0**62}),
        ({"user": "ann"}, {"producer_byte_rate": 10.0000001}),
    ],
)
def test_taken(cluster: Cluster, entity: Entity, limits: dict[str, float]):
    assert alter(cluster, entity, **limits) == 0
    cluster.check_law()


def test_entities_are_judged_by_themselves(cluster: Cluster):
    reply = cluster.submit(
        AlterClientQuotasRequest(
            (entry({"user": "a"}, producer_byte_rate=1.0), entry({"user": "b"}, nothing=1.0), entry({"user": "c"}))
        )
    )
    codes = {each.entity[0].entity_name: each.error_code for each in reply.entries}
    assert codes == {"a": 0, "b": INVALID, "c": 0}
    assert quotas(cluster) == {"user=a": {"producer_byte_rate": 1.0}}


def test_an_entity_or_a_limit_that_is_named_twice_is_refused(cluster: Cluster):
    twice = entry({"user": "a"}, producer_byte_rate=1.0), entry({"user": "a"}, consumer_byte_rate=1.0)
    reply = cluster.submit(AlterClientQuotasRequest(twice))
    assert [each.error_code for each in reply.entries] == [INVALID]
    kind = AlterClientQuotasRequest
    limits = (kind.OpData("producer_byte_rate", 1.0), kind.OpData("producer_byte_rate", 2.0))
    reply = cluster.submit(kind((kind.EntryData((kind.EntityData("user", "a"),), limits),)))
    assert [each.error_code for each in reply.entries] == [INVALID]
    assert quotas(cluster) == {}


def test_more_than_fits_into_a_batch_is_refused(cluster: Cluster):
    many = tuple(entry({"user": f"u{each}"}, producer_byte_rate=1.0) for each in range(BATCH_RECORDS_MAX + 1))
    reply = cluster.submit(AlterClientQuotasRequest(many))
    assert [each.error_code for each in reply.entries[-2:]] == [0, ErrorCode.POLICY_VIOLATION]


def test_rights(cluster: Cluster):
    request = AlterClientQuotasRequest((entry({"user": "a"}, producer_byte_rate=1.0),))
    reply = cluster.ask(request, authorize=lambda *_: False).reply
    assert [ErrorCode(each.error_code) for each in reply.entries] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert reply.entries[0].entity[0].entity_name == "a"


class TestFinding:
    @pytest.fixture
    def known(self, cluster: Cluster) -> Cluster:
        for entity in (
            {"user": "ann"},
            {"user": None},
            {"user": "ann", "client-id": "c"},
            {"user": None, "client-id": None},
            {"client-id": "c"},
        ):
            assert alter(cluster, entity, producer_byte_rate=1.0) == 0
        assert alter(cluster, {"ip": "10.0.0.1"}, connection_creation_rate=1.0) == 0
        return cluster

    @pytest.mark.parametrize(
        ("components", "is_strict", "found"),
        [
            ([], False, 6),
            ([], True, 0),
            ([("user", 0, "ann")], False, 2),
            ([("user", 0, "ann")], True, 1),
            ([("user", 1, None)], False, 2),
            ([("user", 1, None)], True, 1),
            ([("user", 2, None)], False, 4),
            ([("user", 2, None)], True, 2),
            ([("user", 2, None), ("client-id", 2, None)], True, 2),
            ([("user", 0, "ann"), ("client-id", 0, "c")], False, 1),
            ([("user", 0, "nobody")], False, 0),
            ([("ip", 2, None)], False, 1),
        ],
    )
    def test_filters(
        self, known: Cluster, components: list[tuple[str, int, str | None]], is_strict: bool, found: int
    ) -> None:
        kind = DescribeClientQuotasRequest
        request = kind(tuple(kind.ComponentData(*each) for each in components), is_strict)
        assert len(matching_quotas(known.image, request)) == found
